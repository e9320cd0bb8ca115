/* SPDX-License-Identifier: Apache-2.0 */
/* Models in files of a size, whole tensors in each: what hubs and file systems want. */
#ifndef MOE_SHARD_PACK_H
#define MOE_SHARD_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct shard_pack_options {
    uint64_t max_bytes;         /* of the tensors of a file; a larger tensor has its own; 0: any */
    size_t max_tensors;         /* of a GGUF file; 0: any */
    const char *links;          /* bytes a second of links, a file for each, or NULL */
    bool dry, json, force, quiet;
};

/*
 * A model (a directory, a file or "-") to a directory of files, with index and what stood beside
 * the weights; a GGUF file to one of parts (shard_ggufsplit.h). dst is not looked at in a
 * dry run.
 */
int shard_pack_split(const char *src, const struct shard_pack_options *o, const char *dst,
    struct moe_err *e);

/* Print the names and exact bytes of n files, of a dry run. */
void shard_pack_print(const struct shard_pack_options *o, size_t n, const char *name,
    uint64_t bytes);

#endif
