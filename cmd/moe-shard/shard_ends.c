/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns dealing and gathering of one piece: whether it is cut or made, and which
 * copies there are.
 */
#include <string.h>

#include "cmd/moe-shard/shard_ends.h"
#include "cmd/moe-shard/shard_fill.h"

struct call {
    struct shard_ends *x;
    size_t i;
    struct shard_move_hand *h;
    bool io;                    /* a file could not be read or written */
};

static int
put(void *ctx, uint32_t ep, uint32_t tp, uint64_t at, const void *p, size_t n, struct moe_err *e)
{
    struct call *c = ctx;

    return shard_ranks_write(c->x->ranks, c->i, ep, tp, at, p, n, e);
}

static int
get(void *ctx, uint32_t ep, uint32_t tp, uint64_t at, void *p, size_t n, struct moe_err *e)
{
    struct call *c = ctx;
    int rc = shard_ranks_read(c->x->ranks, c->i, ep, tp, at, p, n, e);

    c->io = rc != 0;
    return rc != 0 ? rc : shard_ranks_compare(c->x->ranks, c->i, ep, tp, at, p, n, e);
}

/* The zeros that fill up a padded tensor are still there. */
static int
zeros(void *ctx, uint32_t ep, uint32_t tp, uint64_t at, const void *p, size_t n,
    struct moe_err *e)
{
    struct call *c = ctx;
    struct moe_buf *b = &c->h->scratch;
    int rc;

    moe_buf_clear(b);
    if (moe_buf_room(b, n) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    if ((rc = get(ctx, ep, tp, at, b->p, n, e)) != 0)
        return rc;
    return memcmp(b->p, p, n) == 0 ? 0 : moe_err_set(e, MOE_EFORMAT,
        "%s: its padding is not zeros", c->x->plan->items[c->i].t->name);
}

/* Do f for every rank that has a part of the item. */
static int
each(struct call *c, const void *whole, size_t n, bool write, struct moe_err *e)
{
    const struct moe_scatter *s = &c->x->plan->items[c->i].scatter;
    const struct moe_tensor *t = c->x->plan->items[c->i].t;
    uint64_t shape[MOE_SAFET_MAX_RANK], bytes;
    struct moe_buf have = MOE_BUF_INIT;
    int rc = 0;

    for (uint32_t ep = 0; rc == 0 && ep < s->grid->ep; ep++) {
        for (uint32_t tp = 0; rc == 0 && tp < s->grid->tp; tp++) {
            struct moe_buf *b = &c->h->scratch;

            if (!moe_scatter_part(s, ep, tp, t, shape, &bytes))
                continue;
            if ((rc = shard_fill_part(s, tp, whole, n, b, e)) != 0)
                break;
            if (write) {
                rc = put(c, ep, tp, 0, b->p, b->len, e);
                continue;
            }
            moe_buf_clear(&have);
            if (moe_buf_room(&have, b->len) == NULL)
                rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
            else if ((rc = get(c, ep, tp, 0, have.p, b->len, e)) == 0 &&
                memcmp(have.p, b->p, b->len) != 0)
                rc = moe_err_set(e, MOE_EFORMAT, "%s: is not what goes with its matrix", t->name);
        }
    }
    moe_buf_fini(&have);
    return rc;
}

int
shard_ends_deal(struct shard_ends *x, size_t i, uint64_t at, const void *p, size_t n,
    struct shard_move_hand *h, struct moe_err *e)
{
    const struct moe_scatter *s = &x->plan->items[i].scatter;
    struct call c = { x, i, h, false };
    int rc;

    if (s->cut.fill != MOE_CUT_BYTES) {
        rc = shard_fill_check(s, p, n, e);
        return rc != 0 ? rc : each(&c, p, n, true, e);
    }
    rc = moe_scatter_out(s, at, p, n, &h->scratch, put, &c, e);
    return rc == 0 && at + n == s->bytes ? moe_scatter_pad(s, put, &c, e) : rc;
}

/* The first rank that has a part of a shape tells what is not cut of it. */
static int
gather_made(struct call *c, void *p, size_t n, struct moe_err *e)
{
    const struct moe_scatter *s = &c->x->plan->items[c->i].scatter;
    const struct moe_tensor *t = c->x->plan->items[c->i].t;
    uint64_t shape[MOE_SAFET_MAX_RANK], bytes;
    uint32_t ep = 0;
    int rc;

    if (s->cut.fill == MOE_CUT_SHAPE) {
        if (n != 16)
            return moe_err_set(e, MOE_EFORMAT, "%s: is not the shape of a matrix", t->name);
        while (ep < s->grid->ep && !moe_scatter_part(s, ep, 0, t, shape, &bytes))
            ep++;
        if ((rc = shard_ranks_read(c->x->ranks, c->i, ep, 0, 0, p, n, e)) != 0)
            return rc;
    }
    shard_fill_whole(s, p, n);
    return each(c, p, n, false, e);
}

int
shard_ends_gather(struct shard_ends *x, size_t i, uint64_t at, void *p, size_t n,
    struct shard_move_hand *h, struct moe_err *e)
{
    const struct moe_scatter *s = &x->plan->items[i].scatter;
    struct call c = { x, i, h, false };
    int rc;

    if (s->cut.fill != MOE_CUT_BYTES)
        rc = gather_made(&c, p, n, e);
    else
        rc = moe_scatter_in(s, at, p, n, &h->scratch, get, &c, e);
    if (rc == 0 && s->cut.fill == MOE_CUT_BYTES && at + n == s->bytes)
        rc = moe_scatter_pad(s, zeros, &c, e);
    if (rc == MOE_EFORMAT && !c.io)
        atomic_store(&x->differs, true);
    return rc;
}
