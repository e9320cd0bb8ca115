/* SPDX-License-Identifier: Apache-2.0 */
/* moe-shard mem: what each rank needs, and whether its device has it. */
#ifndef MOE_SHARD_MEM_H
#define MOE_SHARD_MEM_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd shard_mem_cmd;

int shard_mem(int argc, char **argv, struct moe_err *e);

#endif
