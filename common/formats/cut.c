/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the arithmetic of a cut: the ranges of a rank, how each part of an
 * encoding lies on the matrix, and when a scale must be refined. Moves nothing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/num.h"
#include "common/formats/cut.h"

/* How a tensor lies on the matrix: per direction the dimension and what an index stands for. */
struct side {
    int dim;                    /* behind the experts'; -1 = the tensor does not have it */
    uint64_t per;               /* rows or columns of an index */
    uint64_t mult;              /* of the shape that are one index */
    bool fixed;                 /* an index cannot be halved: words, blocks of the format */
};

struct lay { struct side out, in; enum moe_cut_fill fill; };

static const struct side absent = { -1, 1, 1, true };

static uint64_t
gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t r = a % b;

        a = b;
        b = r;
    }
    return a;
}

static uint64_t
ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* ---- Ranges ------------------------------------------------------------------- */

/* Rank's rows or columns of a segment, from the segment's start. */
static void
seg_range(const struct moe_cut_axis *a, const struct moe_cut_seg *s, uint32_t ranks,
    uint32_t rank, struct moe_cut_range *out)
{
    uint64_t unit = s->units == 0 ? 0 : s->len / s->units, each = s->units / ranks;
    uint64_t more = s->units % ranks, lo, hi;

    if (more == 0) {
        lo = rank * each;
        hi = lo + each;
    } else if (s->copies) {
        lo = (uint64_t)rank * s->units / ranks;
        hi = lo + 1;
    } else if (a->spread == MOE_CUT_CHUNK) {
        each = ceil_div(s->units, ranks);
        lo = each * rank < s->units ? each * rank : s->units;
        hi = each * (rank + 1) < s->units ? each * (rank + 1) : s->units;
    } else {
        lo = rank * each + (rank < more ? rank : more);
        hi = lo + each + (rank < more);
    }
    *out = (struct moe_cut_range){ lo * unit, hi * unit };
}

int
moe_cut_ranges(const struct moe_cut *c, uint32_t rank, struct moe_cut_range out[MOE_CUT_SEGS])
{
    uint64_t at = 0;

    for (int i = 0; i < c->axis.n; i++) {
        struct moe_cut_range r;

        seg_range(&c->axis, &c->axis.seg[i], c->ranks, rank, &r);
        out[i].lo = (at + r.lo) / c->step;
        out[i].hi = r.hi > r.lo ? ceil_div(at + r.hi, c->step) : out[i].lo;
        at += c->axis.seg[i].len;
    }
    return c->axis.n;
}

uint64_t
moe_cut_share(const struct moe_cut *c, uint32_t rank)
{
    uint64_t sum = 0;

    for (int i = 0; i < c->axis.n; i++) {
        struct moe_cut_range r;

        seg_range(&c->axis, &c->axis.seg[i], c->ranks, rank, &r);
        sum += r.hi - r.lo;
    }
    return sum;
}

bool
moe_cut_shape(const struct moe_cut *c, uint32_t rank, const uint64_t *shape, int dims,
    uint64_t *out)
{
    struct moe_cut_range r[MOE_CUT_SEGS];
    uint64_t sum = 0;

    if (dims > 0)
        memcpy(out, shape, (size_t)dims * sizeof(*out));
    if (c->how != MOE_CUT_AXIS)
        return c->how == MOE_CUT_WHOLE || rank == 0;
    for (int i = 0, n = moe_cut_ranges(c, rank, r); i < n; i++)
        sum += r[i].hi - r[i].lo;
    out[c->dim] = sum * c->mult;
    return true;
}

/* The numbers of ranks up to the units that divide them (and that they divide, with copies). */
static int
refuse_units(const struct moe_cut_seg *s, uint32_t ranks, const struct moe_tensor *t,
    struct moe_err *e)
{
    char legal[128] = "";
    size_t at = 0;

    for (uint64_t k = 1; k <= s->units && k <= MOE_CUT_MAX_RANKS && at < sizeof(legal) - 24; k++) {
        if (s->units % k == 0)
            at += (size_t)snprintf(legal + at, sizeof(legal) - at, " %" PRIu64, k);
    }
    return moe_err_set(e, MOE_EUNSUP, "%s: %" PRIu64 " %s cannot be dealt to %" PRIu32
        " ranks; legal:%s%s", t->name, s->units,
        s->units == s->len ? "rows or columns" : "heads or groups", ranks, legal,
        s->copies ? " and multiples of the last" : "");
}

static int
check_units(const struct moe_cut_axis *a, uint32_t ranks, const struct moe_tensor *t,
    struct moe_err *e)
{
    for (int i = 0; i < a->n; i++) {
        const struct moe_cut_seg *s = &a->seg[i];
        bool copied = s->copies && s->units > 0 && ranks % s->units == 0;

        if (s->units % ranks != 0 && !copied && a->spread == MOE_CUT_EVEN)
            return refuse_units(s, ranks, t, e);
    }
    return 0;
}

/* ---- How a part lies on the matrix --------------------------------------------- */

