/* SPDX-License-Identifier: Apache-2.0 */
/* moe-shard fit: what links cost, from measured points, and what collectives take. */
#ifndef MOE_SHARD_FIT_H
#define MOE_SHARD_FIT_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd shard_fit_cmd;

int shard_fit(int argc, char **argv, struct moe_err *e);

#endif
