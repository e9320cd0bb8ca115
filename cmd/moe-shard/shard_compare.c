/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the command `compare`: each plan under each load, a row a plan, and the
 * experts that would have to move from the first plan to it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_compare.h"
#include "cmd/moe-shard/shard_load.h"
#include "cmd/moe-shard/shard_place.h"
#include "cmd/moe-shard/shard_planfile.h"
#include "common/base/jsonw.h"

#define MAX_FILES 64            /* plans, and loads */

enum { LOAD = 1, JSON };

static const struct moe_opt rows[] = {
    { LOAD, 'l', "load", MOE_OPT_FILE, "LOAD", "counts the plans are to serve", NULL, false, true },
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "JSON Lines, one for each plan and load", NULL, false,
        false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "-l LOAD [-l LOAD ...] PLAN ...", NULL };

const struct moe_opt_cmd shard_compare_cmd = {
    "moe-shard compare", usage, "Tell what each plan is worth under each load.", rows, NULL
};

struct compare {
    const char *load_name[MAX_FILES];
    struct shard_load load[MAX_FILES];
    size_t loads;
    struct shard_planfile first;
    bool json;
};

/* One plan under one load: means over the layers, and the worst layer. */
struct worth { double ratio, balance, worst; uint32_t worst_layer; };

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct compare *c = ctx;

    if (id == JSON)
        c->json = true;
    else if (c->loads == MAX_FILES)
        return moe_err_set(e, MOE_ELIMIT, "--load: over %d", MAX_FILES);
    else
        c->load_name[c->loads++] = arg;
    return 0;
}

/* ---- Worth --------------------------------------------------------------------- */

/* Largest device over the mean of layer i of the load; 1 when nothing was chosen. */
static double
ratio_of(const struct shard_planfile *p, size_t l, const struct shard_load *load, size_t i,
    const double *speed, double *scaled)
{
    struct shard_place_in in = { p->experts, p->devices, 1, scaled, p->room, speed };
    const double *count = load->count + i * load->experts;
    double sum = 0;

    for (size_t x = 0; x < p->experts; x++)
        sum += count[x];
    for (size_t x = 0; x < p->experts; x++)
        scaled[x] = sum > 0 ? count[x] / sum * (double)p->devices : 0;
    return sum > 0 ? shard_place_cost(&in, p->slot + l * p->slots) : 1;
}

static int
worth_of(const struct shard_planfile *p, const char *plan, const struct shard_load *load,
    const char *name, struct worth *w, struct moe_err *e)
{
    double *scaled = calloc(p->experts, sizeof(*scaled));
    double *speed = calloc(p->devices, sizeof(*speed));
    int rc = 0;

    *w = (struct worth){ 0, 0, 0, 0 };
    if (scaled == NULL || speed == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "comparison: out of memory");
    else if (load->experts != p->experts)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: %zu experts, where the plan %s has %zu", name,
            load->experts, plan, p->experts);
    for (size_t g = 0; rc == 0 && g < p->devices; g++)
        speed[g] = 1;
    for (size_t i = 0; rc == 0 && i < load->layers; i++) {
        size_t l = shard_planfile_layer(p, load->id[i]);
        double r;

        if (l == p->layers) {
            rc = moe_err_set(e, MOE_EFORMAT, "%s: layer %" PRIu32 ", which the plan %s does not"
                " have", name, load->id[i], plan);
            break;
        }
        r = ratio_of(p, l, load, i, speed, scaled);
        w->ratio += r / (double)load->layers;
        w->balance += 1 / r / (double)load->layers;
        if (r > w->worst) {
            w->worst = r;
            w->worst_layer = load->id[i];
        }
    }
    free(scaled);
    free(speed);
    return rc;
}

/* ---- Moves ------------------------------------------------------------------------ */

/* Experts that a device has in layer m of b and did not have in layer l of a. */
static uint64_t
moved_layer(const struct shard_planfile *a, size_t l, const struct shard_planfile *b, size_t m,
    size_t *had)
{
    const uint32_t *from = a->slot + l * a->slots, *to = b->slot + m * b->slots;
    uint64_t n = 0;

    memset(had, 0, b->experts * sizeof(*had));
    for (size_t g = 0; g < b->devices; from += a->room[g], to += b->room[g], g++) {
        for (size_t i = 0; i < a->room[g]; i++)
            had[from[i]] = g + 1;
        for (size_t i = 0; i < b->room[g]; i++) {
            n += had[to[i]] != g + 1;
            had[to[i]] = g + 1;
        }
    }
    return n;
}

/* Of all layers both have; -1 when the devices or experts are not as many. */
static int
moved(const struct shard_planfile *a, const struct shard_planfile *b, int64_t *n,
    struct moe_err *e)
{
    size_t *had;

