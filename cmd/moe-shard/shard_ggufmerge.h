/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a GGUF file to the file they were made of. */
#ifndef MOE_SHARD_GGUFMERGE_H
#define MOE_SHARD_GGUFMERGE_H

#include <stdbool.h>

#include "cmd/moe-shard/shard_pack.h"
#include "common/base/err.h"

/*
 * src: the first part. *differs: joined, they are not the file whose digest the first part has;
 * nothing appears. Errors: MOE_EFORMAT (parts that are missing or do not go together), and all I/O.
 */
int shard_ggufmerge(const char *src, const struct shard_pack_options *o, const char *dst,
    bool *differs, struct moe_err *e);

#endif
