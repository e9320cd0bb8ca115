/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model ready to run: configuration, the plan of its family, and a handle for
 * every weight, checked against each other. Immutable once opened, shared by
 * any number of sequences; it owns its source and what it put on the device.
 */
#ifndef MOE_ENGINE_MODEL_H
#define MOE_ENGINE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/pool.h"
#include "common/engine/backend.h"
#include "common/engine/family.h"
#include "common/formats/qscheme.h"
#include "common/formats/source.h"

#define MOE_MODEL_MAX_LAYERS 1024
#define MOE_MODEL_MAX_EXPERTS 4096
#define MOE_MODEL_MAX_TOP_K 64

struct moe_expert {
    struct moe_matrix gate, up, down;   /* gate.paired: up is in gate */
};

struct moe_layer {
    struct moe_view attn_norm, mlp_norm, q_norm, k_norm;    /* F32 */
    struct moe_view attn_norm_bias, mlp_norm_bias;          /* of LayerNorm */
    struct moe_view sinks;              /* [heads] F32, or nothing */
    struct moe_matrix q, k, v, o;
    /*
     * Latent attention: q is of q_a's normed product when there is one; kv_a gives
     * the latent and the rotated part of the key; key [heads * kv_lora][nope] takes
     * a query to the latent, value [heads * v_dim][kv_lora] the latent to a value.
     */
    struct moe_matrix q_a, kv_a, key, value;
    struct moe_view q_a_norm, kv_a_norm;
    size_t window;                      /* positions attention sees, 0 = all */
    bool sparse;
    struct moe_matrix gate, up, down;   /* dense layers */
    struct moe_matrix router;
    float *router_bias;                 /* [experts] on the host, or NULL */
    struct moe_expert *experts;         /* [model's experts], NULL in dense layers */
    struct moe_expert shared;           /* where the model has one */
    struct moe_matrix shared_mix;       /* [1][hidden], or no rows */
};

/* What the configuration and the plan say together; read by hparams.c. */
struct moe_hparams {
    size_t hidden, vocab, n_layers, heads, kv_heads, head_dim, max_pos;
    size_t v_dim;                       /* of a head; head_dim but with latent attention */
    size_t q_lora, kv_lora, nope;       /* latent attention; q_lora 0 = q directly */
    size_t rope_dim;                    /* elements of a head that rotate */
    bool rope_pairs;
    size_t experts, top_k;              /* 0 when every layer is dense */
    size_t inter, expert_inter, shared_inter;   /* inner rows of MLPs; 0 = there are none */
    bool qkv_bias, o_bias, mlp_bias, router_bias, expert_bias, head_bias, qk_norm, renorm;
    enum moe_groups groups;
    size_t n_group, topk_group;
    float eps, attn_scale, clip;        /* clip 0 = none */
    float embed_scale, residual_scale, logits_div, route_scale;
    float jitter;                       /* of the sparse mixer */
    float act_limit, act_alpha;         /* of MOE_ACT_CLAMPED */
};

struct moe_model {
    const struct moe_family *family;
    struct moe_family plan;             /* family, of a GGUF file: other names */
    struct moe_config config;           /* the source's, missing keys as the family has them */
    bool own_config;                    /* else its tree is the source's */
    struct moe_source *source;          /* owned */
    struct moe_qscheme *scheme;         /* how its weights are encoded */
    struct moe_records *records;        /* those that are packed already */
    struct moe_backend *backend;        /* borrowed */
    struct moe_hparams hp;
    struct moe_kv_shape kv;
    struct moe_layer *layers;           /* [hp.n_layers] */
    struct moe_matrix embed, head;
    struct moe_view norm, norm_bias;
    struct moe_mem **mems;              /* everything on the device */
    size_t n_mems, cap_mems;
    struct moe_qmat **coded;            /* of CODED matrices */
    size_t n_coded, cap_coded;
    void **held;                        /* memory of the host that they lie in */
    size_t n_held, cap_held;
};

/*
 * Open the model at path (a directory, or a file that carries its
 * configuration). pool packs INT4 weights; NULL = the calling thread alone.
 * b must outlive the model. Errors: MOE_ENOENT (file or tensor missing),
 * MOE_EFORMAT (shapes), MOE_EUNSUP (family, encoding), MOE_EIO, MOE_ENOMEM.
 */
int moe_model_open(const char *path, struct moe_backend *b, struct moe_pool *pool,
    struct moe_model **out, struct moe_err *e);
void moe_model_close(struct moe_model *m);

#endif
