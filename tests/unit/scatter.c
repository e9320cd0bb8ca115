/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors to parts and back: random cuts, pieces and grids give every byte
 * again; a copy that differs is found. Golden parts are in tests/unit/cut.c.
 */
#include <stdlib.h>
#include <string.h>

#include "common/formats/scatter.h"
#include "tests/tap.h"

#define RANKS 12
#define CASES 1000

static uint64_t seed = 1;

static uint64_t
below(uint64_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % n;
}

struct store { unsigned char *p[RANKS]; uint64_t n[RANKS]; uint32_t tp; };

static int
put(void *ctx, uint32_t ep, uint32_t tp, uint64_t at, const void *p, size_t n, struct moe_err *e)
{
    struct store *s = ctx;
    uint32_t r = ep * s->tp + tp;

    if (at + n > s->n[r])
        return moe_err_set(e, MOE_EFORMAT, "past the part");
    memcpy(s->p[r] + at, p, n);
    return 0;
}

static int
get(void *ctx, uint32_t ep, uint32_t tp, uint64_t at, void *p, size_t n, struct moe_err *e)
{
    struct store *s = ctx;
    uint32_t r = ep * s->tp + tp;

    if (at + n > s->n[r])
        return moe_err_set(e, MOE_EFORMAT, "past the part");
    memcpy(p, s->p[r] + at, n);
    return 0;
}

/* A random tensor with a random cut, and what it is on a grid. */
struct random {
    uint64_t shape[3];
    struct moe_tensor t;
    struct moe_naming n;
    struct moe_grid g;
    struct moe_scatter s;
    unsigned char *whole, *back;
    struct store store;
};

static int
make(struct random *x, struct moe_err *e)
{
    static const struct moe_qrule plain = { .enc = MOE_ENC_PLAIN };
    struct moe_cut_axis a = { .dir = (enum moe_cut_dir)below(3), .n = 1 + (int)below(3) };
    struct moe_cut cut;
    uint64_t len = 0;
    int rc;

    memset(x, 0, sizeof(*x));
    x->g = (struct moe_grid){ 1 + (uint32_t)below(4), 1 + (uint32_t)below(3), 1, 1, 0,
        (enum moe_grid_deal)below(2), NULL };
    for (int i = 0; i < a.n; i++) {
        bool copies = below(3) == 0 && x->g.tp % 2 == 0;
        uint64_t unit = 1 + below(3), units = copies ? x->g.tp / 2 : x->g.tp * (1 + below(3));

        a.seg[i] = (struct moe_cut_seg){ unit * units, units, copies };
        len += unit * units;
    }
    x->n = (struct moe_naming){ .part = MOE_PART_WEIGHT, .expert = -1, .layer = 0,
        .stacked = below(2) == 0 };
    x->g.experts = x->g.ep + below(4);
    x->t = (struct moe_tensor){ .name = "t", .dtype = MOE_BF16, .rank = x->n.stacked ? 3 : 2,
        .shape = x->shape };
    x->shape[0] = x->n.stacked ? x->g.experts : a.dir == MOE_CUT_OUT ? len : 1 + below(5);
    x->shape[x->t.rank - 2] = a.dir == MOE_CUT_OUT ? len : 1 + below(5);
    x->shape[x->t.rank - 1] = a.dir == MOE_CUT_IN ? len : 1 + below(5);
    x->t.end = 2;
    for (int d = 0; d < x->t.rank; d++)
        x->t.end *= x->shape[d];
    if ((rc = moe_cut_make(&a, x->g.tp, &plain, &x->n, &x->t, false, &cut, e)) != 0)
        return rc;
    return moe_scatter_init(&x->s, &cut, &x->g, &x->n, &x->t, e);
}

static int
move(struct random *x, struct moe_buf *scratch, struct moe_err *e)
{
    uint64_t shape[MOE_SAFET_MAX_RANK], n;
    int rc = 0;

    x->store.tp = x->g.tp;
    x->whole = malloc(x->t.end);
    x->back = calloc(1, x->t.end);
    for (uint64_t i = 0; i < x->t.end; i++)
        x->whole[i] = (unsigned char)below(256);
    for (uint32_t r = 0; r < x->g.tp * x->g.ep; r++) {
        if (moe_scatter_part(&x->s, r / x->g.tp, r % x->g.tp, &x->t, shape, &n))
            x->store.n[r] = n;
        x->store.p[r] = calloc(1, x->store.n[r] + 1);
    }
    for (uint64_t at = 0; rc == 0 && at < x->t.end; at += n) {
        n = 1 + below(80);
        n = n > x->t.end - at ? x->t.end - at : n;
        rc = moe_scatter_out(&x->s, at, x->whole + at, (size_t)n, scratch, put, &x->store, e);
    }
    for (uint64_t at = 0; rc == 0 && at < x->t.end; at += n) {
        n = 1 + below(80);
        n = n > x->t.end - at ? x->t.end - at : n;
        rc = moe_scatter_in(&x->s, at, x->back + at, (size_t)n, scratch, get, &x->store, e);
    }
    return rc;
}

static void
drop(struct random *x)
{
    for (int r = 0; r < RANKS; r++)
        free(x->store.p[r]);
    free(x->whole);
    free(x->back);
}

int
main(void)
{
    struct moe_buf scratch = MOE_BUF_INIT;
    struct moe_err e = { 0 };
    int moved = 0, same = 0, found = 0, copied = 0;
    struct random x;

    for (int i = 0; i < CASES; i++) {
        if (make(&x, &e) != 0) {
            tap_diag("%s", e.text);
            continue;
        }
        moved += move(&x, &scratch, &e) == 0;
        same += memcmp(x.whole, x.back, x.t.end) == 0;
        /* What every rank has whole: another byte on the last is found. */
        if (x.s.cut.how == MOE_CUT_WHOLE && x.g.tp * x.g.ep > 1 && !x.n.stacked) {
            uint32_t last = x.g.tp * x.g.ep - 1;

            copied++;
            x.store.p[last][below(x.store.n[last])] ^= 1;
            found += moe_scatter_in(&x.s, 0, x.back, x.t.end, &scratch, get, &x.store, &e) ==
                MOE_EFORMAT;
        }
        drop(&x);
    }
    tap_is_int(moved, CASES, "all go out and come back: %s", e.text);
    tap_is_int(same, CASES, "as they were");
    tap_ok(copied > 20, "some are on every rank: %d", copied);
    tap_is_int(found, copied, "a copy that differs is found");
    moe_buf_fini(&scratch);
    return tap_done();
}
