/* SPDX-License-Identifier: Apache-2.0 */
/* moe-shard topo: what is between the devices of a machine. */
#ifndef MOE_SHARD_TOPO_H
#define MOE_SHARD_TOPO_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd shard_topo_cmd;

int shard_topo(int argc, char **argv, struct moe_err *e);

#endif
