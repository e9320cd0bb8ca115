/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Experts that follow each other from one layer to the next, on one device where
 * the load allows it: a placement is relabelled and its slots exchanged as long
 * as the share of pairs that stay on a device grows.
 */
#ifndef MOE_SHARD_AFFINE_H
#define MOE_SHARD_AFFINE_H

#include <stddef.h>
#include <stdint.h>

#include "cmd/moe-shard/shard_place.h"
#include "common/base/err.h"

/* Pairs of two layers: lines of layer TAB expert TAB layer2 TAB expert2 TAB count. */
struct shard_affine_pairs {
    size_t experts, n;
    struct shard_affine_link { uint32_t from, to; double *count; } *links;  /* [experts][experts] */
};

int shard_affine_read(const char *path, size_t experts, struct shard_affine_pairs *out,
    struct moe_err *e);
void shard_affine_fini(struct shard_affine_pairs *p);

/* The pairs into layer `to`, or NULL. */
const struct shard_affine_link *shard_affine_into(const struct shard_affine_pairs *p,
    uint32_t to);

/* Share of pairs whose experts have copies on a common device, each pair by its copies' places. */
double shard_affine_share(const struct shard_place_in *in, const struct shard_affine_link *l,
    const uint32_t *before, const uint32_t *slot);

/* Change `slot` for a larger share, the cost at most `limit`. Devices are alike. */
int shard_affine_improve(const struct shard_place_in *in, const struct shard_affine_link *l,
    const uint32_t *before, double limit, uint32_t *slot, struct moe_err *e);

#endif
