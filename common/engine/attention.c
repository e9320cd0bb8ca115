/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the attention part of a layer: projections, norms of heads, rotation,
 * keys and values into their pages, attention over the pages, output.
 */
#include "common/engine/forward_layer.h"

static void
project(struct moe_forward *f, const struct moe_layer *y, size_t n)
{
    const struct moe_product p[3] = {
        { .w = &y->q, .x = f->h, .out = f->q, .n = n },
        { .w = &y->k, .x = f->h, .out = f->k, .n = n },
        { .w = &y->v, .x = f->h, .out = f->v, .n = n },
    };

    f->b->ops->gemm(f->b, p, 3, f->arith);
}

static void
norm_heads(struct moe_forward *f, const struct moe_layer *y, size_t n)
{
    const struct moe_hparams *h = &f->m->hp;
    bool whole = f->m->family->qk_norm == MOE_QK_NORM_WHOLE;
    size_t q = h->heads, kv = h->kv_heads, dim = h->head_dim;

    f->b->ops->norm(f->b, f->q, f->q, y->q_norm, n, whole ? 1 : q, whole ? q * dim : dim, h->eps);
    f->b->ops->norm(f->b, f->k, f->k, y->k_norm, n, whole ? 1 : kv, whole ? kv * dim : dim,
        h->eps);
}

static void
clip(struct moe_forward *f, size_t n)
{
    const struct moe_hparams *h = &f->m->hp;
    size_t kv = h->kv_heads * h->head_dim;

    f->b->ops->clip(f->b, f->q, n, h->heads * h->head_dim, h->clip);
    f->b->ops->clip(f->b, f->k, n, kv, h->clip);
    f->b->ops->clip(f->b, f->v, n, kv, h->clip);
}

static void
rotate(struct moe_forward *f, size_t n)
{
    const struct moe_hparams *h = &f->m->hp;
    struct moe_rotate r = {
        .x = f->q, .out = f->q, .n = n, .heads = h->heads, .dim = h->rope_dim,
        .stride = h->head_dim, .out_stride = h->head_dim, .cosine = f->cosine, .sine = f->sine,
        .interleaved = h->rope_pairs,
    };

    f->b->ops->rotate(f->b, &r);
    r.x = r.out = f->k;
    r.heads = h->kv_heads;
    f->b->ops->rotate(f->b, &r);
}

static int
tell(struct moe_forward *f, enum moe_weight w, size_t l, struct moe_rows x, size_t cols,
    size_t n, struct moe_err *e)
{
    struct moe_told t = { .weight = w, .layer = l, .x = x, .cols = cols, .n = n };

    return moe_forward_tell(f, &t, e);
}

int
moe_attention_run(struct moe_forward *f, size_t l, size_t n, struct moe_err *e)
{
    const struct moe_hparams *h = &f->m->hp;
    const struct moe_layer *y = &f->m->layers[l];
    bool after = f->m->family->qk_norm == MOE_QK_NORM_HEAD_AFTER;
    struct moe_attend a = {
        .kv = { &f->m->kv, l, f->places, n },
        .q = f->q, .out = f->mix, .sinks = y->sinks,
        .heads = h->heads, .window = y->window, .scale = h->attn_scale,
    };
    const struct moe_product out = { .w = &y->o, .x = f->mix, .out = f->y, .n = n };
    int rc;

    for (int w = MOE_W_Q; w <= MOE_W_V; w++) {
        if ((rc = tell(f, (enum moe_weight)w, l, f->h, h->hidden, n, e)) != 0)
            return rc;
    }
    project(f, y, n);
    if (h->qk_norm && !after)
        norm_heads(f, y, n);
    if (h->clip > 0)
        clip(f, n);
    rotate(f, n);
    if (h->qk_norm && after)
        norm_heads(f, y, n);
    f->b->ops->store(f->b, &a.kv, f->k, f->v);
    f->b->ops->attend(f->b, &a);
    if ((rc = tell(f, MOE_W_O, l, f->mix, h->heads * h->head_dim, n, e)) != 0)
        return rc;
    f->b->ops->gemm(f->b, &out, 1, f->arith);
    return 0;
}
