/* SPDX-License-Identifier: Apache-2.0 */
/* A placement of one layer while it is searched for: slots, copies, and what devices have to do. */
#ifndef MOE_SHARD_SEARCH_H
#define MOE_SHARD_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#include "cmd/moe-shard/shard_place.h"
#include "common/base/err.h"

struct shard_search {
    const struct shard_place_in *in;
    size_t slots;
    uint32_t *first;            /* [devices + 1] where a device's slots begin */
    uint32_t *slot;             /* [slots]; UINT32_MAX while empty */
    uint32_t *copies;           /* [experts] */
    double *sum;                /* [devices][domains] */
    unsigned char *holds;       /* [devices][experts] */
    uint32_t *order;            /* [experts] by load a copy, falling */
    double *trial;              /* [devices][domains] */
};

/* All slots empty. Errors: MOE_EUNSUP (fewer slots than experts), MOE_ENOMEM; free it even then. */
int shard_search_new(const struct shard_place_in *in, struct shard_search *s, struct moe_err *e);
void shard_search_free(struct shard_search *s);

/* Load of a copy of x in domain d, and the largest over domains when there are so many copies. */
double shard_search_share(const struct shard_search *s, size_t d, size_t x);
double shard_search_weight(const struct shard_search *s, size_t x, uint32_t copies);

/* The largest load of device g over domains, in sums [devices][domains], by its speed. */
double shard_search_cost(const struct shard_search *s, const double *sum, size_t g);

/* Add so many times a copy of x to device g. */
void shard_search_add(const struct shard_search *s, double *sum, size_t g, size_t x, double times);

/* Sums anew: errors of rounding do not add up, the order of exchanges leaves no trace. */
void shard_search_count(struct shard_search *s);

#endif
