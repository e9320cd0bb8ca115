/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the locality of pairs. Loads and their limit are shard_place.c's.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_affine.h"
#include "cmd/moe-shard/shard_load.h"
#include "common/base/num.h"
#include "common/base/read.h"

#define MAX_EXPERTS 4096
#define ROUNDS 10000

/* ---- Pairs ------------------------------------------------------------------------- */

static struct shard_affine_link *
link_of(struct shard_affine_pairs *p, uint32_t from, uint32_t to)
{
    struct shard_affine_link *more;

    for (size_t i = 0; i < p->n; i++) {
        if (p->links[i].from == from && p->links[i].to == to)
            return &p->links[i];
    }
    if ((more = realloc(p->links, (p->n + 1) * sizeof(*more))) == NULL)
        return NULL;
    p->links = more;
    more[p->n] = (struct shard_affine_link){ from, to,
        calloc(p->experts * p->experts, sizeof(*more->count)) };
    return more[p->n].count == NULL ? NULL : &more[p->n++];
}

/* Five whole numbers with tabs between. */
static bool
fields(char *line, int64_t v[5])
{
    for (int i = 0; i < 5; i++) {
        char *tab = i < 4 ? strchr(line, '\t') : NULL;

        if (i < 4 && tab == NULL)
            return false;
        if (tab != NULL)
            *tab = '\0';
        if (moe_num_int(line, 0, i == 4 ? INT64_MAX : INT32_MAX, "", &v[i], NULL) != 0)
            return false;
        line = tab == NULL ? line : tab + 1;
    }
    return true;
}

int
shard_affine_read(const char *path, size_t experts, struct shard_affine_pairs *out,
    struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    size_t line = 0;
    int rc;

    *out = (struct shard_affine_pairs){ .experts = experts };
    if (experts > MAX_EXPERTS)
        return moe_err_set(e, MOE_ELIMIT, "%s: pairs of %zu experts", path, experts);
    if ((rc = moe_read_file(path, SHARD_LOAD_MAX_BYTES, &b, e)) != 0)
        return rc;
    if (strlen(b.p) != b.len)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: a NUL in a text", path);
    for (char *p = b.p, *end; rc == 0 && *p != '\0'; p = end) {
        struct shard_affine_link *l;
        int64_t v[5];

        end = strchr(p, '\n');
        end = end == NULL ? p + strlen(p) : (*end = '\0', end + 1);
        line++;
        if (line == 1 && strcmp(p, "layer\texpert\tlayer2\texpert2\tcount") == 0)
            continue;
        if (!fields(p, v) || v[0] >= v[2] || (size_t)v[1] >= experts || (size_t)v[3] >= experts)
            rc = moe_err_set(e, MOE_EFORMAT, "%s:%zu: not layer, expert, a later layer, expert and"
                " count", path, line);
        else if ((l = link_of(out, (uint32_t)v[0], (uint32_t)v[2])) == NULL)
            rc = moe_err_set(e, MOE_ENOMEM, "%s: out of memory", path);
        else
            l->count[(size_t)v[1] * experts + (size_t)v[3]] += (double)v[4];
    }
    moe_buf_fini(&b);
    if (rc != 0)
        shard_affine_fini(out);
    return rc;
}

void
shard_affine_fini(struct shard_affine_pairs *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->links[i].count);
    free(p->links);
    *p = (struct shard_affine_pairs){ .n = 0 };
}

const struct shard_affine_link *
shard_affine_into(const struct shard_affine_pairs *p, uint32_t to)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->links[i].to == to)
            return &p->links[i];
    }
    return NULL;
}

/* ---- Shares ------------------------------------------------------------------------- */

/* What of expert b's pairs comes from device g: each copy before has its part. */
struct pull {
    size_t experts, devices, slots;
    uint32_t *first;            /* [devices + 1] */
    double *of;                 /* [devices][experts] */
    double all;
};

static int
pull_new(const struct shard_place_in *in, const struct shard_affine_link *l,
    const uint32_t *before, struct pull *p, struct moe_err *e)
{
    uint32_t *copies = calloc(in->experts, sizeof(*copies));

    *p = (struct pull){ .experts = in->experts, .devices = in->devices };
    p->first = calloc(in->devices + 1, sizeof(*p->first));
    p->of = calloc(in->devices * in->experts, sizeof(*p->of));
    if (copies == NULL || p->first == NULL || p->of == NULL) {
        free(copies);
        return moe_err_set(e, MOE_ENOMEM, "pairs: out of memory");
    }
    for (size_t g = 0; g < in->devices; g++)
        p->first[g + 1] = p->first[g] + in->room[g];
    p->slots = p->first[in->devices];
    for (size_t i = 0; i < p->slots; i++)
        copies[before[i]]++;
    for (size_t g = 0; g < in->devices; g++) {
        for (uint32_t i = p->first[g]; i < p->first[g + 1]; i++) {
            const double *row = l->count + before[i] * in->experts;

            for (size_t b = 0; b < in->experts; b++)
                p->of[g * in->experts + b] += row[b] / copies[before[i]];
        }
    }
    for (size_t k = 0; k < in->experts * in->experts; k++)
        p->all += l->count[k];
    free(copies);
    return 0;
}

