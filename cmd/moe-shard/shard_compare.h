/* SPDX-License-Identifier: Apache-2.0 */
/* moe-shard compare: plans beside each other, under loads. */
#ifndef MOE_SHARD_COMPARE_H
#define MOE_SHARD_COMPARE_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd shard_compare_cmd;

int shard_compare(int argc, char **argv, struct moe_err *e);

#endif
