/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of a layer share: forward.c runs attention.c, router.c and
 * experts.c over the rows of a step. Private to them.
 */
#ifndef MOE_ENGINE_FORWARD_LAYER_H
#define MOE_ENGINE_FORWARD_LAYER_H

#include "common/engine/forward.h"

struct moe_forward {
    const struct moe_model *m;
    struct moe_backend *b;
    enum moe_arith arith;
    size_t rows, head_rows;             /* most of a step; most of a product with the head */
    size_t per;                         /* experts of a row, the shared one with them */
    const struct moe_observer *observer;

    /* On the device, [rows]: the residual stream, its norm, what a part gives. */
    struct moe_rows x, h, y;
    struct moe_rows q, k, v, mix;       /* attention */
    struct moe_rows q_a, to_latent, heads;      /* latent attention: see mla.c */
    struct moe_rows scores;             /* of the router */
    struct moe_rows inner, outer;       /* of experts: [rows * (top_k + 1 if shared)] */
    struct moe_rows shares;             /* the shared expert's: one number a row */
    struct moe_rows logits;             /* [head_rows] */

    /* On the host. */
    struct moe_place *places;           /* [rows] */
    uint32_t *ids;                      /* [rows] tokens, then which rows are wanted */
    uint32_t *tokens;                   /* [rows] */
    uint32_t *count;                    /* [rows] 0, 1, 2 ... */
    float *cosine, *sine;               /* [rows][rope_dim / 2] */
    float *host_scores;                 /* [rows][experts] */
    float *keys;                        /* [experts] of the row whose experts are chosen */
    uint32_t *chosen;                   /* [rows][top_k] experts, ascending */
    float *share;                       /* [rows][top_k] their weights */
    /* [rows][top_k, and one if shared] rows of inner and outer, and their weights. */
    uint32_t *slot;
    float *weight;
    float *host_shares;                 /* [rows][ld of shares] */
    uint32_t *by_expert;                /* [rows * top_k] rows of h, expert by expert */
    float *share_by_expert;             /* [rows * top_k] */
    size_t *first;                      /* [experts + 1] where an expert's rows begin */
    struct moe_product *products;       /* [experts + 1], or [heads] */
    struct moe_matrix *by_head;         /* [heads] a head's part of a matrix */
    struct moe_forward_gate gate;
    float *host_logits;                 /* [head_rows][ld of the vocabulary] */
    float *told;                        /* what the observer is shown, grown as needed */
    size_t told_cap;
    struct moe_mem *mems[24];
    size_t n_mems;
};

/* y = attention of h, for n rows of layer l. Errors of all parts: MOE_ENOMEM. */
int moe_attention_run(struct moe_forward *f, size_t l, size_t n, struct moe_err *e);

/* The same with keys and values of a latent. */
int moe_mla_run(struct moe_forward *f, size_t l, size_t n, struct moe_err *e);

/* chosen and share of n rows of h. */
int moe_router_run(struct moe_forward *f, size_t l, size_t n, struct moe_err *e);

/* y = the experts' (or the dense MLP's) answer to h. */
int moe_experts_run(struct moe_forward *f, size_t l, size_t n, struct moe_err *e);

/* What enters a matrix. */
struct moe_told {
    enum moe_weight weight;
    size_t layer, expert, cols, n;
    struct moe_rows x;
    const uint32_t *pick;   /* [n] rows of x; NULL = 0..n-1 */
    const uint32_t *row;    /* [n] rows of the step; NULL = 0..n-1 */
    const float *share;     /* [n] or NULL */
};

/* Tell the observer, if there is one. */
int moe_forward_tell(struct moe_forward *f, const struct moe_told *t, struct moe_err *e);

#endif
