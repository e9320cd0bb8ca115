/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the MLP part of a layer. Rows are count-sorted by expert, so that an
 * expert's weights are read once a step for all rows that chose it; each row
 * then sums its experts by ascending expert, whatever was computed when.
 */
#include <string.h>

#include "common/engine/forward_layer.h"
#include "kernels/kernels.h"

static struct moe_rows
row_at(struct moe_rows r, size_t j)
{
    return (struct moe_rows){ moe_backend_view(r.at, j * r.ld), r.ld };
}

/* A dense layer is one expert that everybody chose. */
static int
dense(struct moe_forward *f, size_t l, size_t n, struct moe_err *e)
{
    const struct moe_layer *y = &f->m->layers[l];
    struct moe_told t = { .weight = MOE_W_GATE, .layer = l, .x = f->h, .cols = f->m->hp.hidden,
        .n = n };
    const struct moe_product in = { .w = &y->gate, .up = &y->up, .act = MOE_ACT_SILU, .x = f->h,
        .out = f->inner, .n = n };
    const struct moe_product out = { .w = &y->down, .x = f->inner, .out = f->y, .n = n };
    int rc;

    if ((rc = moe_forward_tell(f, &t, e)) != 0)
        return rc;
    t.weight = MOE_W_UP;
    if ((rc = moe_forward_tell(f, &t, e)) != 0)
        return rc;
    f->b->ops->gemm(f->b, &in, 1, f->arith);
    t.weight = MOE_W_DOWN;
    t.x = f->inner;
    t.cols = y->down.cols;
    if ((rc = moe_forward_tell(f, &t, e)) != 0)
        return rc;
    f->b->ops->gemm(f->b, &out, 1, f->arith);
    return 0;
}

/*
 * Rows of the step by expert: first, by_expert, share_by_expert; and by row: slot,
 * weight. The shared expert's rows stand behind all others.
 */
static void
sort_rows(struct moe_forward *f, size_t n)
{
    size_t experts = f->m->hp.experts, k = f->m->hp.top_k;

    memset(f->first, 0, (experts + 1) * sizeof(*f->first));
    for (size_t i = 0; i < n * k; i++)
        f->first[f->chosen[i] + 1]++;
    for (size_t x = 0; x < experts; x++)
        f->first[x + 1] += f->first[x];
    /* first[x] runs through x's rows and ends where x + 1 begins; moved back below. */
    for (size_t i = 0; i < n * k; i++) {
        size_t to = f->first[f->chosen[i]]++, at = i / k * f->per + i % k;

        f->by_expert[to] = (uint32_t)(i / k);
        f->share_by_expert[to] = f->share[i];
        f->slot[at] = (uint32_t)to;
        f->weight[at] = f->share[i];
    }
    for (size_t j = 0; j < n && f->per > k; j++) {
        f->slot[j * f->per + k] = (uint32_t)(n * k + j);
        f->weight[j * f->per + k] = 1;
    }
    memmove(f->first + 1, f->first, experts * sizeof(*f->first));
    f->first[0] = 0;
}

/* How much of the shared expert each row takes: all, or a sigmoid of its own product. */
static void
mix_shared(struct moe_forward *f, size_t l, size_t n)
{
    const struct moe_matrix *w = &f->m->layers[l].shared_mix;
    const struct moe_product p = { .w = w, .x = f->h, .out = f->shares, .n = n };

    if (f->m->hp.shared_inter == 0 || w->rows == 0)
        return;
    f->b->ops->gemm(f->b, &p, 1, MOE_ARITH_F32);
    f->b->ops->read(f->b, f->host_shares, f->shares.at, n * f->shares.ld * sizeof(float));
    for (size_t j = 0; j < n; j++) {
        float two[2] = { f->host_shares[j * f->shares.ld], 0 };

        moe_kernels()->softmax_f32(two, 2);
        f->weight[j * f->per + f->per - 1] = two[0];
    }
}

