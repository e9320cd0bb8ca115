/* SPDX-License-Identifier: Apache-2.0 */
/* Owns drawing. What tokens then do is the simulator's. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_draw.h"
#include "common/base/random.h"

struct draw {
    const struct shard_load *load;
    size_t k;
    double *chance;             /* [experts] of being chosen; sum is k */
    uint32_t *order;            /* [experts] */
    uint64_t seed, next;        /* numbers taken from the seed's sequence */
};

static double
number(struct draw *d)
{
    return moe_random_uniform(d->seed, d->next++);
}

/* Chances of layer i: proportional to counts, those over 1 cut off and the others raised. */
static int
set_chances(struct draw *d, size_t i, struct moe_err *e)
{
    size_t n = d->load->experts, sure = 0, used = 0;
    const double *count = d->load->count + i * n;
    double sum = 0;

    for (size_t x = 0; x < n; x++) {
        sum += count[x];
        used += count[x] > 0;
    }
    for (size_t x = 0; x < n; x++)
        d->chance[x] = sum > 0 ? count[x] / sum : 1 / (double)n;
    if ((sum > 0 ? used : n) < d->k)
        return moe_err_set(e, MOE_EUNSUP, "layer %" PRIu32 ": only %zu experts were ever chosen,"
            " %zu are wanted", d->load->id[i], used, d->k);
    sum = 1;
    for (bool again = true; again;) {
        again = false;
        for (size_t x = 0; x < n; x++) {
            if (d->chance[x] < 1 && d->chance[x] * (double)(d->k - sure) >= sum) {
                sum -= d->chance[x];
                d->chance[x] = 1;
                sure++;
                again = sure < d->k;
                break;
            }
        }
    }
    for (size_t x = 0; x < n; x++) {
        if (d->chance[x] < 1)
            d->chance[x] *= sure < d->k ? (double)(d->k - sure) / sum : 0;
    }
    return 0;
}

/* k experts into out: where k points one apart fall on the chances, laid side by side. */
static void
systematic(struct draw *d, uint32_t *out)
{
    size_t n = d->load->experts, taken = 0;
    double at = 0, point = number(d);

    for (size_t x = n; x > 1; x--) {
        size_t y = (size_t)(number(d) * (double)x);
        uint32_t t = d->order[x - 1];

        d->order[x - 1] = d->order[y];
        d->order[y] = t;
    }
    for (size_t i = 0; i < n && taken < d->k; i++) {
        at += d->chance[d->order[i]];
        if (at > point) {
            out[taken++] = d->order[i];
            point++;
        }
    }
    /* Rounding can leave the last point past the end. */
    for (size_t i = n; taken < d->k && i-- > 0;) {
        bool there = d->chance[d->order[i]] <= 0;

        for (size_t j = 0; j < taken; j++)
            there = there || out[j] == d->order[i];
        if (!there)
            out[taken++] = d->order[i];
    }
}

static bool
chosen(const uint32_t *out, size_t n, size_t x)
{
    for (size_t i = 0; i < n; i++) {
        if (out[i] == x)
            return true;
    }
    return false;
}

/* Exchange the r-th for one that follows `before` as the pairs say; those chosen stay out. */
static void
follow(struct draw *d, const struct shard_affine_link *l, const uint32_t *before, uint32_t *out)
{
    size_t n = d->load->experts;

    for (size_t r = 0; r < d->k; r++) {
        const double *row = l->count + before[r] * n;
        double sum = 0, point;

        for (size_t x = 0; x < n; x++)
            sum += chosen(out, r, x) ? 0 : row[x];
        point = number(d) * sum;
        for (size_t x = 0; sum > 0 && x < n; x++) {
            double v = chosen(out, r, x) ? 0 : row[x];

            if (v > 0 && point < v) {
                for (size_t later = r + 1; later < d->k; later++)
                    out[later] = out[later] == x ? out[r] : out[later];
                out[r] = (uint32_t)x;
                break;
            }
            point -= v;
        }
    }
}

/* Where the choices of layer `id` begin among those drawn, or SIZE_MAX. */
static size_t
layer_at(const struct shard_load *l, size_t drawn, uint32_t id, uint64_t tokens)
{
    for (size_t i = 0; i < drawn; i++) {
        if (l->id[i] == id)
            return i * (size_t)tokens;
    }
    return SIZE_MAX;
}

static int
draw_layer(struct draw *d, size_t i, const struct shard_affine_pairs *pairs, uint64_t tokens,
    struct shard_route_trace *out, struct moe_err *e)
{
    const struct shard_affine_link *l = pairs == NULL ? NULL :
        shard_affine_into(pairs, d->load->id[i]);
    size_t before = l == NULL ? SIZE_MAX : layer_at(d->load, i, l->from, tokens);
    int rc = set_chances(d, i, e);

    for (uint64_t t = 0; rc == 0 && t < tokens; t++) {
        uint32_t *to = out->experts + out->n_experts;

        systematic(d, to);
        if (before != SIZE_MAX)
            follow(d, l, out->experts + (before + (size_t)t) * d->k, to);
        out->choice[out->n++] = (struct shard_route_choice){ d->load->id[i],
            (uint32_t)out->n_experts, (uint32_t)d->k, t };
        out->n_experts += d->k;
    }
    return rc;
}

int
shard_draw(const struct shard_load *l, const struct shard_affine_pairs *pairs, uint64_t tokens,
    size_t k, uint64_t seed, struct shard_route_trace *out, struct moe_err *e)
{
    struct draw d = { .load = l, .k = k, .seed = seed };
    size_t n;
    int rc = 0;

    *out = (struct shard_route_trace){ .tokens = tokens };
    if (k == 0 || k > l->experts || tokens == 0)
        return moe_err_set(e, MOE_EUSAGE, "%zu experts a token of %zu", k, l->experts);
    if (tokens > SHARD_DRAW_MAX / k / l->layers)
        return moe_err_set(e, MOE_ELIMIT, "over %" PRIu64 " choices", SHARD_DRAW_MAX);
    n = (size_t)tokens * l->layers;
    d.chance = calloc(l->experts, sizeof(*d.chance));
    d.order = calloc(l->experts, sizeof(*d.order));
    out->choice = calloc(n, sizeof(*out->choice));
    out->experts = calloc(n * k, sizeof(*out->experts));
    if (d.chance == NULL || d.order == NULL || out->choice == NULL || out->experts == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "simulation: out of memory");
    for (size_t x = 0; rc == 0 && x < l->experts; x++)
        d.order[x] = (uint32_t)x;
    for (size_t i = 0; rc == 0 && i < l->layers; i++)
        rc = draw_layer(&d, i, pairs, tokens, out, e);
    free(d.chance);
    free(d.order);
    if (rc != 0)
        shard_route_fini(out);
    return rc;
}
