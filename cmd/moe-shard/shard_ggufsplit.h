/* SPDX-License-Identifier: Apache-2.0 */
/* A GGUF file to a directory of parts of a size. */
#ifndef MOE_SHARD_GGUFSPLIT_H
#define MOE_SHARD_GGUFSPLIT_H

#include "cmd/moe-shard/shard_pack.h"
#include "common/base/err.h"

/* dst is not looked at in a dry run. Errors: MOE_EUNSUP (it is a part itself), and all I/O. */
int shard_ggufsplit(const char *src, const struct shard_pack_options *o, const char *dst,
    struct moe_err *e);

#endif
