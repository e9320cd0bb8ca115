/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The moving of all tensors of a model: pieces of each are read, digested and
 * written, tensors in parallel where both ends allow it. What is at the ends
 * is the caller's.
 */
#ifndef MOE_SHARD_MOVE_H
#define MOE_SHARD_MOVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/progress.h"
#include "common/formats/cutplan.h"
#include "common/trust/digest.h"

/* What a worker has for itself. */
struct shard_move_hand {
    struct moe_buf piece, scratch;
    struct moe_err err;
};

struct shard_move {
    const struct moe_cutplan *plan;
    void *ctx;
    /* Before tensors [i, i + n) are moved. */
    void (*batch)(void *ctx, size_t i, size_t n);
    /* n bytes of tensor i at `at`, into p. */
    int (*read)(void *ctx, size_t i, uint64_t at, void *p, size_t n,
        struct shard_move_hand *h, struct moe_err *e);
    int (*write)(void *ctx, size_t i, uint64_t at, const void *p, size_t n,
        struct shard_move_hand *h, struct moe_err *e);
    /* After the last byte of tensor i, with its digest. NULL: nothing. */
    int (*done)(void *ctx, size_t i, const unsigned char sum[MOE_DIGEST_LEN],
        struct shard_move_hand *h, struct moe_err *e);
    bool in_order;              /* one thread, ascending: an end is a stream */
    int threads;                /* 0: the processors */
    struct moe_progress *progress;
};

/* Move all. Errors: those of the ends, MOE_ENOMEM, MOE_ESTOP. */
int shard_move_run(const struct shard_move *m, struct moe_err *e);

#endif
