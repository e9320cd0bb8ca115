/* SPDX-License-Identifier: Apache-2.0 */
/* Going through a pack from its first record to its index, whatever is bad in it. */
#ifndef MOE_STORE_WALK_H
#define MOE_STORE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/store/pack.h"

#define MOE_WALK_BAD 1000

/* What is at one place of a pack. */
struct moe_walk_place {
    uint64_t at;                        /* offset in the file; 0: the pack as a whole */
    int rc;                             /* 0, or MOE_E*, whose text the visitor's e has */
    const struct moe_pack_record *r;    /* NULL if its head is bad */
};

/* A negative result ends the walk. */
typedef int moe_walk_fn(void *ctx, const struct moe_walk_place *at, struct moe_err *e);

/*
 * Visit the records of a pack in order of the file; bodies: compare their
 * checksums, too. What is bad is visited as well; after a bad head the walk goes
 * on where the index knows of a record, MOE_WALK_BAD times at most. dirfd and
 * path are the store's. Errors: those of fn, MOE_ENOMEM.
 */
int moe_walk_pack(int dirfd, const char *path, uint64_t number, bool bodies, moe_walk_fn *fn,
    void *ctx, struct moe_err *e);

#endif
