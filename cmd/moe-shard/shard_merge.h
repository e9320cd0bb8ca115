/* SPDX-License-Identifier: Apache-2.0 */
/* moe-shard merge: the ranks of a split model back to the model it was. */
#ifndef MOE_SHARD_MERGE_H
#define MOE_SHARD_MERGE_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd shard_merge_cmd;

int shard_merge(int argc, char **argv, struct moe_err *e);

#endif