static void
pull_free(struct pull *p)
{
    free(p->first);
    free(p->of);
}

static double
kept(const struct pull *p, const uint32_t *slot)
{
    double sum = 0;

    for (size_t g = 0; g < p->devices; g++) {
        for (uint32_t i = p->first[g]; i < p->first[g + 1]; i++)
            sum += p->of[g * p->experts + slot[i]];
    }
    return p->all > 0 ? sum / p->all : 0;
}

double
shard_affine_share(const struct shard_place_in *in, const struct shard_affine_link *l,
    const uint32_t *before, const uint32_t *slot)
{
    struct pull p;
    double v = pull_new(in, l, before, &p, NULL) == 0 ? kept(&p, slot) : 0;

    pull_free(&p);
    return v;
}

/* ---- Changes ---------------------------------------------------------------------------- */

/* Exchange whole devices as long as more pairs stay; they are alike, so loads do not change. */
static void
relabel(const struct pull *p, uint32_t *slot)
{
    uint32_t room = p->first[1];
    bool again = true;

    for (int k = 0; again && k < ROUNDS; k++) {
        again = false;
        for (size_t g = 0; g < p->devices; g++) {
            for (size_t h = g + 1; h < p->devices; h++) {
                double gain = 0;

                for (uint32_t i = 0; i < room; i++) {
                    uint32_t a = slot[p->first[g] + i], b = slot[p->first[h] + i];

                    gain += p->of[h * p->experts + a] - p->of[g * p->experts + a] +
                        p->of[g * p->experts + b] - p->of[h * p->experts + b];
                }
                if (gain <= 1e-9 * p->all)
                    continue;
                for (uint32_t i = 0; i < room; i++) {
                    uint32_t t = slot[p->first[g] + i];

                    slot[p->first[g] + i] = slot[p->first[h] + i];
                    slot[p->first[h] + i] = t;
                }
                again = true;
            }
        }
    }
}

static bool
held(const struct pull *p, const uint32_t *slot, size_t g, uint32_t x)
{
    for (uint32_t i = p->first[g]; i < p->first[g + 1]; i++) {
        if (slot[i] == x)
            return true;
    }
    return false;
}

/* The exchange of two slots that keeps most pairs and stays within the limit; false: none. */
static bool
exchange(const struct shard_place_in *in, const struct pull *p, double limit, uint32_t *slot)
{
    double most = 1e-9 * p->all;
    uint32_t at[2] = { 0, 0 };

    for (size_t g = 0; g < p->devices; g++) {
        for (size_t h = g + 1; h < p->devices; h++) {
            for (uint32_t i = p->first[g]; i < p->first[g + 1]; i++) {
                for (uint32_t j = p->first[h]; j < p->first[h + 1]; j++) {
                    uint32_t a = slot[i], b = slot[j];
                    double gain = p->of[h * p->experts + a] - p->of[g * p->experts + a] +
                        p->of[g * p->experts + b] - p->of[h * p->experts + b];
                    bool fits;

                    if (gain <= most || held(p, slot, h, a) || held(p, slot, g, b))
                        continue;
                    slot[i] = b;
                    slot[j] = a;
                    fits = shard_place_cost(in, slot) <= limit;
                    slot[i] = a;
                    slot[j] = b;
                    if (!fits)
                        continue;
                    most = gain;
                    at[0] = i;
                    at[1] = j;
                }
            }
        }
    }
    if (at[0] == at[1])
        return false;
    {
        uint32_t t = slot[at[0]];

        slot[at[0]] = slot[at[1]];
        slot[at[1]] = t;
    }
    return true;
}

int
shard_affine_improve(const struct shard_place_in *in, const struct shard_affine_link *l,
    const uint32_t *before, double limit, uint32_t *slot, struct moe_err *e)
{
    struct pull p;
    int rc = pull_new(in, l, before, &p, e);

    if (rc == 0) {
        relabel(&p, slot);
        for (int k = 0; k < ROUNDS && exchange(in, &p, limit, slot); k++)
            continue;
    }
    pull_free(&p);
    return rc;
}
