/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the search: spare slots to the largest loads a copy, copies to the
 * emptiest devices, largest first, then exchanges as long as the fullest device
 * gets emptier. Small layers are solved exactly by shard_exact.c.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_exact.h"
#include "cmd/moe-shard/shard_place.h"

#define ROUNDS 20000    /* exchanges tried at most */
#define GAIN 1e-9       /* relative: less is no improvement */
#define NEAR 2e-3       /* relative: near enough to the bound to try no other copies */
#define MOST_PARTS 5    /* of a mean device, that copies are held apart from each other by */

struct search {
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

/* ---- Loads ---------------------------------------------------------------------- */

static double
share(const struct search *s, size_t d, size_t x)
{
    return s->in->load[d * s->in->experts + x] / s->copies[x];
}

/* The largest load of a copy over domains. */
static double
weight(const struct search *s, size_t x, uint32_t copies)
{
    double most = 0;

    for (size_t d = 0; d < s->in->domains; d++) {
        double v = s->in->load[d * s->in->experts + x] / copies;

        most = v > most ? v : most;
    }
    return most;
}

static double
device_cost(const struct search *s, const double *sum, size_t g)
{
    double most = 0;

    for (size_t d = 0; d < s->in->domains; d++) {
        double v = sum[g * s->in->domains + d];

        most = v > most ? v : most;
    }
    return most / s->in->speed[g];
}

static void
add(const struct search *s, double *sum, size_t g, size_t x, double times)
{
    for (size_t d = 0; d < s->in->domains; d++)
        sum[g * s->in->domains + d] += times * share(s, d, x);
}

/* What device g would cost with expert in for expert out. */
static double
cost_with(const struct search *s, size_t g, size_t out, size_t in)
{
    double most = 0;

    for (size_t d = 0; d < s->in->domains; d++) {
        double v = s->sum[g * s->in->domains + d] - share(s, d, out) + share(s, d, in);

        most = v > most ? v : most;
    }
    return most / s->in->speed[g];
}

static size_t
fullest(const struct search *s)
{
    size_t worst = 0;
    double most = -1;

    for (size_t g = 0; g < s->in->devices; g++) {
        double v = device_cost(s, s->sum, g);

        if (v > most) {
            most = v;
            worst = g;
        }
    }
    return worst;
}

/* Sums anew: errors of rounding do not add up, the order of exchanges leaves no trace. */
static void
recount(struct search *s)
{
    memset(s->sum, 0, s->in->devices * s->in->domains * sizeof(*s->sum));
    memset(s->holds, 0, s->in->devices * s->in->experts);
    memset(s->copies, 0, s->in->experts * sizeof(*s->copies));
    for (size_t i = 0; i < s->slots; i++)
        s->copies[s->slot[i]]++;
    for (size_t g = 0; g < s->in->devices; g++) {
        for (uint32_t i = s->first[g]; i < s->first[g + 1]; i++) {
            s->holds[g * s->in->experts + s->slot[i]] = 1;
            add(s, s->sum, g, s->slot[i], 1);
        }
    }
}

/* ---- A first placement ------------------------------------------------------------- */

/*
 * Copies that are more than 1/parts of a mean device each: no more of them than
 * (parts - 1) a device, else some device has `parts`. parts 0: no such limit.
 */
static bool
crowded(const struct search *s, size_t x, size_t parts)
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
    if (weight(s, x, s->copies[x] + 1) * (double)parts <= mean)
        return false;
    for (size_t y = 0; y < s->in->experts; y++)
        heavy += weight(s, y, s->copies[y]) * (double)parts > mean ? s->copies[y] : 0;
    return heavy + 1 > (parts - 1) * s->in->devices;
}

