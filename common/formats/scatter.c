/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the moving of bytes between a tensor and its parts. Which rows and
 * columns go where is cut.c's.
 *
 * Both directions walk the whole in slabs (experts), rows of the cut, and within
 * a row the ranges of each rank; both take many whole rows at a time, so that
 * the part of a rank is one piece.
 */
#include <inttypes.h>
#include <string.h>

#include "common/base/num.h"
#include "common/formats/scatter.h"

#define ZEROS 65536

/* One call, in either direction: exactly one of put and get is there. */
struct walk {
    const struct moe_scatter *s;
    struct moe_buf *scratch;
    moe_scatter_put *put;
    moe_scatter_get *get;
    void *ctx;
    struct moe_err *e;
};

/* ---- Geometry ------------------------------------------------------------------- */

int
moe_scatter_init(struct moe_scatter *s, const struct moe_cut *c, const struct moe_grid *g,
    const struct moe_naming *n, const struct moe_tensor *t, struct moe_err *e)
{
    uint64_t bits = moe_dtype_bits(t->dtype), inner = bits, outer = 1;

    *s = (struct moe_scatter){ .name = t->name, .cut = *c, .grid = g,
        .layer = n->layer < 0 ? 0 : (uint64_t)n->layer, .expert = n->stacked ? -1 : n->expert,
        .slabs = 1, .stacked = n->stacked, .bytes = t->end - t->begin };
    if (n->stacked) {
        if (t->rank < 1 || (g->ep > 1 && t->shape[0] != g->experts))
            return moe_err_set(e, MOE_EFORMAT, "%s: not a stack of %" PRIu64 " experts", t->name,
                g->experts);
        s->slabs = t->shape[0];
    }
    s->slab = s->slabs == 0 ? 0 : s->bytes / s->slabs;
    if (c->how != MOE_CUT_AXIS) {
        s->outer = 1;
        s->inner = s->slab;
        return 0;
    }
    for (int d = n->stacked ? 1 : 0; d < c->dim; d++)
        outer *= t->shape[d];
    for (int d = c->dim + 1; d < t->rank; d++)
        inner *= t->shape[d];
    inner *= c->mult;
    if (inner % 8 != 0)
        return moe_err_set(e, MOE_EUNSUP, "%s: %s cannot be cut along dimension %d: ranks would "
            "share a byte", t->name, moe_dtype_name(t->dtype), c->dim);
    s->outer = outer;
    s->inner = inner / 8;
    return 0;
}

static bool
holds(const struct moe_scatter *s, uint64_t slab, uint32_t ep)
{
    if (s->stacked)
        return moe_grid_holds(s->grid, s->layer, slab, ep);
    return s->expert < 0 || moe_grid_holds(s->grid, s->layer, (uint64_t)s->expert, ep);
}

/* Slabs before this one that (ep) holds. */
static uint64_t
slabs_before(const struct moe_scatter *s, uint64_t slab, uint32_t ep)
{
    uint64_t n = 0;

    for (uint64_t i = 0; i < slab; i++)
        n += holds(s, i, ep);
    return n;
}

/* Indices of tp's part along the cut dimension. */
static uint64_t
width(const struct moe_scatter *s, uint32_t tp)
{
    struct moe_cut_range r[MOE_CUT_SEGS];
    uint64_t m = 0;

    for (int i = 0, n = moe_cut_ranges(&s->cut, tp, r); i < n; i++)
        m += r[i].hi - r[i].lo;
    return m;
}

/* Bytes of tp's part of a slab. */
static uint64_t
part_slab(const struct moe_scatter *s, uint32_t tp)
{
    if (s->cut.how == MOE_CUT_AXIS)
        return s->outer * width(s, tp) * s->inner;
    return s->cut.how == MOE_CUT_FIRST && tp > 0 ? 0 : s->slab;
}

bool
moe_scatter_part(const struct moe_scatter *s, uint32_t ep, uint32_t tp,
    const struct moe_tensor *t, uint64_t shape[MOE_SAFET_MAX_RANK], uint64_t *bytes)
{
    uint64_t n = slabs_before(s, s->slabs, ep);

    if (!moe_cut_shape(&s->cut, tp, t->shape, t->rank, shape) || (n == 0 && s->slabs > 0))
        return false;
    if (s->stacked)
        shape[0] = n;
    *bytes = n * part_slab(s, tp);
    return true;
}

size_t
moe_scatter_piece(const struct moe_scatter *s, size_t want)
{
    uint64_t row = s->cut.how == MOE_CUT_AXIS ? s->cut.n * s->inner : 1;

    return row == 0 || row > want ? want : want - (size_t)(want % row);
}

/* ---- One piece ------------------------------------------------------------------- */

