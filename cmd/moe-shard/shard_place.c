/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the search: from a first placement (shard_seed.c), exchanges as long as the
 * fullest device gets emptier. Small layers are solved exactly by shard_exact.c.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_exact.h"
#include "cmd/moe-shard/shard_place.h"
#include "cmd/moe-shard/shard_seed.h"

#define ROUNDS 20000    /* exchanges tried at most */
#define GAIN 1e-9       /* relative: less is no improvement */
#define NEAR 2e-3       /* relative: near enough to the bound to try no other copies */
#define MOST_PARTS 5    /* of a mean device, that copies are held apart from each other by */

/* ---- Exchanges ------------------------------------------------------------------------ */

/* What device g would cost with expert in for expert out. */
static double
cost_with(const struct shard_search *s, size_t g, size_t out, size_t in)
{
    double most = 0;

    for (size_t d = 0; d < s->in->domains; d++) {
        double v = s->sum[g * s->in->domains + d] - shard_search_share(s, d, out) +
            shard_search_share(s, d, in);

        most = v > most ? v : most;
    }
    return most / s->in->speed[g];
}

static size_t
fullest(const struct shard_search *s)
{
    size_t worst = 0;
    double most = -1;

    for (size_t g = 0; g < s->in->devices; g++) {
        double v = shard_search_cost(s, s->sum, g);

        if (v > most) {
            most = v;
            worst = g;
        }
    }
    return worst;
}

struct exchange {
    size_t g, h;                /* devices: the fullest, the other */
    uint32_t i, j;              /* slots: of g (an exchange) or none (a new copy), of h */
    uint32_t in;                /* expert that h's slot gets */
    double cost;                /* of the devices that change */
};

/* The exchange of two slots after which the fuller of their devices is emptiest. */
static void
best_exchange(const struct shard_search *s, size_t g, struct exchange *best)
{
    size_t n = s->in->experts;

    for (uint32_t i = s->first[g]; i < s->first[g + 1]; i++) {
        uint32_t a = s->slot[i];

        for (size_t h = 0; h < s->in->devices; h++) {
            if (h == g || s->holds[h * n + a])
                continue;
            for (uint32_t j = s->first[h]; j < s->first[h + 1]; j++) {
                uint32_t b = s->slot[j];
                double v, w;

                if (s->holds[g * n + b] || (v = cost_with(s, g, a, b)) >= best->cost)
                    continue;
                w = cost_with(s, h, b, a);
                v = v > w ? v : w;
                if (v < best->cost)
                    *best = (struct exchange){ g, h, i, j, a, v };
            }
        }
    }
}

/* Change the number of copies of x by `by`, where it is held, in the sums `to`. */
static void
rescale(const struct shard_search *s, double *to, uint32_t x, int by)
{
    for (size_t g = 0; g < s->in->devices; g++) {
        if (!s->holds[g * s->in->experts + x])
            continue;
        for (size_t d = 0; d < s->in->domains; d++) {
            double all = s->in->load[d * s->in->experts + x];

            to[g * s->in->domains + d] += all / (s->copies[x] + (uint32_t)by) - all / s->copies[x];
        }
    }
}

/* The cost of all devices when slot j of h, which holds a spare copy of b, gets one of a. */
static double
copy_cost(const struct shard_search *s, size_t h, uint32_t a, uint32_t b)
{
    size_t n = s->in->domains;
    double most = 0;

    memcpy(s->trial, s->sum, s->in->devices * n * sizeof(*s->trial));
    rescale(s, s->trial, a, 1);
    rescale(s, s->trial, b, -1);
    for (size_t d = 0; d < n; d++)
        s->trial[h * n + d] += s->in->load[d * s->in->experts + a] / (s->copies[a] + 1) -
            s->in->load[d * s->in->experts + b] / (s->copies[b] - 1);
    for (size_t g = 0; g < s->in->devices; g++) {
        double v = shard_search_cost(s, s->trial, g);

        most = v > most ? v : most;
    }
    return most;
}

/* One more copy of an expert of the fullest device, for a copy of another that has several. */
static void
best_copy(const struct shard_search *s, size_t g, struct exchange *best)
{
    size_t n = s->in->experts;

    for (uint32_t i = s->first[g]; i < s->first[g + 1]; i++) {
        uint32_t a = s->slot[i];

        for (size_t h = 0; h < s->in->devices; h++) {
            if (s->holds[h * n + a])
                continue;
            for (uint32_t j = s->first[h]; j < s->first[h + 1]; j++) {
                uint32_t b = s->slot[j];
                double v;

                if (s->copies[b] < 2 || (v = copy_cost(s, h, a, b)) >= best->cost)
                    continue;
                *best = (struct exchange){ g, h, UINT32_MAX, j, a, v };
            }
        }
    }
}

/* Another expert in the place of a spare copy on the fullest device. */
static void
best_drop(const struct shard_search *s, size_t g, struct exchange *best)
{
    size_t n = s->in->experts;

    for (uint32_t i = s->first[g]; i < s->first[g + 1]; i++) {
        uint32_t b = s->slot[i];

        for (uint32_t y = 0; s->copies[b] > 1 && y < n; y++) {
            double v;

            if (s->holds[g * n + y] || (v = copy_cost(s, g, y, b)) >= best->cost)
                continue;
            *best = (struct exchange){ g, g, UINT32_MAX, i, y, v };
        }
    }
}

static void
apply(struct shard_search *s, const struct exchange *x)
{
    uint32_t b = s->slot[x->j];

    s->slot[x->j] = x->in;
    if (x->i != UINT32_MAX)
        s->slot[x->i] = b;
    shard_search_count(s);
}