/* One copy of each, and the spare slots one by one where a copy's load is largest. */
static int
deal_copies(struct search *s, size_t parts, struct moe_err *e)
{
    for (size_t x = 0; x < s->in->experts; x++)
        s->copies[x] = 1;
    for (size_t k = s->in->experts; k < s->slots; k++) {
        size_t best = SIZE_MAX, least = SIZE_MAX;
        double most = -1;

        for (size_t x = 0; x < s->in->experts; x++) {
            double v = weight(s, x, s->copies[x]);

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
    const struct search *s = ctx;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    double v = weight(s, x, s->copies[x]), w = weight(s, y, s->copies[y]);

    return v > w ? -1 : v < w ? 1 : x < y ? -1 : x > y;
}

/* A slot of device g that is free, or UINT32_MAX. */
static uint32_t
free_slot(const struct search *s, size_t g)
{
    for (uint32_t i = s->first[g]; i < s->first[g + 1]; i++) {
        if (s->slot[i] == UINT32_MAX)
            return i;
    }
    return UINT32_MAX;
}

static void
put(struct search *s, size_t g, uint32_t i, uint32_t x)
{
    s->slot[i] = x;
    s->holds[g * s->in->experts + x] = 1;
    add(s, s->sum, g, x, 1);
}

static void
take(struct search *s, size_t g, uint32_t i)
{
    uint32_t x = s->slot[i];

    s->slot[i] = UINT32_MAX;
    s->holds[g * s->in->experts + x] = 0;
    add(s, s->sum, g, x, -1);
}

/* The device on which x is least in the way, of those with room and without it. */
static size_t
emptiest(const struct search *s, uint32_t x)
{
    size_t best = SIZE_MAX;
    double least = INFINITY;

    for (size_t g = 0; g < s->in->devices; g++) {
        double most = 0;

        if (s->holds[g * s->in->experts + x] || free_slot(s, g) == UINT32_MAX)
            continue;
        for (size_t d = 0; d < s->in->domains; d++) {
            double v = (s->sum[g * s->in->domains + d] + share(s, d, x)) / s->in->speed[g];

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
make_room(struct search *s, uint32_t x)
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

static int
first_placement(struct search *s, size_t parts, struct moe_err *e)
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
    recount(s);
    return 0;
}

/* ---- Exchanges ------------------------------------------------------------------------ */

struct exchange {
    size_t g, h;                /* devices: the fullest, the other */
    uint32_t i, j;              /* slots: of g (an exchange) or none (a new copy), of h */
    uint32_t in;                /* expert that h's slot gets */
    double cost;                /* of the devices that change */
};

/* The exchange of two slots after which the fuller of their devices is emptiest. */
static void
best_exchange(const struct search *s, size_t g, struct exchange *best)
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
rescale(const struct search *s, double *to, uint32_t x, int by)
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
copy_cost(const struct search *s, size_t h, uint32_t a, uint32_t b)
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
        double v = device_cost(s, s->trial, g);

        most = v > most ? v : most;
    }
    return most;
}

/* One more copy of an expert of the fullest device, for a copy of another that has several. */
static void
best_copy(const struct search *s, size_t g, struct exchange *best)
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
best_drop(const struct search *s, size_t g, struct exchange *best)
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
apply(struct search *s, const struct exchange *x)
{
    uint32_t b = s->slot[x->j];

    s->slot[x->j] = x->in;
    if (x->i != UINT32_MAX)
        s->slot[x->i] = b;
    recount(s);
}

/* Slots of device g whose expert `before` does not have there. */
static size_t
moved(const struct search *s, const uint32_t *before)
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
improve(struct search *s, const uint32_t *before, size_t moves)
{
    double bound = shard_place_bound(s->in);

    for (int k = 0; k < ROUNDS; k++) {
        size_t g = fullest(s);
        double now = device_cost(s, s->sum, g);
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
            recount(s);
            return;
        }
        apply(s, &best);
    }
}

/* ---- The whole ---------------------------------------------------------------------------- */

static int
search_new(const struct shard_place_in *in, struct search *s, struct moe_err *e)
{
    *s = (struct search){ .in = in };
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

static void
search_free(struct search *s)
{
    free(s->first);
    free(s->slot);
    free(s->copies);
    free(s->sum);
    free(s->trial);
    free(s->holds);
    free(s->order);
}

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
    struct search s;
    int rc = search_new(in, &s, e);

    /* Other numbers of copies, where the first are not near the bound. */
    for (size_t parts = 0; rc == 0 && best > enough && parts <= MOST_PARTS; parts++) {
        double v;

        if (parts == 1 || (rc = first_placement(&s, parts, e)) != 0)
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
    search_free(&s);
    return rc;
}

int
shard_place_from(const struct shard_place_in *in, size_t moves, uint32_t *slot,
    struct moe_err *e)
{
    struct search s;
    int rc = search_new(in, &s, e);

    if (rc == 0) {
        memcpy(s.slot, slot, s.slots * sizeof(*slot));
        recount(&s);
        improve(&s, slot, moves);
        memcpy(slot, s.slot, s.slots * sizeof(*slot));
    }
    search_free(&s);
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
