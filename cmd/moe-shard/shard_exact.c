/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the exhaustive search: numbers of copies first, heaviest expert first,
 * then copies on devices, largest first; a branch that cannot beat the best so
 * far is left.
 */
#include <stdbool.h>
#include <string.h>

#include "cmd/moe-shard/shard_exact.h"

#define DEVICES SHARD_EXACT_SLOTS

struct exact {
    size_t experts, devices, slots, room;
    uint32_t expert[SHARD_EXACT_EXPERTS];       /* by falling load */
    double load[SHARD_EXACT_EXPERTS];           /* the same order */
    uint32_t copies[SHARD_EXACT_EXPERTS];
    size_t order[SHARD_EXACT_EXPERTS];          /* by falling load a copy */
    double sum[DEVICES];
    size_t count[DEVICES];
    uint32_t held[DEVICES][SHARD_EXACT_SLOTS];
    double best, bound;
    uint32_t found[DEVICES][SHARD_EXACT_SLOTS];
    bool any;
    long nodes;
};

static bool
done(const struct exact *x)
{
    return x->best <= x->bound * (1 + 1e-12) || x->nodes > SHARD_EXACT_NODES;
}

/* Put copy c of the k-th expert of the order; its copies stand on rising devices from `from`. */
static void
place(struct exact *x, size_t k, uint32_t c, size_t from)
{
    size_t i = x->order[k];
    double w;
    bool empty = false;

    x->nodes++;
    w = x->load[i] / x->copies[i];
    for (size_t g = from; g < x->devices && !done(x); g++) {
        /* Devices without anything are alike. */
        if (x->count[g] == 0) {
            if (empty)
                break;
            empty = true;
        }
        if (x->count[g] == x->room || x->sum[g] + w >= x->best * (1 - 1e-12))
            continue;
        x->held[g][x->count[g]++] = x->expert[i];
        x->sum[g] += w;
        if (c + 1 < x->copies[i]) {
            place(x, k, c + 1, g + 1);
        } else if (k + 1 < x->experts) {
            place(x, k + 1, 0, 0);
        } else {
            x->best = 0;
            for (size_t h = 0; h < x->devices; h++)
                x->best = x->sum[h] > x->best ? x->sum[h] : x->best;
            memcpy(x->found, x->held, sizeof(x->held));
            x->any = true;
        }
        x->count[g]--;
        x->sum[g] -= w;
    }
}

static void
begin(struct exact *x)
{
    memset(x->sum, 0, sizeof(x->sum));
    memset(x->count, 0, sizeof(x->count));
    for (size_t k = 0; k < x->experts; k++) {
        size_t j = k;

        for (; j > 0 && x->load[x->order[j - 1]] / x->copies[x->order[j - 1]] <
            x->load[k] / x->copies[k]; j--)
            x->order[j] = x->order[j - 1];
        x->order[j] = k;
    }
    place(x, 0, 0, 0);
}

/* Copies of expert i and those behind it, of `left` slots. */
static void
copies(struct exact *x, size_t i, size_t left)
{
    size_t most = left - (x->experts - i - 1);

    if (i == x->experts) {
        if (left == 0)
            begin(x);
        return;
    }
    most = most < x->devices ? most : x->devices;
    for (size_t c = most; c >= 1 && !done(x); c--) {
        if (x->load[i] / (double)c >= x->best * (1 - 1e-12))
            break;
        x->copies[i] = (uint32_t)c;
        copies(x, i + 1, left - c);
    }
}

void
shard_exact_layer(const struct shard_place_in *in, uint32_t *slot)
{
    struct exact x = { .experts = in->experts, .devices = in->devices };

    for (size_t g = 0; g < in->devices; g++) {
        x.slots += in->room[g];
        if (in->room[g] != in->room[0] || in->speed[g] != in->speed[0])
            return;
    }
    if (in->domains != 1 || in->experts > SHARD_EXACT_EXPERTS || x.slots > SHARD_EXACT_SLOTS)
        return;
    x.room = in->room[0];
    for (size_t k = 0; k < in->experts; k++) {
        size_t j = k;

        for (; j > 0 && in->load[x.expert[j - 1]] < in->load[k]; j--)
            x.expert[j] = x.expert[j - 1];
        x.expert[j] = (uint32_t)k;
    }
    for (size_t k = 0; k < in->experts; k++)
        x.load[k] = in->load[x.expert[k]] / in->speed[0];
    x.best = shard_place_cost(in, slot);
    x.bound = shard_place_bound(in);
    if (!done(&x))
        copies(&x, 0, x.slots);
    for (size_t g = 0; x.any && g < x.devices; g++)
        memcpy(slot + g * x.room, x.found[g], x.room * sizeof(*slot));
}