static struct side
plain(int dim)
{
    return (struct side){ dim, 1, 1, true };
}

/* Codes of `bits` in words of 32; a width that does not divide 32 spans several words. */
static struct side
words(int dim, int bits)
{
    uint64_t b = bits > 0 ? (uint64_t)bits : 4, g = gcd(32, b);

    return (struct side){ dim, 32 / g, b / g, true };
}

/* Groups of a scale; 0 = the whole row, which has no groups to cut. */
static struct side
groups(int dim, uint64_t group, bool fixed)
{
    return group == 0 ? absent : (struct side){ dim, group, 1, fixed };
}

static bool
is_transposed(const struct moe_qrule *q)
{
    return q->enc == MOE_ENC_GPTQ || q->enc == MOE_ENC_AWQ;
}

static bool
is_micro(const struct moe_qrule *q)
{
    return q->enc == MOE_ENC_CT_MXFP4 || q->enc == MOE_ENC_CT_MXFP8 ||
        q->enc == MOE_ENC_CT_NVFP4 || q->enc == MOE_ENC_OSS_MXFP4;
}

static struct lay
lay_codes(const struct moe_qrule *q)
{
    switch (q->enc) {
    case MOE_ENC_GPTQ: return (struct lay){ plain(1), words(0, q->bits), MOE_CUT_BYTES };
    case MOE_ENC_AWQ: return (struct lay){ words(1, 4), plain(0), MOE_CUT_BYTES };
    case MOE_ENC_CT_MXFP4: case MOE_ENC_CT_NVFP4:
        return (struct lay){ plain(0), { 1, 2, 1, true }, MOE_CUT_BYTES };
    case MOE_ENC_OSS_MXFP4: return (struct lay){ plain(0), { 1, 32, 1, true }, MOE_CUT_BYTES };
    default: return (struct lay){ plain(0), words(1, q->bits), MOE_CUT_BYTES };
    }
}

/* Scales and zero points of whole values: a number, one a row, one a group or a block. */
static struct lay
lay_scale(const struct moe_qrule *q, int dims)
{
    uint64_t rows = q->block_rows > 1 ? q->block_rows : 1, group = q->group;

    if (is_transposed(q))
        return (struct lay){ plain(1), groups(0, group, false), MOE_CUT_BYTES };
    if (dims == 0 || (q->block_rows == 0 && group == 0 && q->enc == MOE_ENC_CT_FP8))
        return (struct lay){ absent, absent, MOE_CUT_BYTES };
    if (q->enc == MOE_ENC_OSS_MXFP4)
        group = 32;
    return (struct lay){ { 0, rows, 1, false }, dims == 1 ? absent :
        groups(1, group, is_micro(q)), MOE_CUT_BYTES };
}

static struct lay
lay_zero(const struct moe_qrule *q, int dims)
{
    struct lay l = lay_scale(q, dims);

    if (q->enc == MOE_ENC_AWQ)
        l.out = words(1, 4);
    else if (q->enc == MOE_ENC_GPTQ)
        l.out = words(1, q->bits);
    else if (q->enc == MOE_ENC_CT_PACK)
        l.out = words(0, q->bits);
    return l;
}

/* A ggml row is blocks of so many columns and bytes, seen as bytes. */
static struct lay
lay_weight(const struct moe_naming *n, const struct moe_qrule *q, int dims)
{
    struct lay l = { plain(0), plain(1), MOE_CUT_BYTES };

    if (dims < 2)
        l.in = absent;
    if (n->transposed) {
        l.out = plain(1);
        l.in = plain(0);
    }
    if (q->enc == MOE_ENC_GGML)
        l.in = (struct side){ dims - 1, q->group, q->block_rows, true };
    return l;
}

static struct lay
lay_of(const struct moe_naming *n, const struct moe_qrule *q, int dims)
{
    switch (n->part) {
    case MOE_PART_WEIGHT: return lay_weight(n, q, dims);
    case MOE_PART_BIAS: return (struct lay){ plain(0), absent, MOE_CUT_BYTES };
    case MOE_PART_PACKED: return lay_codes(q);
    case MOE_PART_SCALE: return lay_scale(q, dims);
    case MOE_PART_ZERO: return lay_zero(q, dims);
    case MOE_PART_SHAPE: return (struct lay){ absent, absent, MOE_CUT_SHAPE };
    case MOE_PART_G_IDX: return (struct lay){ absent, plain(0), MOE_CUT_G_IDX };
    default: return (struct lay){ absent, absent, MOE_CUT_BYTES };
    }
}

static bool
extent(const struct side *s, const struct moe_naming *n, const struct moe_tensor *t,
    uint64_t *out)
{
    int dim = s->dim + (n->stacked ? 1 : 0);

    *out = 1;
    if (s->dim < 0)
        return true;
    return dim < t->rank && moe_num_mul(t->shape[dim] / s->mult, s->per, out);
}

