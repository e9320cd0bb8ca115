/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files beside the weights of a split model: those of the original, its
 * index, and config.json once more in each rank's directory.
 */
#ifndef MOE_SHARD_BESIDE_H
#define MOE_SHARD_BESIDE_H

#include "cmd/moe-shard/shard_set.h"
#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/out.h"

#define SHARD_BESIDE_MAX ((size_t)256 << 20)    /* bytes of one */

/* Read the file `name` of the original whole into b. */
typedef int shard_beside_get(void *ctx, const char *name, struct moe_buf *b, struct moe_err *e);

int shard_beside_copy(const struct shard_set *s, struct moe_outdir *d, shard_beside_get *get,
    void *ctx, struct moe_err *e);

/* A get whose ctx is this: the directory of a set. */
struct shard_beside_dir { int fd; const char *path; };

int shard_beside_from(void *ctx, const char *name, struct moe_buf *b, struct moe_err *e);

#endif
