/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan is worth under some counts. */
#ifndef MOE_SHARD_WORTH_H
#define MOE_SHARD_WORTH_H

#include <stdbool.h>

#include "cmd/moe-shard/shard_affine.h"
#include "cmd/moe-shard/shard_load.h"
#include "cmd/moe-shard/shard_planfile.h"
#include "cmd/moe-shard/shard_wire.h"
#include "common/base/err.h"

struct shard_worth {
    const struct shard_planfile *plan;
    const char *name;           /* of the counts */
    const struct shard_load *load;      /* of the plan's layers and experts */
    const double *speed;        /* [devices] mean 1 */
    const struct shard_affine_pairs *links;     /* NULL: none */
    const struct shard_wire *wire;      /* NULL: links are not told of */
    bool json;                  /* an object a line */
};

/* A line a layer, one for all of them, and with wires one a link. */
int shard_worth_tell(const struct shard_worth *p, struct moe_err *e);

#endif
