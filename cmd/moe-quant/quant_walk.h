/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All values of a model, matrix by matrix, whatever they are stored in: what
 * looking at a model and comparing two have in common.
 */
#ifndef CMD_QUANT_WALK_H
#define CMD_QUANT_WALK_H

#include "cmd/moe-quant/quant_plan.h"
#include "common/base/pool.h"
#include "common/base/progress.h"

struct quant_walk {
    struct moe_source *s;
    struct quant_plan plan;     /* every matrix as it would be decoded; others copied */
};

/*
 * Open a model for looking at it, with an adapter added or NULL. w may hold
 * something on failure too.
 */
int quant_walk_open(const char *path, const char *lora, struct quant_walk *w,
    struct moe_err *e);
void quant_walk_close(struct quant_walk *w);

/*
 * n values of item i: rows from `row`, or values from `row` of what is no
 * matrix; x NULL: of a type that is no number (n then is 0). Calls for one item
 * come in order from one thread, `worker`. A negative result, with its text in
 * e, ends the walk.
 */
typedef int quant_walk_fn(void *ctx, int worker, size_t i, uint64_t row, size_t n, float *x,
    struct moe_err *e);

/* Walk all items. The failure told is that of the first item that has one. */
int quant_walk_run(struct quant_walk *w, struct moe_pool *pool, struct moe_progress *progress,
    quant_walk_fn *fn, void *ctx, struct moe_err *e);

/* The values that a call of fn for item i may get at most, of any item. */
size_t quant_walk_most(const struct quant_walk *w);

/* The same values of another model, for the callback of a walk over the first. */
int quant_walk_values(struct quant_walk *w, size_t i, uint64_t row, size_t n,
    struct quant_scratch *scratch, float *x, struct moe_err *e);

#endif
