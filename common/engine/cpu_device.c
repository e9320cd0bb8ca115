/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the working space of the processor's back end and the sharing of work
 * among its threads.
 */
#include <stdlib.h>

#include "common/base/num.h"
#include "common/engine/cpu_device.h"

#define LITTLE 20000    /* operations not worth waking workers for */

static bool
space_grow(struct moe_cpu *c, struct moe_cpu_space *s, size_t bytes)
{
    uint64_t cap;
    void *p;

    if (bytes <= s->cap)
        return true;
    if (!moe_num_align(bytes, 4096, &cap) || (p = aligned_alloc(64, cap)) == NULL) {
        if (c->failed.code == 0)
            moe_err_set(&c->failed, MOE_ENOMEM, "working space: out of memory");
        return false;
    }
    free(s->p);
    s->p = p;
    s->cap = cap;
    return true;
}

void *
moe_cpu_device_shared(struct moe_cpu *c, size_t bytes)
{
    return space_grow(c, &c->shared, bytes) ? c->shared.p : NULL;
}

bool
moe_cpu_device_own(struct moe_cpu *c, size_t bytes)
{
    for (int w = 0; w < c->workers; w++) {
        if (!space_grow(c, &c->own[w], bytes))
            return false;
    }
    return true;
}

void
moe_cpu_device_run(struct moe_cpu *c, size_t jobs, size_t work, moe_pool_fn *fn, void *ctx)
{
    if (c->pool == NULL || jobs == 1 || work < LITTLE) {
        for (size_t i = 0; i < jobs; i++)
            fn(ctx, i, 0);
        return;
    }
    moe_pool_run(c->pool, jobs, fn, ctx);
}

size_t
moe_cpu_device_pieces(const struct moe_cpu *c, size_t n, size_t grain)
{
    size_t most = 4 * (size_t)c->workers, pieces = (n + grain - 1) / grain;

    return pieces < 1 ? 1 : pieces < most ? pieces : most;
}