/* Move n bytes between p, of the whole, and the part; `again`: p is filled, compare. */
static int
move(struct walk *w, uint32_t ep, uint32_t tp, uint64_t at, char *p, size_t n, bool again)
{
    struct moe_buf *b = w->scratch;
    int rc;

    if (n == 0)
        return 0;
    if (w->put != NULL)
        return w->put(w->ctx, ep, tp, at, p, n, w->e);
    if (!again)
        return w->get(w->ctx, ep, tp, at, p, n, w->e);
    moe_buf_clear(b);
    if (moe_buf_room(b, n) == NULL)
        return moe_err_set(w->e, MOE_ENOMEM, "%s: out of memory", w->s->name);
    if ((rc = w->get(w->ctx, ep, tp, at, b->p, n, w->e)) != 0)
        return rc;
    return memcmp(b->p, p, n) == 0 ? 0 : moe_err_set(w->e, MOE_EFORMAT,
        "%s: its copies on the ranks differ", w->s->name);
}

/* Whether the rank before has the same range of a segment that is copied. */
static bool
is_copy(const struct moe_scatter *s, uint32_t tp, int seg)
{
    struct moe_cut_range a[MOE_CUT_SEGS], b[MOE_CUT_SEGS];

    if (tp == 0 || !s->cut.axis.seg[seg].copies)
        return false;
    (void)moe_cut_ranges(&s->cut, tp, a);
    (void)moe_cut_ranges(&s->cut, tp - 1, b);
    return a[seg].lo == b[seg].lo && a[seg].hi == b[seg].hi;
}

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- A piece of one row ------------------------------------------------------------ */

/* Bytes [from, from + n) of row o; p has them. base: of the part's slab. */
static int
part_of_row(struct walk *w, uint32_t ep, uint32_t tp, uint64_t base, uint64_t o, uint64_t from,
    char *p, size_t n, bool copy)
{
    const struct moe_scatter *s = w->s;
    struct moe_cut_range r[MOE_CUT_SEGS];
    uint64_t k = s->cut.repeat, at = base + o * width(s, tp) * s->inner;
    int segs = moe_cut_ranges(&s->cut, tp, r), rc;

    for (int i = 0; i < segs; i++) {
        uint64_t hi = least(r[i].hi, s->cut.n * k);

        /* Without repeats a range is one run; with them each index is one. */
        for (uint64_t j = r[i].lo; j < hi; j = k == 1 ? hi : j + 1) {
            uint64_t a = j / k * s->inner, b = k == 1 ? hi * s->inner : a + s->inner;
            uint64_t lo = a > from ? a : from, end = least(b, from + n);

            if (lo < end && (rc = move(w, ep, tp, at + (j - r[i].lo) * s->inner + (lo - a),
                p + (lo - from), (size_t)(end - lo), copy || is_copy(s, tp, i) ||
                j % k != 0)) != 0)
                return rc;
        }
        at += (r[i].hi - r[i].lo) * s->inner;
    }
    return 0;
}

/* ---- Many whole rows ----------------------------------------------------------------- */

/* Between rows p of the whole and rows q of tp's part. False: copies differ. */
static bool
weave(const struct moe_scatter *s, uint32_t tp, uint64_t rows, char *p, char *q, bool out,
    bool copy)
{
    struct moe_cut_range r[MOE_CUT_SEGS];
    uint64_t k = s->cut.repeat, inner = s->inner, row = s->cut.n * inner;
    int segs = moe_cut_ranges(&s->cut, tp, r);
    bool again[MOE_CUT_SEGS];

    for (int i = 0; i < segs; i++)
        again[i] = copy || is_copy(s, tp, i);
    for (uint64_t o = 0; o < rows; o++, p += row) {
        for (int i = 0; i < segs; i++) {
            uint64_t hi = least(r[i].hi, s->cut.n * k);

            for (uint64_t j = r[i].lo; j < hi; j = k == 1 ? hi : j + 1) {
                size_t n = (size_t)((k == 1 ? hi - j : 1) * inner);
                char *a = p + j / k * inner, *b = q + (j - r[i].lo) * inner;

                if (out)
                    memcpy(b, a, n);
                else if (!again[i] && j % k == 0)
                    memcpy(a, b, n);
                else if (memcmp(a, b, n) != 0)
                    return false;
            }
            q += (r[i].hi - r[i].lo) * inner;
        }
    }
    return true;
}

