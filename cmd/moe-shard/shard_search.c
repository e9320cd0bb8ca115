/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the sums of a placement; what is put where is shard_seed.c's and shard_place.c's. */
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_search.h"

int
shard_search_new(const struct shard_place_in *in, struct shard_search *s, struct moe_err *e)
{
    *s = (struct shard_search){ .in = in };
    s->first = calloc(in->devices + 1, sizeof(*s->first));
    for (size_t g = 0; s->first != NULL && g < in->devices; g++)
        s->first[g + 1] = s->first[g] + in->room[g];
    s->slots = s->first != NULL ? s->first[in->devices] : 0;
    if (s->first != NULL && s->slots < in->experts)
        return moe_err_set(e, MOE_EUNSUP, "%zu slots are fewer than %zu experts", s->slots,
            in->experts);
    s->slot = calloc(s->slots + 1, sizeof(*s->slot));
    s->copies = calloc(in->experts + 1, sizeof(*s->copies));
    s->sum = calloc(in->devices * in->domains + 1, sizeof(*s->sum));
    s->trial = calloc(in->devices * in->domains + 1, sizeof(*s->trial));
    s->holds = calloc(in->devices * in->experts + 1, 1);
    s->order = calloc(in->experts + 1, sizeof(*s->order));
    if (s->first == NULL || s->slot == NULL || s->copies == NULL || s->sum == NULL ||
        s->trial == NULL || s->holds == NULL || s->order == NULL)
        return moe_err_set(e, MOE_ENOMEM, "placement: out of memory");
    return 0;
}

void
shard_search_free(struct shard_search *s)
{
    free(s->first);
    free(s->slot);
    free(s->copies);
    free(s->sum);
    free(s->trial);
    free(s->holds);
    free(s->order);
}

double
shard_search_share(const struct shard_search *s, size_t d, size_t x)
{
    return s->in->load[d * s->in->experts + x] / s->copies[x];
}

double
shard_search_weight(const struct shard_search *s, size_t x, uint32_t copies)
{
    double most = 0;

    for (size_t d = 0; d < s->in->domains; d++) {
        double v = s->in->load[d * s->in->experts + x] / copies;

        most = v > most ? v : most;
    }
    return most;
}

double
shard_search_cost(const struct shard_search *s, const double *sum, size_t g)
{
    double most = 0;

    for (size_t d = 0; d < s->in->domains; d++) {
        double v = sum[g * s->in->domains + d];

        most = v > most ? v : most;
    }
    return most / s->in->speed[g];
}

void
shard_search_add(const struct shard_search *s, double *sum, size_t g, size_t x, double times)
{
    for (size_t d = 0; d < s->in->domains; d++)
        sum[g * s->in->domains + d] += times * shard_search_share(s, d, x);
}

void
shard_search_count(struct shard_search *s)
{
    memset(s->sum, 0, s->in->devices * s->in->domains * sizeof(*s->sum));
    memset(s->holds, 0, s->in->devices * s->in->experts);
    memset(s->copies, 0, s->in->experts * sizeof(*s->copies));
    for (size_t i = 0; i < s->slots; i++)
        s->copies[s->slot[i]]++;
    for (size_t g = 0; g < s->in->devices; g++) {
        for (uint32_t i = s->first[g]; i < s->first[g + 1]; i++) {
            s->holds[g * s->in->experts + s->slot[i]] = 1;
            shard_search_add(s, s->sum, g, s->slot[i], 1);
        }
    }
}
