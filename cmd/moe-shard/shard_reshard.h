/* SPDX-License-Identifier: Apache-2.0 */
/* moe-shard reshard: a split model to the ranks of another grid. */
#ifndef MOE_SHARD_RESHARD_H
#define MOE_SHARD_RESHARD_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd shard_reshard_cmd;

int shard_reshard(int argc, char **argv, struct moe_err *e);

#endif
