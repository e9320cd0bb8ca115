/* SPDX-License-Identifier: Apache-2.0 */
/* Placements of few experts on few devices, by trying all that can be better. */
#ifndef MOE_SHARD_EXACT_H
#define MOE_SHARD_EXACT_H

#include "cmd/moe-shard/shard_place.h"

#define SHARD_EXACT_EXPERTS 16
#define SHARD_EXACT_SLOTS 20
#define SHARD_EXACT_NODES 40000000      /* of the search; then the best so far stays */

/*
 * Replace the placement by the best there is, when there is one domain, devices are
 * alike and the numbers are within the limits; else leave it.
 */
void shard_exact_layer(const struct shard_place_in *in, uint32_t *slot);

#endif
