/* SPDX-License-Identifier: Apache-2.0 */
/* moe-shard sim: a trace played over a plan. */
#ifndef MOE_SHARD_SIM_H
#define MOE_SHARD_SIM_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd shard_sim_cmd;

int shard_sim(int argc, char **argv, struct moe_err *e);

#endif
