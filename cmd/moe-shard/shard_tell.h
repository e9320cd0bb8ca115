/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulation prints: of each layer, of all steps, and of each link. */
#ifndef MOE_SHARD_TELL_H
#define MOE_SHARD_TELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/moe-shard/shard_planfile.h"
#include "cmd/moe-shard/shard_route.h"
#include "cmd/moe-shard/shard_wire.h"
#include "common/base/err.h"

struct shard_tell {
    const struct shard_planfile *plan;
    const struct shard_wire *wire;
    uint64_t out_bytes, back_bytes;     /* of a token, there and back */
    bool json;                          /* an object a line */
};

/* Loads of layer l, and what was sent. */
int shard_tell_layer(const struct shard_tell *t, size_t l, const struct shard_route_flow *f,
    struct moe_err *e);

/* The times of steps, which are put in order; bytes [devices][devices] there and back. */
int shard_tell_all(const struct shard_tell *t, double *time, size_t steps, const double *bytes,
    struct moe_err *e);

/* A line a link of bytes [devices][devices], and one for all of its kind: own wires, then ports. */
int shard_tell_links(const struct shard_wire *wire, const double *bytes, bool json,
    struct moe_err *e);

/* Least, most and mean of some numbers; nothing when n is 0. */
struct shard_tell_range { double min, max, mean; };
struct shard_tell_range shard_tell_range(const double *v, size_t n);

/* Most less least, over the mean. */
double shard_tell_spread(struct shard_tell_range r);

#endif
