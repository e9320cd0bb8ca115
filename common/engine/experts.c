/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the MLP part of a layer. Rows are count-sorted by expert, so that an
 * expert's weights are read once a step for all rows that chose it; each row
 * then sums its experts by ascending expert, whatever was computed when.
 */
#include <string.h>

#include "common/engine/forward_layer.h"

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
    struct moe_told t = { .weight = MOE_W_GATE, .layer = l, .x = f->h, .cols = f->m->hidden,
        .n = n };
    const struct moe_product in = { .w = &y->gate, .up = &y->up, .glu = true, .x = f->h,
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

/* Rows of the step by expert: first, by_expert, share_by_expert, slot. */
static void
sort_rows(struct moe_forward *f, size_t n)
{
    size_t experts = f->m->experts, k = f->m->top_k;

    memset(f->first, 0, (experts + 1) * sizeof(*f->first));
    for (size_t i = 0; i < n * k; i++)
        f->first[f->chosen[i] + 1]++;
    for (size_t x = 0; x < experts; x++)
        f->first[x + 1] += f->first[x];
    /* first[x] runs through x's rows and ends where x + 1 begins; moved back below. */
    for (size_t i = 0; i < n * k; i++) {
        size_t to = f->first[f->chosen[i]]++;

        f->by_expert[to] = (uint32_t)(i / k);
        f->share_by_expert[to] = f->share[i];
        f->slot[i] = (uint32_t)to;
    }
    memmove(f->first + 1, f->first, experts * sizeof(*f->first));
    f->first[0] = 0;
}

static int
tell_experts(struct moe_forward *f, enum moe_weight w, size_t l, struct moe_err *e)
{
    bool down = w == MOE_W_EXPERT_DOWN;
    int rc = 0;

    for (size_t x = 0; f->observer != NULL && x < f->m->experts && rc == 0; x++) {
        size_t at = f->first[x], n = f->first[x + 1] - at;
        struct moe_told t = {
            .weight = w, .layer = l, .expert = x, .n = n,
            .cols = down ? f->m->layers[l].experts[x].down.cols : f->m->hidden,
            .x = down ? row_at(f->inner, at) : f->h,
            .pick = down ? NULL : f->by_expert + at,
            .row = f->by_expert + at, .share = f->share_by_expert + at,
        };

        if (n > 0)
            rc = moe_forward_tell(f, &t, e);
    }
    return rc;
}

/* The products of all experts that have rows; returns how many. */
static size_t
products(struct moe_forward *f, size_t l, bool down)
{
    size_t count = 0;

    for (size_t x = 0; x < f->m->experts; x++) {
        const struct moe_expert *w = &f->m->layers[l].experts[x];
        size_t at = f->first[x], n = f->first[x + 1] - at;

        if (n == 0)
            continue;
        if (down)
            f->products[count++] = (struct moe_product){ .w = &w->down,
                .x = row_at(f->inner, at), .out = row_at(f->outer, at), .n = n };
        else
            f->products[count++] = (struct moe_product){ .w = &w->gate,
                .up = w->gate.paired ? NULL : &w->up, .glu = true, .x = f->h,
                .out = row_at(f->inner, at), .rows = f->by_expert + at, .n = n };
    }
    return count;
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
    if ((rc = tell_experts(f, MOE_W_EXPERT_GATE, l, e)) != 0)
        return rc;
    if ((rc = tell_experts(f, MOE_W_EXPERT_UP, l, e)) != 0)
        return rc;
    f->b->ops->gemm(f->b, f->products, products(f, l, false), f->arith);
    if ((rc = tell_experts(f, MOE_W_EXPERT_DOWN, l, e)) != 0)
        return rc;
    f->b->ops->gemm(f->b, f->products, products(f, l, true), f->arith);
    f->b->ops->combine(f->b, f->y, f->outer, f->slot, f->share, n, f->m->top_k, f->m->hidden);
    return 0;
}
