/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how many copies there are, and where each goes, the largest first. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_seed.h"

/*
 * Copies that are more than 1/parts of a mean device each: no more of them than
 * (parts - 1) a device, else some device has `parts`. parts 0: no such limit.
 */
static bool
crowded(const struct shard_search *s, size_t x, size_t parts)
{
    double mean = 0, sum = 0;
    size_t heavy = 0;

    if (parts == 0)
        return false;
    for (size_t d = 0; d < s->in->domains; d++) {
        sum = 0;
        for (size_t y = 0; y < s->in->experts; y++)
            sum += s->in->load[d * s->in->experts + y];
        mean = sum > mean ? sum : mean;
    }
    mean /= (double)s->in->devices;
    if (shard_search_weight(s, x, s->copies[x] + 1) * (double)parts <= mean)
        return false;
    for (size_t y = 0; y < s->in->experts; y++)
        heavy += shard_search_weight(s, y, s->copies[y]) * (double)parts > mean ? s->copies[y] : 0;
    return heavy + 1 > (parts - 1) * s->in->devices;
}

/* One copy of each, and the spare slots one by one where a copy's load is largest. */
static int
deal_copies(struct shard_search *s, size_t parts, struct moe_err *e)
{
    for (size_t x = 0; x < s->in->experts; x++)
        s->copies[x] = 1;
    for (size_t k = s->in->experts; k < s->slots; k++) {
        size_t best = SIZE_MAX, least = SIZE_MAX;
        double most = -1;

        for (size_t x = 0; x < s->in->experts; x++) {
            double v = shard_search_weight(s, x, s->copies[x]);

            if (s->copies[x] >= s->in->devices)
                continue;
            least = least == SIZE_MAX ? x : least;
            if (v > most && !crowded(s, x, parts)) {
                most = v;
                best = x;
            }
        }
        best = best == SIZE_MAX ? least : best;
        if (best == SIZE_MAX)
            return moe_err_set(e, MOE_EUNSUP, "%zu slots are more than %zu experts on %zu devices"
                " can fill", s->slots, s->in->experts, s->in->devices);
        s->copies[best]++;
    }
    return 0;
}

static int
by_weight(const void *a, const void *b, void *ctx)
{
    const struct shard_search *s = ctx;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    double v = shard_search_weight(s, x, s->copies[x]), w = shard_search_weight(s, y, s->copies[y]);

    return v > w ? -1 : v < w ? 1 : x < y ? -1 : x > y;
}

/* A slot of device g that is free, or UINT32_MAX. */
static uint32_t
free_slot(const struct shard_search *s, size_t g)
{
    for (uint32_t i = s->first[g]; i < s->first[g + 1]; i++) {
        if (s->slot[i] == UINT32_MAX)
            return i;
    }
    return UINT32_MAX;
}

static void
put(struct shard_search *s, size_t g, uint32_t i, uint32_t x)
{
    s->slot[i] = x;
    s->holds[g * s->in->experts + x] = 1;
    shard_search_add(s, s->sum, g, x, 1);
}

static void
take(struct shard_search *s, size_t g, uint32_t i)
{
    uint32_t x = s->slot[i];

    s->slot[i] = UINT32_MAX;
    s->holds[g * s->in->experts + x] = 0;
    shard_search_add(s, s->sum, g, x, -1);
}

/* The device on which x is least in the way, of those with room and without it. */
static size_t
emptiest(const struct shard_search *s, uint32_t x)
{
    size_t best = SIZE_MAX;
    double least = INFINITY;

    for (size_t g = 0; g < s->in->devices; g++) {
        double most = 0;

        if (s->holds[g * s->in->experts + x] || free_slot(s, g) == UINT32_MAX)
            continue;
        for (size_t d = 0; d < s->in->domains; d++) {
            double v = (s->sum[g * s->in->domains + d] + shard_search_share(s, d, x)) /
                s->in->speed[g];

            most = v > most ? v : most;
        }
        if (most < least) {
            least = most;
            best = g;
        }
    }
    return best;
}

/*
 * All devices with room have x already: one of them takes something it lacks from
 * a full device without x, which then has room.
 */
static bool
make_room(struct shard_search *s, uint32_t x)
{
    size_t n = s->in->experts;

    for (size_t h = 0; h < s->in->devices; h++) {
        uint32_t hole = free_slot(s, h);

        for (size_t g = 0; hole != UINT32_MAX && g < s->in->devices; g++) {
            for (uint32_t i = s->first[g]; !s->holds[g * n + x] && i < s->first[g + 1]; i++) {
                uint32_t y = s->slot[i];

                if (y == UINT32_MAX || s->holds[h * n + y])
                    continue;
                take(s, g, i);
                put(s, h, hole, y);
                put(s, g, i, x);
                return true;
            }
        }
    }
    return false;
}

int
shard_seed(struct shard_search *s, size_t parts, struct moe_err *e)
{
    int rc = deal_copies(s, parts, e);

    if (rc != 0)
        return rc;
    memset(s->sum, 0, s->in->devices * s->in->domains * sizeof(*s->sum));
    memset(s->holds, 0, s->in->devices * s->in->experts);
    for (size_t x = 0; x < s->in->experts; x++)
        s->order[x] = (uint32_t)x;
    qsort_r(s->order, s->in->experts, sizeof(*s->order), by_weight, s);
    for (size_t i = 0; i < s->slots; i++)
        s->slot[i] = UINT32_MAX;
    for (size_t k = 0; k < s->in->experts; k++) {
        uint32_t x = s->order[k];

        for (uint32_t c = 0; c < s->copies[x]; c++) {
            size_t g = emptiest(s, x);

            if (g != SIZE_MAX)
                put(s, g, free_slot(s, g), x);
            else if (!make_room(s, x))
                return moe_err_set(e, MOE_EUNSUP, "experts cannot be placed without two copies on"
                    " one device");
        }
    }
    shard_search_count(s);
    return 0;
}
