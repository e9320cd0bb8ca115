/* SPDX-License-Identifier: Apache-2.0 */
/* Placement where experts come in groups, each of which stays on one node. */
#ifndef MOE_SHARD_GROUP_H
#define MOE_SHARD_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "cmd/moe-shard/shard_place.h"
#include "common/base/err.h"

/*
 * As shard_place_layer(); groups of as many experts each, in order of number, as many on each node.
 * groups is a multiple of nodes, devices of nodes, experts of groups.
 */
int shard_group_place(const struct shard_place_in *in, size_t groups, size_t nodes, uint32_t *slot,
    struct moe_err *e);

#endif
