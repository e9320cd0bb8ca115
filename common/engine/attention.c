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
    const struct moe_model *m = f->m;

    switch (m->family->qk_norm) {
    case MOE_QK_NORM_NONE:
        break;
    case MOE_QK_NORM_HEAD:
        f->b->ops->norm(f->b, f->q, f->q, y->q_norm, n, m->heads, m->head_dim, m->eps);
        f->b->ops->norm(f->b, f->k, f->k, y->k_norm, n, m->kv_heads, m->head_dim, m->eps);
        break;
    }
}

static void
rotate(struct moe_forward *f, size_t n)
{
    struct moe_rotate r = {
        .x = f->q, .n = n, .heads = f->m->heads, .head_dim = f->m->head_dim,
        .dim = f->m->head_dim, .cosine = f->cosine, .sine = f->sine,
        .interleaved = f->m->family->rope_pairs == MOE_ROPE_INTERLEAVED,
    };

    f->b->ops->rotate(f->b, &r);
    r.x = f->k;
    r.heads = f->m->kv_heads;
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
    const struct moe_model *m = f->m;
    const struct moe_layer *y = &m->layers[l];
    struct moe_attend a = {
        .kv = { &m->kv, l, f->places, n },
        .q = f->q, .out = f->mix,
        .heads = m->heads, .window = y->window, .scale = m->attn_scale,
    };
    const struct moe_product out = { .w = &y->o, .x = f->mix, .out = f->y, .n = n };
    int rc;

    for (int w = MOE_W_Q; w <= MOE_W_V; w++) {
        if ((rc = tell(f, (enum moe_weight)w, l, f->h, m->hidden, n, e)) != 0)
            return rc;
    }
    project(f, y, n);
    norm_heads(f, y, n);
    rotate(f, n);
    f->b->ops->store(f->b, &a.kv, f->k, f->v);
    f->b->ops->attend(f->b, &a);
    if ((rc = tell(f, MOE_W_O, l, f->mix, m->heads * m->head_dim, n, e)) != 0)
        return rc;
    f->b->ops->gemm(f->b, &out, 1, f->arith);
    return 0;
}
