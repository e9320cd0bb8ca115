/* SPDX-License-Identifier: Apache-2.0 */
/* moe-shard plan: where experts go. */
#ifndef MOE_SHARD_PLAN_H
#define MOE_SHARD_PLAN_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd shard_plan_cmd;

int shard_plan(int argc, char **argv, struct moe_err *e);

#endif
