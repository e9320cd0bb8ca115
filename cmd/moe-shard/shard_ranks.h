/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a split model's ranks, all of them at once, to write or to read.
 * What is in a rank's file, its header included, follows from the plan, so that
 * no list of parts is kept: offsets are counted on as tensors are gone through,
 * a batch at a time.
 */
#ifndef MOE_SHARD_RANKS_H
#define MOE_SHARD_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/out.h"
#include "common/formats/cutplan.h"

#define SHARD_RANKS_BATCH 256   /* tensors gone through at a time */

enum shard_ranks_layout {
    SHARD_RANKS_DIRS,           /* rank-00000/model.safetensors */
    SHARD_RANKS_FILES           /* model-rank-0-part-0.safetensors, as vLLM's sharded_state */
};

#define SHARD_RANKS_NAME 64

void shard_ranks_name(enum shard_ranks_layout l, uint32_t rank, char name[SHARD_RANKS_NAME]);

/* The header of a rank's file; *bytes: of the data behind it; *parts: tensors. */
int shard_ranks_header(const struct moe_cutplan *p, uint32_t rank, struct moe_buf *b,
    uint64_t *bytes, size_t *parts, struct moe_err *e);

struct shard_ranks;

/* Begin all files in d, headers in place. */
int shard_ranks_create(const struct moe_cutplan *p, enum shard_ranks_layout l,
    struct moe_outdir *d, struct shard_ranks **out, struct moe_err *e);

/* Open all files beneath directory dirfd (path for messages): their headers must be the plan's. */
int shard_ranks_open(const struct moe_cutplan *p, enum shard_ranks_layout l, int dirfd,
    const char *path, struct shard_ranks **out, struct moe_err *e);

/* The next n tensors from i on, n <= SHARD_RANKS_BATCH; those before are done with. */
void shard_ranks_batch(struct shard_ranks *r, size_t i, size_t n);

/* Bytes of the part that rank (ep, tp) has of item i of the batch, on every stage that has it. */
int shard_ranks_write(struct shard_ranks *r, size_t i, uint32_t ep, uint32_t tp, uint64_t at,
    const void *p, size_t n, struct moe_err *e);

/* As above, of the first stage that has it. */
int shard_ranks_read(struct shard_ranks *r, size_t i, uint32_t ep, uint32_t tp, uint64_t at,
    void *p, size_t n, struct moe_err *e);

/* As above, of every stage but the first, compared with p. */
int shard_ranks_compare(struct shard_ranks *r, size_t i, uint32_t ep, uint32_t tp, uint64_t at,
    const void *p, size_t n, struct moe_err *e);

/* Finish the files (they appear with their directory). */
int shard_ranks_commit(struct shard_ranks *r, struct moe_err *e);

/* Close, throwing unfinished files away. NULL is allowed. */
void shard_ranks_free(struct shard_ranks *r);

#endif