/* Slots of device g whose expert `before` does not have there. */
static size_t
moved(const struct shard_search *s, const uint32_t *before)
{
    size_t n = 0;

    for (size_t g = 0; g < s->in->devices; g++) {
        for (uint32_t i = s->first[g]; i < s->first[g + 1]; i++) {
            bool had = false;

            for (uint32_t k = s->first[g]; k < s->first[g + 1]; k++)
                had = had || before[k] == s->slot[i];
            n += !had;
        }
    }
    return n;
}

/* Exchange as long as it helps; before: with at most `moves` slots that changed, or NULL. */
static void
improve(struct shard_search *s, const uint32_t *before, size_t moves)
{
    double bound = shard_place_bound(s->in);

    for (int k = 0; k < ROUNDS; k++) {
        size_t g = fullest(s);
        double now = shard_search_cost(s, s->sum, g);
        struct exchange best = { .j = UINT32_MAX, .cost = now * (1 - GAIN) };

        if (now <= bound * (1 + GAIN))
            return;
        best_exchange(s, g, &best);
        if (best.j == UINT32_MAX) {
            best_copy(s, g, &best);
            best_drop(s, g, &best);
        }
        if (best.j == UINT32_MAX)
            return;
        if (before != NULL) {
            uint32_t i = best.i == UINT32_MAX ? 0 : s->slot[best.i], j = s->slot[best.j];

            apply(s, &best);
            if (moved(s, before) <= moves)
                continue;
            s->slot[best.j] = j;
            if (best.i != UINT32_MAX)
                s->slot[best.i] = i;
            shard_search_count(s);
            return;
        }
        apply(s, &best);
    }
}

/* ---- The whole ---------------------------------------------------------------------------- */

static int
ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

int
shard_place_layer(const struct shard_place_in *in, uint32_t *slot, struct moe_err *e)
{
    double best = INFINITY, enough = shard_place_bound(in) * (1 + NEAR);
    struct shard_search s;
    int rc = shard_search_new(in, &s, e);

    /* Other numbers of copies, where the first are not near the bound. */
    for (size_t parts = 0; rc == 0 && best > enough && parts <= MOST_PARTS; parts++) {
        double v;

        if (parts == 1 || (rc = shard_seed(&s, parts, e)) != 0)
            continue;
        improve(&s, NULL, 0);
        if ((v = shard_place_cost(in, s.slot)) < best) {
            best = v;
            memcpy(slot, s.slot, s.slots * sizeof(*slot));
        }
    }
    if (rc == 0) {
        shard_exact_layer(in, slot);
        for (size_t g = 0; g < in->devices; g++)
            qsort(slot + s.first[g], in->room[g], sizeof(*slot), ascending);
    }
    shard_search_free(&s);
    return rc;
}

int
shard_place_from(const struct shard_place_in *in, size_t moves, uint32_t *slot,
    struct moe_err *e)
{
    struct shard_search s;
    int rc = shard_search_new(in, &s, e);

    if (rc == 0) {
        memcpy(s.slot, slot, s.slots * sizeof(*slot));
        shard_search_count(&s);
        improve(&s, slot, moves);
        memcpy(slot, s.slot, s.slots * sizeof(*slot));
    }
    shard_search_free(&s);
    return rc;
}

double
shard_place_cost(const struct shard_place_in *in, const uint32_t *slot)
{
    uint32_t *copies = calloc(in->experts + 1, sizeof(*copies));
    double most = 0;
    size_t slots = 0;

    for (size_t g = 0; g < in->devices; g++)
        slots += in->room[g];
    for (size_t i = 0; copies != NULL && i < slots; i++)
        copies[slot[i]]++;
    for (size_t d = 0; copies != NULL && d < in->domains; d++) {
        for (size_t g = 0, i = 0; g < in->devices; g++) {
            double sum = 0;

            for (size_t end = i + in->room[g]; i < end; i++)
                sum += in->load[d * in->experts + slot[i]] / copies[slot[i]];
            sum /= in->speed[g];
            most = sum > most ? sum : most;
        }
    }
    free(copies);
    return most;
}

double
shard_place_bound(const struct shard_place_in *in)
{
    double most = 0, speed = 0, top = 0;
    uint32_t *copies = calloc(in->experts + 1, sizeof(*copies));
    size_t slots = 0;

    for (size_t g = 0; g < in->devices; g++) {
        slots += in->room[g];
        speed += in->speed[g];
        top = in->speed[g] > top ? in->speed[g] : top;
    }
    for (size_t d = 0; copies != NULL && d < in->domains; d++) {
        const double *load = in->load + d * in->experts;
        double sum = 0, copy = 0;

        for (size_t x = 0; x < in->experts; x++) {
            copies[x] = 1;
            sum += load[x];
        }
        for (size_t k = in->experts; k < slots; k++) {
            size_t best = SIZE_MAX;

            for (size_t x = 0; x < in->experts; x++) {
                if (copies[x] < in->devices && (best == SIZE_MAX ||
                    load[x] / copies[x] > load[best] / copies[best]))
                    best = x;
            }
            if (best == SIZE_MAX)
                break;
            copies[best]++;
        }
        for (size_t x = 0; x < in->experts; x++)
            copy = load[x] / copies[x] > copy ? load[x] / copies[x] : copy;
        most = sum / speed > most ? sum / speed : most;
        most = copy / top > most ? copy / top : most;
    }
    free(copies);
    return most;
}
