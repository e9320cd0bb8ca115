/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens drawn from counts: a trace that was never recorded, in which each
 * expert is chosen as often as its count says.
 */
#ifndef MOE_SHARD_DRAW_H
#define MOE_SHARD_DRAW_H

#include <stddef.h>
#include <stdint.h>

#include "cmd/moe-shard/shard_affine.h"
#include "cmd/moe-shard/shard_load.h"
#include "cmd/moe-shard/shard_route.h"
#include "common/base/err.h"

#define SHARD_DRAW_MAX ((uint64_t)1 << 26)  /* experts chosen in all */

/*
 * k experts a token and layer, all different, by systematic sampling with unequal
 * probabilities in random order (Madow, Annals of Mathematical Statistics 20, 1949): expert x with
 * probability min(1, k count / sum), what is cut off going to the others. With pairs (NULL: none),
 * in layers that have pairs from an earlier one, the r-th follows the r-th there as their counts
 * say. Errors: MOE_EUNSUP (fewer than k experts that are ever chosen), MOE_ELIMIT, MOE_ENOMEM.
 */
int shard_draw(const struct shard_load *l, const struct shard_affine_pairs *pairs, uint64_t tokens,
    size_t k, uint64_t seed, struct shard_route_trace *out, struct moe_err *e);

#endif
