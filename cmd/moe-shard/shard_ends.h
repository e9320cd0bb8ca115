/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two ends of a move that are ranks: tensors dealt out to the files of a
 * split model, and gathered from them.
 */
#ifndef MOE_SHARD_ENDS_H
#define MOE_SHARD_ENDS_H

#include <stdatomic.h>

#include "cmd/moe-shard/shard_move.h"
#include "cmd/moe-shard/shard_ranks.h"
#include "common/base/err.h"
#include "common/formats/cutplan.h"

struct shard_ends {
    const struct moe_cutplan *plan;
    struct shard_ranks *ranks;
    atomic_bool differs;        /* gathering found two copies that differ */
};

/* n bytes of tensor i at `at` to all ranks that have them; a pad's zeros come with the last. */
int shard_ends_deal(struct shard_ends *x, size_t i, uint64_t at, const void *p, size_t n,
    struct shard_move_hand *h, struct moe_err *e);

/* n bytes of tensor i at `at` from the ranks; all copies of them are the same. */
int shard_ends_gather(struct shard_ends *x, size_t i, uint64_t at, void *p, size_t n,
    struct shard_move_hand *h, struct moe_err *e);

#endif