int
moe_cut_size(const struct moe_qrule *q, const struct moe_naming *n, const struct moe_tensor *t,
    uint64_t *rows, uint64_t *cols, struct moe_err *e)
{
    struct lay l = lay_of(n, q, t->rank - (n->stacked ? 1 : 0));

    if (!extent(&l.out, n, t, rows) || !extent(&l.in, n, t, cols))
        return moe_err_set(e, MOE_EFORMAT, "%s: its shape is not that of a matrix", t->name);
    return 0;
}

/* ---- A cut ---------------------------------------------------------------------- */

/* The largest step that meets every place where the matrix is cut and divides per. */
static uint64_t
step_of(const struct moe_cut *c, uint64_t per)
{
    uint64_t g = per, at = 0;

    for (int i = 0; i < c->axis.n; at += c->axis.seg[i].len, i++) {
        for (uint32_t r = 0; r < c->ranks && g > 1; r++) {
            struct moe_cut_range x;

            seg_range(&c->axis, &c->axis.seg[i], c->ranks, r, &x);
            if (x.hi == x.lo)
                continue;
            g = gcd(g, at + x.lo);
            /* The last group of a matrix may be a part of one. */
            if (i + 1 < c->axis.n || x.hi < c->axis.seg[i].len)
                g = gcd(g, at + x.hi);
        }
    }
    return g;
}

/* Steps of a part whose index is per rows or columns; a scale may be refined. */
static int
align(struct moe_cut *c, const struct side *s, const struct moe_tensor *t, struct moe_err *e)
{
    c->per = s->per;
    c->step = step_of(c, s->per);
    c->repeat = s->per / c->step;
    if (c->repeat == 1)
        return 0;
    if (s->fixed)
        return moe_err_set(e, MOE_EUNSUP, "%s: %" PRIu64 " %s a rank are no multiple of the %"
            PRIu64 " that one %s of it holds", t->name, moe_cut_share(c, 0),
            c->axis.dir == MOE_CUT_OUT ? "rows" : "columns", s->per,
            t->dtype == MOE_I32 ? "word" : "block");
    if (c->step < MOE_CUT_MIN_GROUP)
        return moe_err_set(e, MOE_EUNSUP, "%s: a group of %" PRIu64 " would be left of %" PRIu64
            ", fewer than %d", t->name, c->step, s->per, MOE_CUT_MIN_GROUP);
    c->group = c->step;
    return 0;
}

/* The dimension that is cut has the indices that the matrix' size asks for. */
static int
check_size(struct moe_cut *c, const struct side *s, const struct moe_tensor *t, struct moe_err *e)
{
    uint64_t have = t->shape[c->dim], len = 0, want;

    for (int i = 0; i < c->axis.n; i++)
        len += c->axis.seg[i].len;
    want = ceil_div(len, s->per);
    c->n = have / s->mult;
    c->mult = s->mult;
    if (have % s->mult == 0 && (c->n == want || (c->axis.pad > 0 && c->n <= want)))
        return 0;
    return moe_err_set(e, MOE_EFORMAT, "%s: dimension %d is %" PRIu64 ", not %" PRIu64, t->name,
        c->dim, have, want * s->mult);
}

int
moe_cut_make(const struct moe_cut_axis *axis, uint32_t ranks, const struct moe_qrule *q,
    const struct moe_naming *n, const struct moe_tensor *t, bool act_order,
    struct moe_cut *out, struct moe_err *e)
{
    int stack = n->stacked ? 1 : 0, rc;
    struct lay l = lay_of(n, q, t->rank - stack);
    const struct side *s = axis->dir == MOE_CUT_OUT ? &l.out : &l.in;
    bool scale = n->part == MOE_PART_SCALE || n->part == MOE_PART_ZERO;

    *out = (struct moe_cut){ .how = MOE_CUT_WHOLE, .fill = MOE_CUT_BYTES, .axis = *axis,
        .ranks = ranks, .n = 1, .mult = 1, .per = 1, .step = 1, .repeat = 1 };
    if (axis->dir == MOE_CUT_NONE || t->rank == stack)
        return 0;
    if ((rc = check_units(axis, ranks, t, e)) != 0)
        return rc;
    if (l.fill == MOE_CUT_SHAPE) {
        out->fill = MOE_CUT_SHAPE;
        return 0;
    }
    if (s->dim < 0 || (act_order && scale && axis->dir == MOE_CUT_IN)) {
        if (axis->dir == MOE_CUT_IN && n->part == MOE_PART_BIAS)
            out->how = MOE_CUT_FIRST;
        return 0;
    }
    out->how = MOE_CUT_AXIS;
    out->dim = s->dim + stack;
    if (out->dim >= t->rank)
        return moe_err_set(e, MOE_EFORMAT, "%s: %d dimensions are too few to be cut", t->name,
            t->rank);
    if ((rc = check_size(out, s, t, e)) != 0 || (rc = align(out, s, t, e)) != 0)
        return rc;
    if (l.fill == MOE_CUT_G_IDX && !act_order) {
        uint64_t g = q->group == 0 ? t->shape[out->dim] : q->group;

        out->fill = MOE_CUT_G_IDX;
        out->whole_group = g;
        out->group = step_of(out, g);
    }
    return 0;
}
