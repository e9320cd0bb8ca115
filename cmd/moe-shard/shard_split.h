/* SPDX-License-Identifier: Apache-2.0 */
/* moe-shard split: a model to the ranks of a grid. */
#ifndef MOE_SHARD_SPLIT_H
#define MOE_SHARD_SPLIT_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd shard_split_cmd;

int shard_split(int argc, char **argv, struct moe_err *e);

#endif
