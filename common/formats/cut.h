/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a matrix is cut for the ranks of tensor parallelism, and what that means
 * for each of the tensors it is stored in: weight, packed codes, scales, zero
 * points, bias. Arithmetic of shapes alone; the bytes are moved by scatter.h,
 * and which matrix is cut how is cutrule.h.
 *
 * A matrix is [out][in]. OUT cuts its rows ("column parallel": q, k, v, gate,
 * up), IN its columns ("row parallel": o, down). The cut is told in rows or
 * columns of the matrix; a tensor whose index stands for several of them (words
 * of codes, groups of a scale) is cut at the same places. Where these are not
 * between its indices, a scale is refined: each stands `repeat` times, for
 * groups of `step`; the values decoded are the same. Codes are never cut.
 */
#ifndef MOE_FORMATS_CUT_H
#define MOE_FORMATS_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/naming.h"
#include "common/formats/qscheme.h"
#include "common/formats/safet.h"

#define MOE_CUT_SEGS 3
#define MOE_CUT_MAX_RANKS 65536
#define MOE_CUT_MIN_GROUP 16    /* rows or columns of a refined group */

enum moe_cut_dir { MOE_CUT_NONE, MOE_CUT_OUT, MOE_CUT_IN };

/* What becomes of units that the ranks do not divide. */
enum moe_cut_spread {
    MOE_CUT_EVEN,               /* refused */
    MOE_CUT_CHUNK,              /* ceil(units / ranks) each; the last have fewer or none */
    MOE_CUT_BALANCED            /* the first units % ranks ranks have one more */
};

/* A run of rows or columns that is cut on its own: q, k and v of one matrix, gate and up. */
struct moe_cut_seg {
    uint64_t len;               /* rows or columns */
    uint64_t units;             /* pieces that are never cut (heads); divides len */
    bool copies;                /* fewer units than ranks: unit floor(rank * units / ranks) each */
};

struct moe_cut_axis {
    enum moe_cut_dir dir;       /* NONE: the same on every rank */
    int n;
    struct moe_cut_seg seg[MOE_CUT_SEGS];
    uint64_t pad;               /* > 0: rows are padded with zeros to this many */
    enum moe_cut_spread spread;
};

enum moe_cut_how {
    MOE_CUT_WHOLE,              /* every rank has all of it */
    MOE_CUT_FIRST,              /* rank 0 alone: a bias that is added once */
    MOE_CUT_AXIS
};

/* Tensors that are not cut but made: from the matrix' own shape, from the group. */
enum moe_cut_fill { MOE_CUT_BYTES, MOE_CUT_SHAPE, MOE_CUT_G_IDX };

struct moe_cut {
    enum moe_cut_how how;
    enum moe_cut_fill fill;
    struct moe_cut_axis axis;
    uint32_t ranks;
    int dim;                    /* of the tensor, the experts' of a stack counted */
    uint64_t n;                 /* indices along dim */
    uint64_t mult;              /* of the shape that are one index (bytes of a block); 1 */
    uint64_t per;               /* rows or columns of an index */
    uint64_t step;              /* of an index of a part; divides per */
    uint64_t repeat;            /* per / step */
    uint64_t group;             /* columns of a scale: of G_IDX, and where scales are refined */
    uint64_t whole_group;       /* G_IDX: of the whole matrix */
};

/* Indices [lo, hi) of a part's dim, in units of step; lo == hi: nothing. */
struct moe_cut_range { uint64_t lo, hi; };

/*
 * The cut of tensor t, which is part n->part of a matrix stored as q says.
 * act_order: rows of a GPTQ matrix are not in the order of their groups; an IN
 * cut leaves its scales whole. Errors: MOE_EUNSUP (cannot be cut so, with the
 * reason and, for heads, the numbers that can), MOE_EFORMAT (the shape is not
 * that of the matrix).
 */
int moe_cut_make(const struct moe_cut_axis *axis, uint32_t ranks, const struct moe_qrule *q,
    const struct moe_naming *n, const struct moe_tensor *t, bool act_order,
    struct moe_cut *out, struct moe_err *e);

/*
 * Rows and columns of a matrix by the tensor of its values: part WEIGHT or PACKED
 * (one dimension: no columns). Errors: MOE_EFORMAT (too few dimensions, overflow).
 */
int moe_cut_size(const struct moe_qrule *q, const struct moe_naming *n,
    const struct moe_tensor *t, uint64_t *rows, uint64_t *cols, struct moe_err *e);

/* What rank has of it, in ascending order; returns how many ranges (AXIS only). */
int moe_cut_ranges(const struct moe_cut *c, uint32_t rank,
    struct moe_cut_range out[MOE_CUT_SEGS]);

/* Rows or columns of the matrix that rank has. */
uint64_t moe_cut_share(const struct moe_cut *c, uint32_t rank);

/* Shape of rank's part of a tensor of that shape; false: it has none. */
bool moe_cut_shape(const struct moe_cut *c, uint32_t rank, const uint64_t *shape, int dims,
    uint64_t *out);

#endif
