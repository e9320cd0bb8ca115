/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which device of a machine takes which device of a placement: what one device
 * computes stays as it is, but tokens have less far to go, where an expert has
 * several copies or links are unequal.
 */
#ifndef MOE_SHARD_NEAR_H
#define MOE_SHARD_NEAR_H

#include <stdint.h>

#include "cmd/moe-shard/shard_place.h"
#include "cmd/moe-shard/shard_wire.h"
#include "common/base/err.h"

/*
 * Bytes [devices][devices] that are sent when every device has as many tokens, each of one byte an
 * expert, and takes the nearest copy (several that are alike: each as often). Of domain 0.
 */
int shard_near_bytes(const struct shard_place_in *in, const uint32_t *slot,
    const struct shard_wire *w, double *bytes, struct moe_err *e);

/*
 * Exchange the slots of devices with as much room and speed as long as the time of
 * shard_near_bytes(), and then their sum over the wires, gets less, or
 * SHARD_NEAR_MAX_WORK is done: devices x (slots + experts + devices) an exchange.
 */
#define SHARD_NEAR_MAX_WORK ((uint64_t)1 << 28)
int shard_near_improve(const struct shard_place_in *in, const struct shard_wire *w, uint32_t *slot,
    struct moe_err *e);

#endif
