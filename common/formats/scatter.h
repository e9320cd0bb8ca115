/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a tensor, from the whole to the parts of the ranks and back. Any
 * range of the whole may be moved at a time; whole rows of the cut move best.
 */
#ifndef MOE_FORMATS_SCATTER_H
#define MOE_FORMATS_SCATTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/formats/cut.h"
#include "common/formats/grid.h"

/* A tensor and who has what of it, within one pipeline stage. */
struct moe_scatter {
    const char *name;           /* for messages */
    struct moe_cut cut;         /* by the tensor ranks */
    const struct moe_grid *grid;
    uint64_t layer;
    int64_t expert;             /* >= 0: a tensor of one expert; -1: of none, or a stack */
    uint64_t slabs;             /* experts of a stack; else 1 */
    bool stacked;
    uint64_t slab;              /* bytes of one */
    uint64_t outer, inner;      /* a slab is [outer][cut.n][inner bytes] */
    uint64_t bytes;             /* of the whole */
};

/*
 * For tensor t, of layer (0 when of none). Errors: MOE_EUNSUP (ranks would share
 * a byte), MOE_EFORMAT (a stack of another number of experts than the grid's).
 */
int moe_scatter_init(struct moe_scatter *s, const struct moe_cut *c, const struct moe_grid *g,
    const struct moe_naming *n, const struct moe_tensor *t, struct moe_err *e);

/* Shape and bytes of the part of (ep, tp); false: it has none. */
bool moe_scatter_part(const struct moe_scatter *s, uint32_t ep, uint32_t tp,
    const struct moe_tensor *t, uint64_t shape[MOE_SAFET_MAX_RANK], uint64_t *bytes);

/* n bytes at `at` of the part of (ep, tp): to write, or to be read into p. */
typedef int moe_scatter_put(void *ctx, uint32_t ep, uint32_t tp, uint64_t at, const void *p,
    size_t n, struct moe_err *e);
typedef int moe_scatter_get(void *ctx, uint32_t ep, uint32_t tp, uint64_t at, void *p, size_t n,
    struct moe_err *e);

/* Bytes [at, at + n) of the whole to all who have them. scratch is memory to work in. */
int moe_scatter_out(const struct moe_scatter *s, uint64_t at, const void *p, size_t n,
    struct moe_buf *scratch, moe_scatter_put *put, void *ctx, struct moe_err *e);

/* What no byte of the whole fills: zeros behind the last row of a padded tensor. */
int moe_scatter_pad(const struct moe_scatter *s, moe_scatter_put *put, void *ctx,
    struct moe_err *e);

/*
 * Bytes [at, at + n) of the whole from the parts; copies are compared. Errors:
 * MOE_EFORMAT (two copies differ) and get's.
 */
int moe_scatter_in(const struct moe_scatter *s, uint64_t at, void *p, size_t n,
    struct moe_buf *scratch, moe_scatter_get *get, void *ctx, struct moe_err *e);

/* Bytes to move at a time: whole rows near `want`, or `want` when a row is longer. */
size_t moe_scatter_piece(const struct moe_scatter *s, size_t want);

#endif