static int
tell_experts(struct moe_forward *f, enum moe_weight w, size_t l, struct moe_err *e)
{
    bool down = w == MOE_W_EXPERT_DOWN;
    int rc = 0;

    for (size_t x = 0; f->observer != NULL && x < f->m->hp.experts && rc == 0; x++) {
        size_t at = f->first[x], n = f->first[x + 1] - at;
        struct moe_told t = {
            .weight = w, .layer = l, .expert = x, .n = n,
            .cols = down ? f->m->layers[l].experts[x].down.cols : f->m->hp.hidden,
            .x = down ? row_at(f->inner, at) : f->h,
            .pick = down ? NULL : f->by_expert + at,
            .row = f->by_expert + at, .share = f->share_by_expert + at,
        };

        if (n > 0)
            rc = moe_forward_tell(f, &t, e);
    }
    return rc;
}

static struct moe_product
product(struct moe_forward *f, const struct moe_expert *w, bool down, size_t at, size_t n)
{
    if (down)
        return (struct moe_product){ .w = &w->down, .x = row_at(f->inner, at),
            .out = row_at(f->outer, at), .n = n };
    return (struct moe_product){ .w = &w->gate, .up = w->gate.paired ? NULL : &w->up,
        .act = f->m->family->act == MOE_ACT_NONE ? MOE_ACT_SILU : f->m->family->act,
        .limit = f->m->hp.act_limit, .alpha = f->m->hp.act_alpha, .x = f->h,
        .out = row_at(f->inner, at), .n = n };
}

/* The products of all experts that have rows, n of the step; returns how many. */
static size_t
products(struct moe_forward *f, size_t l, size_t n, bool down)
{
    const struct moe_layer *y = &f->m->layers[l];
    size_t count = 0;

    for (size_t x = 0; x < f->m->hp.experts; x++) {
        size_t at = f->first[x], rows = f->first[x + 1] - at;

        if (rows == 0)
            continue;
        f->products[count] = product(f, &y->experts[x], down, at, rows);
        f->products[count++].rows = down ? NULL : f->by_expert + at;
    }
    if (f->m->hp.shared_inter > 0)
        f->products[count++] = product(f, &y->shared, down, n * f->m->hp.top_k, n);
    return count;
}

/* What enters the shared expert. */
static int
tell_shared(struct moe_forward *f, enum moe_weight w, size_t l, size_t n, struct moe_err *e)
{
    bool down = w == MOE_W_SHARED_DOWN;
    struct moe_told t = { .weight = w, .layer = l, .n = n,
        .cols = down ? f->m->hp.shared_inter : f->m->hp.hidden,
        .x = down ? row_at(f->inner, n * f->m->hp.top_k) : f->h };

    return f->m->hp.shared_inter == 0 ? 0 : moe_forward_tell(f, &t, e);
}

int
moe_experts_run(struct moe_forward *f, size_t l, size_t n, struct moe_err *e)
{
    int rc;

    if (!f->m->layers[l].sparse)
        return dense(f, l, n, e);
    if ((rc = moe_router_run(f, l, n, e)) != 0)
        return rc;
    sort_rows(f, n);
    mix_shared(f, l, n);
    if ((rc = tell_experts(f, MOE_W_EXPERT_GATE, l, e)) != 0 ||
        (rc = tell_experts(f, MOE_W_EXPERT_UP, l, e)) != 0 ||
        (rc = tell_shared(f, MOE_W_SHARED_GATE, l, n, e)) != 0 ||
        (rc = tell_shared(f, MOE_W_SHARED_UP, l, n, e)) != 0)
        return rc;
    f->b->ops->gemm(f->b, f->products, products(f, l, n, false), f->arith);
    if ((rc = tell_experts(f, MOE_W_EXPERT_DOWN, l, e)) != 0 ||
        (rc = tell_shared(f, MOE_W_SHARED_DOWN, l, n, e)) != 0)
        return rc;
    f->b->ops->gemm(f->b, f->products, products(f, l, n, true), f->arith);
    f->b->ops->combine(f->b, f->y, f->outer, f->slot, f->weight, n, f->per, f->m->hp.hidden);
    return 0;
}
