/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan is to fill: devices, slots on each, how fast they are, what is between them. */
#ifndef MOE_SHARD_SHAPE_H
#define MOE_SHARD_SHAPE_H

#include <stddef.h>
#include <stdint.h>

#include "cmd/moe-shard/shard_wire.h"
#include "common/base/err.h"

/* What is asked for; 0 and NULL: not said. */
struct shard_shape_ask {
    size_t devices, slots, nodes;
    const uint32_t *have;       /* [devices] slots of an old plan */
    const char *room, *speed;   /* a number for each device, commas between */
    const char *topo, *classes; /* see shard_wire.h */
    uint64_t expert_bytes;      /* of one expert of one layer */
};

struct shard_shape {
    size_t devices, slots, nodes;
    uint32_t *room;             /* [devices] slots of a layer; sum is slots */
    double *speed;              /* [devices] mean 1 */
    struct shard_wire wire;     /* n 0: no topology */
};

/*
 * Devices, nodes and speeds of the topology where there is one and nothing else is said; as many
 * slots on each device, as `room` says, or fewer where the topology's memory divided by the bytes
 * of an expert in all layers holds fewer, the others taking more. Errors: MOE_EUSAGE, MOE_EUNSUP
 * (what does not divide, or has no room), and reading's.
 */
int shard_shape_get(const struct shard_shape_ask *a, size_t layers, size_t experts,
    struct shard_shape *out, struct moe_err *e);
void shard_shape_fini(struct shard_shape *s);

/* n numbers > 0 with commas between; what: the option, for messages. Errors: MOE_EUSAGE. */
int shard_shape_list(const char *text, const char *what, size_t n, double *out, struct moe_err *e);

#endif