    *n = -1;
    if (a->devices != b->devices || a->experts != b->experts)
        return 0;
    if ((had = calloc(b->experts, sizeof(*had))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "comparison: out of memory");
    *n = 0;
    for (size_t m = 0; m < b->layers; m++) {
        size_t l = shard_planfile_layer(a, b->id[m]);

        if (l < a->layers)
            *n += (int64_t)moved_layer(a, l, b, m, had);
    }
    free(had);
    return 0;
}

/* ---- Telling ------------------------------------------------------------------------ */

static void
tell_json(struct moe_buf *b, const char *plan, const char *load, const struct worth *w,
    int64_t moves)
{
    struct moe_jsonw j = { b, false };

    moe_jsonw_open(&j, '{');
    moe_jsonw_key(&j, "plan");
    moe_jsonw_str(&j, plan, strlen(plan));
    moe_jsonw_key(&j, "load");
    moe_jsonw_str(&j, load, strlen(load));
    moe_jsonw_key(&j, "max_over_mean");
    moe_jsonw_real(&j, w->ratio);
    moe_jsonw_key(&j, "balancedness");
    moe_jsonw_real(&j, w->balance);
    moe_jsonw_key(&j, "worst_max_over_mean");
    moe_jsonw_real(&j, w->worst);
    moe_jsonw_key(&j, "worst_layer");
    moe_jsonw_uint(&j, w->worst_layer);
    if (moves >= 0) {
        moe_jsonw_key(&j, "moved");
        moe_jsonw_uint(&j, (uint64_t)moves);
    }
    moe_jsonw_close(&j, '}');
    moe_buf_byte(b, '\n');
}

/* A row of the table, or a line of JSON a load. */
static int
row(const struct compare *c, const struct shard_planfile *now, const char *name, struct moe_buf *b,
    struct moe_err *e)
{
    double worst = 0;
    int64_t moves;
    int rc = moved(&c->first, now, &moves, e);

    if (!c->json)
        moe_buf_fmt(b, "%s", name);
    for (size_t k = 0; rc == 0 && k < c->loads; k++) {
        struct worth w;

        if ((rc = worth_of(now, name, &c->load[k], c->load_name[k], &w, e)) != 0)
            break;
        worst = w.worst > worst ? w.worst : worst;
        if (c->json)
            tell_json(b, name, c->load_name[k], &w, moves);
        else
            moe_buf_fmt(b, "\t%.5f", w.ratio);
    }
    if (!c->json && moves >= 0)
        moe_buf_fmt(b, "\t%.5f\t%" PRId64 "\n", worst, moves);
    else if (!c->json)
        moe_buf_fmt(b, "\t%.5f\t-\n", worst);
    return rc;
}

static int
run(struct compare *c, int n, char **plans, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc = 0;

    for (size_t k = 0; rc == 0 && k < c->loads; k++)
        rc = shard_load_read(c->load_name[k], &c->load[k], e);
    if (rc == 0)
        rc = shard_planfile_read(plans[0], &c->first, e);
    if (!c->json) {
        moe_buf_fmt(&b, "plan");
        for (size_t k = 0; k < c->loads; k++)
            moe_buf_fmt(&b, "\t%s", c->load_name[k]);
        moe_buf_fmt(&b, "\tworst layer\tmoved\n");
    }
    for (int i = 0; rc == 0 && i < n; i++) {
        struct shard_planfile now = { .layers = 0 };

        if (i > 0 && strcmp(plans[i], "-") == 0)
            rc = moe_err_set(e, MOE_EUSAGE, "-: only the first plan can be standard input");
        else if (i > 0)
            rc = shard_planfile_read(plans[i], &now, e);
        if (rc == 0)
            rc = row(c, i > 0 ? &now : &c->first, plans[i], &b, e);
        shard_planfile_fini(&now);
    }
    if (rc == 0 && b.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "comparison: out of memory");
    if (rc == 0)
        (void)fwrite(b.p, 1, b.len, stdout);
    moe_buf_fini(&b);
    shard_planfile_fini(&c->first);
    return rc;
}

int
shard_compare(int argc, char **argv, struct moe_err *e)
{
    struct compare *c = calloc(1, sizeof(*c));
    bool done;
    int first, rc;

    if (c == NULL)
        return moe_err_set(e, MOE_ENOMEM, "comparison: out of memory");
    rc = moe_opt_parse(&shard_compare_cmd, argc, argv, option, c, &first, &done, e);
    if (rc == 0 && !done) {
        if (c->loads == 0 || argc - first < 1)
            rc = moe_err_set(e, MOE_EUSAGE, "--load and a PLAN are wanted");
        else
            rc = run(c, argc - first, argv + first, e);
    }
    for (size_t k = 0; k < c->loads; k++)
        shard_load_fini(&c->load[k]);
    free(c);
    return rc;
}
