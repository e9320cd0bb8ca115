/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns multi-head latent attention (arXiv 2405.04434, section 2.1), in the
 * absorbed form at every length, so that there is one arithmetic: a position is
 * kept as its latent and one rotated key, which all heads share; each head takes
 * its query to the latent first, attends there, and takes what it got to values.
 *
 *   q = W_qb norm(W_qa h), or W_q h            [heads][nope | rope]
 *   c | k = W_kva h;  c = norm(c)              [kv_lora | rope]
 *   t = (W_key q_nope | rotated q_rope)        [heads][kv_lora | rope]
 *   mix = softmax(scale t (c | k)) c           [heads][kv_lora]
 *   y = W_o (W_value mix)                      [heads][v_dim] -> [hidden]
 */
#include "common/engine/forward_layer.h"

#define LATENT_EPS 1e-6f    /* of the inner norms, whatever the model's is */

static int
tell(struct moe_forward *f, enum moe_weight w, size_t l, struct moe_rows x, size_t cols,
    size_t n, struct moe_err *e)
{
    struct moe_told t = { .weight = w, .layer = l, .x = x, .cols = cols, .n = n };

    return moe_forward_tell(f, &t, e);
}

/* q of the heads, and the latent with the key to be rotated. */
static int
project(struct moe_forward *f, size_t l, size_t n, struct moe_err *e)
{
    const struct moe_hparams *h = &f->m->hp;
    const struct moe_layer *y = &f->m->layers[l];
    const struct moe_product first[2] = {
        { .w = &y->kv_a, .x = f->h, .out = f->k, .n = n },
        { .w = h->q_lora > 0 ? &y->q_a : &y->q, .x = f->h,
            .out = h->q_lora > 0 ? f->q_a : f->q, .n = n },
    };
    const struct moe_product second = { .w = &y->q, .x = f->q_a, .out = f->q, .n = n };
    int rc;

    if ((rc = tell(f, MOE_W_KV_A, l, f->h, h->hidden, n, e)) != 0 ||
        (rc = tell(f, h->q_lora > 0 ? MOE_W_Q_A : MOE_W_Q, l, f->h, h->hidden, n, e)) != 0)
        return rc;
    f->b->ops->gemm(f->b, first, 2, f->arith);
    f->b->ops->norm(f->b, f->k, f->k, y->kv_a_norm, n, 1, h->kv_lora, LATENT_EPS);
    if (h->q_lora == 0)
        return 0;
    f->b->ops->norm(f->b, f->q_a, f->q_a, y->q_a_norm, n, 1, h->q_lora, LATENT_EPS);
    if ((rc = tell(f, MOE_W_Q_B, l, f->q_a, h->q_lora, n, e)) != 0)
        return rc;
    f->b->ops->gemm(f->b, &second, 1, f->arith);
    return 0;
}

static void
rotate(struct moe_forward *f, size_t n)
{
    const struct moe_hparams *h = &f->m->hp;
    struct moe_rotate r = {
        .x = f->q, .out = f->to_latent, .n = n, .heads = h->heads, .dim = h->rope_dim,
        .stride = h->head_dim, .first = h->nope,
        .out_stride = f->m->kv.k_dim, .out_first = h->kv_lora,
        .cosine = f->cosine, .sine = f->sine, .interleaved = h->rope_pairs,
    };

    f->b->ops->rotate(f->b, &r);
    r.x = r.out = f->k;
    r.heads = 1;
    r.first = h->kv_lora;
    r.stride = r.out_stride;
    f->b->ops->rotate(f->b, &r);
}

/*
 * Each head by its own part of w: rows [i * rows, (i + 1) * rows) times the cols
 * elements of x at i * from, to element i * to of out.
 */
static void
each_head(struct moe_forward *f, const struct moe_matrix *w, struct moe_rows x, size_t from,
    struct moe_rows out, size_t to, size_t n)
{
    size_t heads = f->m->hp.heads, rows = w->rows / heads;

    for (size_t i = 0; i < heads; i++) {
        struct moe_matrix *part = &f->by_head[i];

        *part = *w;
        part->rows = rows;
        part->data.at += i * moe_matrix_bytes(part);
        f->products[i] = (struct moe_product){ .w = part, .n = n,
            .x = { moe_backend_view(x.at, i * from), x.ld },
            .out = { moe_backend_view(out.at, i * to), out.ld } };
    }
    f->b->ops->gemm(f->b, f->products, heads, f->arith);
}

int
moe_mla_run(struct moe_forward *f, size_t l, size_t n, struct moe_err *e)
{
    const struct moe_hparams *h = &f->m->hp;
    const struct moe_layer *y = &f->m->layers[l];
    size_t key = f->m->kv.k_dim;
    struct moe_attend a = {
        .kv = { &f->m->kv, l, f->places, n },
        .q = f->to_latent, .out = f->mix,
        .heads = h->heads, .window = y->window, .scale = h->attn_scale,
    };
    const struct moe_product out = { .w = &y->o, .x = f->heads, .out = f->y, .n = n };
    int rc = project(f, l, n, e);

    if (rc != 0)
        return rc;
    rotate(f, n);
    each_head(f, &y->key, f->q, h->head_dim, f->to_latent, key, n);
    f->b->ops->store(f->b, &a.kv, f->k, f->k);
    f->b->ops->attend(f->b, &a);
    each_head(f, &y->value, f->mix, h->kv_lora, f->heads, h->v_dim, n);
    if ((rc = tell(f, MOE_W_O, l, f->heads, h->heads * h->v_dim, n, e)) != 0)
        return rc;
    f->b->ops->gemm(f->b, &out, 1, f->arith);
    return 0;
}