static int
whole_rows(struct walk *w, uint32_t ep, uint32_t tp, uint64_t base, uint64_t o, uint64_t rows,
    char *p, bool copy)
{
    const struct moe_scatter *s = w->s;
    uint64_t m = width(s, tp) * s->inner, at = base + o * m;
    size_t n = (size_t)(rows * m);
    char *q;
    int rc;

    if (n == 0)
        return 0;
    moe_buf_clear(w->scratch);
    if ((q = moe_buf_room(w->scratch, n)) == NULL)
        return moe_err_set(w->e, MOE_ENOMEM, "%s: out of memory", s->name);
    if (w->put != NULL) {
        if (s->cut.axis.pad > 0)
            memset(q, 0, n);
        (void)weave(s, tp, rows, p, q, true, copy);
        return w->put(w->ctx, ep, tp, at, q, n, w->e);
    }
    if ((rc = w->get(w->ctx, ep, tp, at, q, n, w->e)) != 0)
        return rc;
    return weave(s, tp, rows, p, q, false, copy) ? 0 :
        moe_err_set(w->e, MOE_EFORMAT, "%s: its copies on the ranks differ", s->name);
}

/* ---- The whole ------------------------------------------------------------------------ */

/* [at, at + n) of a slab, for one rank whose slab begins at base. */
static int
slab_part(struct walk *w, uint32_t ep, uint32_t tp, uint64_t base, uint64_t at, char *p,
    uint64_t n, bool copy)
{
    const struct moe_scatter *s = w->s;
    uint64_t row = s->cut.n * s->inner;
    int rc;

    if (s->cut.how != MOE_CUT_AXIS)
        return part_slab(s, tp) == 0 ? 0 : move(w, ep, tp, base + at, p, (size_t)n, copy);
    while (n > 0) {
        uint64_t o = at / row, from = at % row, k = least(n, row - from);

        if (s->outer > 1 && from == 0 && n >= row && s->cut.axis.pad == 0) {
            k = n / row * row;
            rc = whole_rows(w, ep, tp, base, o, n / row, p, copy);
        } else {
            rc = part_of_row(w, ep, tp, base, o, from, p, (size_t)k, copy);
        }
        if (rc != 0)
            return rc;
        at += k;
        p += k;
        n -= k;
    }
    return 0;
}

/* The whole's bytes are p; const is cast away for put, which does not write them. */
static int
walk(struct walk *w, uint64_t at, char *p, uint64_t n)
{
    const struct moe_scatter *s = w->s;
    int rc;

    while (n > 0) {
        uint64_t slab = at / s->slab, from = at % s->slab, k = least(n, s->slab - from);
        bool copy = false;

        for (uint32_t ep = 0; ep < s->grid->ep; ep++) {
            uint64_t before;

            if (!holds(s, slab, ep))
                continue;
            before = slabs_before(s, slab, ep);
            for (uint32_t tp = 0; tp < s->grid->tp; tp++) {
                /* A tensor that is whole on every rank: all but the first are compared. */
                bool again = copy || (s->cut.how == MOE_CUT_WHOLE && tp > 0);

                if ((rc = slab_part(w, ep, tp, before * part_slab(s, tp), from, p, k,
                    again)) != 0)
                    return rc;
            }
            copy = true;
        }
        at += k;
        p += k;
        n -= k;
    }
    return 0;
}

int
moe_scatter_out(const struct moe_scatter *s, uint64_t at, const void *p, size_t n,
    struct moe_buf *scratch, moe_scatter_put *put, void *ctx, struct moe_err *e)
{
    struct walk w = { s, scratch, put, NULL, ctx, e };

    return walk(&w, at, (char *)(uintptr_t)p, n);
}

int
moe_scatter_in(const struct moe_scatter *s, uint64_t at, void *p, size_t n,
    struct moe_buf *scratch, moe_scatter_get *get, void *ctx, struct moe_err *e)
{
    struct walk w = { s, scratch, NULL, get, ctx, e };

    return walk(&w, at, p, n);
}

/* Only the last segment is padded, and only along the first dimension of a slab. */
int
moe_scatter_pad(const struct moe_scatter *s, moe_scatter_put *put, void *ctx,
    struct moe_err *e)
{
    static const char zeros[ZEROS];
    struct moe_cut_range r[MOE_CUT_SEGS];
    int rc;

    if (s->cut.how != MOE_CUT_AXIS || s->cut.axis.pad == 0)
        return 0;
    for (uint32_t tp = 0; tp < s->grid->tp; tp++) {
        uint64_t lo, n;

        (void)moe_cut_ranges(&s->cut, tp, r);
        lo = r[0].lo > s->cut.n ? r[0].lo : s->cut.n;
        n = r[0].hi > lo ? (r[0].hi - lo) * s->inner : 0;
        for (uint32_t ep = 0; ep < s->grid->ep; ep++) {
            for (uint64_t at = 0; at < n; at += ZEROS) {
                if ((rc = put(ctx, ep, tp, (lo - r[0].lo) * s->inner + at, zeros,
                    (size_t)least(ZEROS, n - at), e)) != 0)
                    return rc;
            }
        }
    }
    return 0;
}
