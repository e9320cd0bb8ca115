/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of a layer's experts on devices, so that the fullest device is as empty
 * as it can be. Copies of an expert share its load equally; no device holds two.
 *
 * Loads come in domains (workloads), each scaled so that all devices together
 * have a load of 1 each on the mean; what is made small is the largest load of
 * any device in any domain, divided by the device's speed.
 */
#ifndef MOE_SHARD_PLACE_H
#define MOE_SHARD_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct shard_place_in {
    size_t experts, devices, domains;
    const double *load;         /* [domains][experts], >= 0 */
    const uint32_t *room;       /* [devices] slots; sum >= experts, each <= experts */
    const double *speed;        /* [devices] > 0 */
};

/*
 * Experts of all slots, device by device, into slot; inside a device ascending.
 * Errors: MOE_EUNSUP (more slots than experts x devices, or fewer than experts),
 * MOE_ENOMEM.
 */
int shard_place_layer(const struct shard_place_in *in, uint32_t *slot, struct moe_err *e);

/*
 * The same from a placement that is there, with at most `moves` slots that hold
 * another expert than before. Experts that stay keep their slots.
 */
int shard_place_from(const struct shard_place_in *in, size_t moves, uint32_t *slot,
    struct moe_err *e);

/* The largest load of any device in any domain; 0 when there is none. */
double shard_place_cost(const struct shard_place_in *in, const uint32_t *slot);

/*
 * A number that no placement is below: the mean, and the largest load of one copy
 * when spare slots go where a copy's load is largest, one copy a device.
 */
double shard_place_bound(const struct shard_place_in *in);

#endif
