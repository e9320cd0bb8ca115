/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns weight_shape and g_idx of parts. All numbers in them are little-endian,
 * as this machine's are.
 */
#include <string.h>

#include "cmd/moe-shard/shard_fill.h"

/* Rows or columns of the whole matrix, along the cut. */
static uint64_t
length(const struct moe_cut *c)
{
    uint64_t n = 0;

    for (int i = 0; i < c->axis.n; i++)
        n += c->axis.seg[i].len;
    return n;
}

int
shard_fill_check(const struct moe_scatter *s, const void *whole, size_t n, struct moe_err *e)
{
    const struct moe_cut *c = &s->cut;
    int64_t shape[2];

    if (c->fill == MOE_CUT_SHAPE) {
        memcpy(shape, whole, n == sizeof(shape) ? n : 0);
        if (n != sizeof(shape) || s->stacked || shape[c->axis.dir == MOE_CUT_IN] < 0 ||
            (uint64_t)shape[c->axis.dir == MOE_CUT_IN] != length(c))
            return moe_err_set(e, MOE_EFORMAT, "%s: is not the shape of its matrix", s->name);
        return 0;
    }
    for (size_t i = 0; i < n / 4; i++) {
        int32_t g;

        memcpy(&g, (const char *)whole + 4 * i, 4);
        if (g < 0 || (uint64_t)g != i / c->whole_group)
            return moe_err_set(e, MOE_EFORMAT, "%s: its groups are in no order, which must be"
                " known before the weights are cut", s->name);
    }
    return 0;
}

int
shard_fill_part(const struct moe_scatter *s, uint32_t tp, const void *whole, size_t n,
    struct moe_buf *b, struct moe_err *e)
{
    const struct moe_cut *c = &s->cut;
    uint64_t mine = moe_cut_share(c, tp);

    moe_buf_clear(b);
    if (c->fill == MOE_CUT_SHAPE) {
        int64_t shape[2];

        memcpy(shape, whole, sizeof(shape));
        shape[c->axis.dir == MOE_CUT_IN] = (int64_t)mine;
        moe_buf_add(b, shape, sizeof(shape));
    }
    for (uint64_t i = 0; c->fill == MOE_CUT_G_IDX && i < mine && mine <= n / 4; i++) {
        int32_t g = (int32_t)(i / c->group);

        moe_buf_add(b, &g, sizeof(g));
    }
    return b->bad ? moe_err_set(e, MOE_ENOMEM, "%s: out of memory", s->name) : 0;
}

void
shard_fill_whole(const struct moe_scatter *s, void *p, size_t n)
{
    const struct moe_cut *c = &s->cut;

    if (c->fill == MOE_CUT_SHAPE) {
        int64_t v = (int64_t)length(c);

        memcpy((char *)p + (c->axis.dir == MOE_CUT_IN ? sizeof(v) : 0), &v, sizeof(v));
    }
    for (size_t i = 0; c->fill == MOE_CUT_G_IDX && i < n / 4; i++) {
        int32_t g = (int32_t)(i / c->whole_group);

        memcpy((char *)p + 4 * i, &g, 4);
    }
}
