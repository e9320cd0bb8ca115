/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A team of threads for fork-join work. Workers spin briefly and then sleep on
 * a futex, so that an idle or a shared machine is not burnt. The caller is
 * worker 0. A pool belongs to one caller at a time.
 */
#ifndef MOE_BASE_POOL_H
#define MOE_BASE_POOL_H

#include <stddef.h>

#include "common/base/err.h"

struct moe_pool;

#define MOE_POOL_MAX 256

/* threads 1..MOE_POOL_MAX; 0 = the processors this process may use. */
int moe_pool_new(int threads, struct moe_pool **out, struct moe_err *e);
void moe_pool_free(struct moe_pool *p);
int moe_pool_size(const struct moe_pool *p);

/* Job i of n, run by worker w (0 <= w < size). */
typedef void moe_pool_fn(void *ctx, size_t i, int w);

/*
 * Run fn for i = 0..n-1, handed out in ascending order one at a time from a
 * shared counter; returns when all are done. Memory written by jobs is seen by
 * the caller after. Cannot fail; jobs keep their errors in ctx.
 */
void moe_pool_run(struct moe_pool *p, size_t n, moe_pool_fn *fn, void *ctx);

#endif
