/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the command `plan`: counts and options to a plan and what it is worth.
 * One layer is shard_place.c's.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_affine.h"
#include "cmd/moe-shard/shard_load.h"
#include "cmd/moe-shard/shard_place.h"
#include "cmd/moe-shard/shard_plan.h"
#include "cmd/moe-shard/shard_planfile.h"
#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/base/out.h"
#include "common/base/pool.h"
#include "common/base/tool.h"

#define MAX_LOADS 64
#define FEW 50                  /* tokens an expert, on the mean, below which counts say little */

enum {
    SLOTS = 1, DEVICES, NODES, GROUPS, SPEED, WEIGHTS, ROBUST, FROM, MOVES, PAIRS, SLACK, OUTPUT,
    JSON, THREADS, FORCE, QUIET
};

static const struct moe_opt rows[] = {
    { DEVICES, 'g', "devices", MOE_OPT_WORD, "N", "devices that hold experts", NULL, false, false },
    { SLOTS, 's', "slots", MOE_OPT_WORD, "N", "experts and copies in all; default: experts", NULL,
        false, false },
    { NODES, 0, "nodes", MOE_OPT_WORD, "N", "nodes of as many devices each", NULL, false, false },
    { GROUPS, 0, "groups", MOE_OPT_WORD, "N", "groups of experts that stay on one node", NULL,
        false, false },
    { SPEED, 0, "speed", MOE_OPT_WORD, "S,S", "how fast devices are, one for each", NULL, false,
        false },
    { WEIGHTS, 0, "weights", MOE_OPT_WORD, "W,W", "how much each LOAD counts", NULL, false, false },
    { ROBUST, 0, "robust", MOE_OPT_NONE, NULL, "best for the worst LOAD, not for their mean", NULL,
        false, false },
    { FROM, 0, "from", MOE_OPT_FILE, "PLAN", "begin with this plan", NULL, false, false },
    { MOVES, 0, "moves", MOE_OPT_WORD, "N", "with --from: slots of a layer that may change", NULL,
        false, false },
    { PAIRS, 0, "pairs", MOE_OPT_FILE, "FILE", "keep experts that follow each other together",
        NULL, false, false },
    { SLACK, 0, "slack", MOE_OPT_WORD, "X", "with --pairs: load above the mean allowed (0.1)",
        NULL, false, false },
    { OUTPUT, 'o', "output", MOE_OPT_FILE, "FILE", "write the plan; - is standard output", NULL,
        false, false },
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "tell what it is worth as JSON Lines", NULL, false,
        false },
    { THREADS, 'j', "threads", MOE_OPT_WORD, "N", "threads; default: the processors", NULL, false,
        false },
    { FORCE, 0, "force", MOE_OPT_NONE, NULL, "replace what is there", NULL, false, false },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "no warnings on standard error", NULL, false,
        false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = {
    "-g N [-s N] [--nodes N --groups N] [-o FILE] LOAD ...",
    "-g N --robust [OPTION ...] LOAD LOAD ...",
    "--from PLAN --moves N [OPTION ...] LOAD ...",
    NULL
};

const struct moe_opt_cmd shard_plan_cmd = {
    "moe-shard plan", usage, "Plan which device holds which experts.", rows, NULL
};

struct plan {
    /* The command line. */
    size_t slots, devices, nodes, groups, moves;
    const char *speeds, *weights, *from, *pairs, *output;
    bool robust, json, force, quiet;
    double slack;
    int threads;
    /* What is read, and what comes out. */
    const char *const *names;
    size_t n_loads, domains;
    struct shard_load load[MAX_LOADS];
    double weight[MAX_LOADS];
    double *speed;              /* [devices] */
    struct shard_planfile file;
    struct shard_affine_pairs links;
    int *rc;                    /* [layers] */
    struct moe_err *err;
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct plan *p = ctx;
    int64_t v = 0;
    int rc = 0;

    switch (id) {
    case SLOTS:
        rc = moe_num_int(arg, 1, SHARD_LOAD_MAX_CELLS, "--slots", &v, e);
        p->slots = (size_t)v;
        break;
    case DEVICES:
        rc = moe_num_int(arg, 1, SHARD_PLANFILE_MAX_DEVICES, "--devices", &v, e);
        p->devices = (size_t)v;
        break;
    case NODES:
        rc = moe_num_int(arg, 1, SHARD_PLANFILE_MAX_DEVICES, "--nodes", &v, e);
        p->nodes = (size_t)v;
        break;
    case GROUPS:
        rc = moe_num_int(arg, 1, SHARD_LOAD_MAX_EXPERTS, "--groups", &v, e);
        p->groups = (size_t)v;
        break;
    case SPEED: p->speeds = arg; break;
    case WEIGHTS: p->weights = arg; break;
    case ROBUST: p->robust = true; break;
    case FROM: p->from = arg; break;
    case MOVES:
        rc = moe_num_int(arg, 0, SHARD_LOAD_MAX_CELLS, "--moves", &v, e);
        p->moves = (size_t)v;
        break;
    case PAIRS: p->pairs = arg; break;
    case SLACK: rc = moe_num_real(arg, 0, 1000, "--slack", &p->slack, e); break;
    case OUTPUT: p->output = arg; break;
    case JSON: p->json = true; break;
    case THREADS:
        rc = moe_num_int(arg, 1, MOE_POOL_MAX, "--threads", &v, e);
        p->threads = (int)v;
        break;
    case FORCE: p->force = true; break;
    default: p->quiet = true;
    }
    return rc;
}

/* ---- Input --------------------------------------------------------------------------- */

/* n positive numbers with commas between. */
static int
list(const char *text, const char *what, size_t n, double *out, struct moe_err *e)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = strcspn(text, ",");
        char word[64];
        int rc;

        if (k >= sizeof(word) || (i + 1 < n) != (text[k] == ','))
            return moe_err_set(e, MOE_EUSAGE, "%s: not %zu numbers with commas between", what, n);
        memcpy(word, text, k);
        word[k] = '\0';
        if ((rc = moe_num_real(word, 1e-9, 1e9, what, &out[i], e)) != 0)
            return rc;
        text += k + (text[k] == ',');
    }
    return 0;
}

/* Blocks of experts that were never chosen while others were: counts of one rank alone? */
static void
warn_about(const struct plan *p, const struct shard_load *l, const char *name)
{
    double all = 0;
    size_t block = l->experts / 8;
    bool empty = block > 0;

    for (size_t i = 0; i < l->layers * l->experts; i++)
        all += l->count[i];
    for (size_t i = 0; empty && i < l->layers; i++) {
        const double *row = l->count + i * l->experts;
        size_t first = 0, used = 0;

        while (first < l->experts && row[first] == 0)
            first++;
        for (size_t x = 0; x < l->experts; x++)
            used += row[x] > 0;
        empty = used > 0 && used <= l->experts / 2 && (first + used >= l->experts ||
            row[first + used] == 0);
    }
    if (p->quiet)
        return;
    if (all / (double)(l->layers * l->experts) < FEW)
        moe_tool_warn("%s: %.3g tokens an expert on the mean: experts may look dead that are not",
            name, all / (double)(l->layers * l->experts));
    if (empty)
        moe_tool_warn("%s: whole blocks of experts were never chosen: counts of one rank alone?",
            name);
}

static int
read_loads(struct plan *p, struct moe_err *e)
{
    int rc;

    for (size_t i = 0; i < p->n_loads; i++) {
        const struct shard_load *a = &p->load[0], *b = &p->load[i];

        if ((rc = shard_load_read(p->names[i], &p->load[i], e)) != 0)
            return rc;
        if (b->layers != a->layers || b->experts != a->experts ||
            memcmp(b->id, a->id, a->layers * sizeof(*a->id)) != 0)
            return moe_err_set(e, MOE_EFORMAT, "%s: other layers or experts than %s",
                p->names[i], p->names[0]);
        warn_about(p, b, p->names[i]);
        p->weight[i] = 1;
    }
    return p->weights == NULL ? 0 : list(p->weights, "--weights", p->n_loads, p->weight, e);
}

/* Devices and slots: of the old plan, or as the options say. */
static int
set_shape(struct plan *p, struct moe_err *e)
{
    struct shard_planfile *f = &p->file;
    const struct shard_load *l = &p->load[0];
    int rc;

    if (p->from != NULL) {
        if ((rc = shard_planfile_read(p->from, f, e)) != 0)
            return rc;
        if (f->layers != l->layers || f->experts != l->experts ||
            memcmp(f->id, l->id, l->layers * sizeof(*l->id)) != 0)
            return moe_err_set(e, MOE_EFORMAT, "%s: other layers or experts than %s", p->from,
                p->names[0]);
        p->devices = f->devices;
        return 0;
    }
    if (p->devices == 0)
        return moe_err_set(e, MOE_EUSAGE, "--devices is wanted");
    p->slots = p->slots == 0 ? l->experts : p->slots;
    if (p->slots % p->devices != 0)
        return moe_err_set(e, MOE_EUNSUP, "%zu slots are no multiple of %zu devices", p->slots,
            p->devices);
    if (p->slots < l->experts || p->slots / p->devices > l->experts)
        return moe_err_set(e, MOE_EUNSUP, "%zu slots on %zu devices for %zu experts", p->slots,
            p->devices, l->experts);
    if (p->devices % p->nodes != 0 || l->experts % p->groups != 0 ||
        (p->groups > 1 && p->groups % p->nodes != 0))
        return moe_err_set(e, MOE_EUNSUP, "%zu devices on %zu nodes, %zu experts in %zu groups: do"
            " not divide", p->devices, p->nodes, l->experts, p->groups);
    *f = (struct shard_planfile){ .layers = l->layers, .experts = l->experts,
        .devices = p->devices, .nodes = p->nodes, .slots = p->slots };
    f->id = calloc(f->layers + 1, sizeof(*f->id));
    f->room = calloc(f->devices + 1, sizeof(*f->room));
    f->slot = calloc(f->layers * f->slots + 1, sizeof(*f->slot));
    if (f->id == NULL || f->room == NULL || f->slot == NULL)
        return moe_err_set(e, MOE_ENOMEM, "plan: out of memory");
    memcpy(f->id, l->id, f->layers * sizeof(*f->id));
    for (size_t g = 0; g < f->devices; g++)
        f->room[g] = (uint32_t)(p->slots / p->devices);
    return 0;
}

static int
set_speeds(struct plan *p, struct moe_err *e)
{
    double sum = 0;
    int rc;

    if ((p->speed = calloc(p->devices, sizeof(*p->speed))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "plan: out of memory");
    for (size_t g = 0; g < p->devices; g++)
        p->speed[g] = 1;
    if (p->speeds != NULL && (rc = list(p->speeds, "--speed", p->devices, p->speed, e)) != 0)
        return rc;
    for (size_t g = 0; g < p->devices; g++)
        sum += p->speed[g];
    for (size_t g = 0; g < p->devices; g++)
        p->speed[g] *= (double)p->devices / sum;
    return 0;
}

/* ---- One layer ---------------------------------------------------------------------------- */

/* Add row l of a file to a domain, so that its sum is `scale`. */
static void
add_row(const struct shard_load *l, size_t i, double scale, double *out)
{
    double sum = 0;

    for (size_t x = 0; x < l->experts; x++)
        sum += l->count[i * l->experts + x];
    for (size_t x = 0; sum > 0 && x < l->experts; x++)
        out[x] += l->count[i * l->experts + x] / sum * scale;
}

/* Loads of layer i: a domain a file, or one of all. Freed by the caller. */
static double *
domains_of(const struct plan *p, size_t i)
{
    size_t n = p->file.experts;
    double *out = calloc(p->domains * n, sizeof(*out)), all = 0;

    for (size_t k = 0; k < p->n_loads; k++)
        all += p->weight[k];
    for (size_t k = 0; out != NULL && k < p->n_loads; k++)
        add_row(&p->load[k], i, (double)p->devices * (p->robust ? 1 : p->weight[k] / all),
            out + (p->robust ? k : 0) * n);
    return out;
}

/* Groups to nodes, and each node's experts to its devices. */
static int
place_grouped(const struct plan *p, const struct shard_place_in *in, uint32_t *slot,
    struct moe_err *e)
{
    size_t per = in->experts / p->groups, each = p->groups / p->nodes, local = each * per;
    size_t devices = in->devices / p->nodes, slots = p->file.slots / p->nodes;
    double *sum = calloc(in->domains * p->groups, sizeof(*sum));
    double *load = calloc(in->domains * local, sizeof(*load));
    double *speed = calloc(p->nodes, sizeof(*speed));
    uint32_t *room = calloc(p->nodes, sizeof(*room)), *groups = calloc(p->groups, sizeof(*groups));
    struct shard_place_in top = { p->groups, p->nodes, in->domains, sum, room, speed };
    int rc = 0;

    if (sum == NULL || load == NULL || speed == NULL || room == NULL || groups == NULL) {
        rc = moe_err_set(e, MOE_ENOMEM, "plan: out of memory");
        goto out;
    }
    for (size_t k = 0; k < p->nodes; k++) {
        room[k] = (uint32_t)each;
        for (size_t g = 0; g < devices; g++)
            speed[k] += in->speed[k * devices + g];
    }
    for (size_t d = 0; d < in->domains; d++) {
        for (size_t x = 0; x < in->experts; x++)
            sum[d * p->groups + x / per] += in->load[d * in->experts + x];
    }
    if ((rc = shard_place_layer(&top, groups, e)) != 0)
        goto out;
    for (size_t k = 0; rc == 0 && k < p->nodes; k++) {
        struct shard_place_in sub = { local, devices, in->domains, load, in->room + k * devices,
            in->speed + k * devices };
        uint32_t *to = slot + k * slots;

        for (size_t d = 0; d < in->domains; d++) {
            for (size_t x = 0; x < local; x++)
                load[d * local + x] = in->load[d * in->experts +
                    groups[k * each + x / per] * per + x % per];
        }
        rc = shard_place_layer(&sub, to, e);
        for (size_t i = 0; rc == 0 && i < slots; i++)
            to[i] = (uint32_t)(groups[k * each + to[i] / per] * per + to[i] % per);
    }
out:
    free(sum);
    free(load);
    free(speed);
    free(room);
    free(groups);
    return rc;
}

static void
layer(void *ctx, size_t i, int worker)
{
    struct plan *p = ctx;
    double *load = domains_of(p, i);
    struct shard_place_in in = { p->file.experts, p->devices, p->domains, load, p->file.room,
        p->speed };
    uint32_t *slot = p->file.slot + i * p->file.slots;

    (void)worker;
    if (load == NULL)
        p->rc[i] = moe_err_set(&p->err[i], MOE_ENOMEM, "plan: out of memory");
    else if (p->from != NULL)
        p->rc[i] = shard_place_from(&in, p->moves, slot, &p->err[i]);
    else if (p->groups > 1 && p->nodes > 1)
        p->rc[i] = place_grouped(p, &in, slot, &p->err[i]);
    else
        p->rc[i] = shard_place_layer(&in, slot, &p->err[i]);
    free(load);
}

static int
place(struct plan *p, struct moe_err *e)
{
    struct moe_pool *pool;
    int rc = moe_pool_new(p->threads, &pool, e);

    if (rc != 0)
        return rc;
    p->rc = calloc(p->file.layers, sizeof(*p->rc));
    p->err = calloc(p->file.layers, sizeof(*p->err));
    if (p->rc == NULL || p->err == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "plan: out of memory");
    else
        moe_pool_run(pool, p->file.layers, layer, p);
    moe_pool_free(pool);
    for (size_t i = 0; rc == 0 && i < p->file.layers; i++) {
        if (p->rc[i] != 0)
            rc = moe_err_set(e, p->rc[i], "layer %" PRIu32 ": %s", p->file.id[i], p->err[i].text);
    }
    return rc;
}

/* Where layer `id` is among the plan's, or SIZE_MAX. */
static size_t
layer_of(const struct plan *p, uint32_t id)
{
    for (size_t i = 0; i < p->file.layers; i++) {
        if (p->file.id[i] == id)
            return i;
    }
    return SIZE_MAX;
}

/* Layer after layer, so that each is fitted to one that no longer changes. */
static int
draw_together(struct plan *p, struct moe_err *e)
{
    int rc = shard_affine_read(p->pairs, p->file.experts, &p->links, e);

    for (size_t i = 0; rc == 0 && i < p->file.layers; i++) {
        const struct shard_affine_link *l = shard_affine_into(&p->links, p->file.id[i]);
        size_t before = l == NULL ? SIZE_MAX : layer_of(p, l->from);
        double *load, limit, now;

        if (before == SIZE_MAX)
            continue;
        if ((load = domains_of(p, i)) == NULL)
            return moe_err_set(e, MOE_ENOMEM, "plan: out of memory");
        {
            struct shard_place_in in = { p->file.experts, p->devices, p->domains, load,
                p->file.room, p->speed };
            uint32_t *slot = p->file.slot + i * p->file.slots;

            now = shard_place_cost(&in, slot);
            limit = 1 + p->slack > now ? 1 + p->slack : now;
            rc = shard_affine_improve(&in, l, p->file.slot + before * p->file.slots, limit, slot,
                e);
        }
        free(load);
    }
    return rc;
}

/* ---- What it is worth ----------------------------------------------------------------------- */

struct worth { double ratio, bound; };

/* Largest device over mean of one file's counts in layer i, and the least possible. */
static struct worth
worth_of(const struct plan *p, size_t k, size_t i)
{
    double *load = calloc(p->file.experts, sizeof(*load));
    struct shard_place_in in = { p->file.experts, p->devices, 1, load, p->file.room, p->speed };
    struct worth w = { 1, 1 };

    if (load == NULL)
        return w;
    add_row(&p->load[k], i, (double)p->devices, load);
    w.ratio = shard_place_cost(&in, p->file.slot + i * p->file.slots);
    w.bound = shard_place_bound(&in);
    if (w.bound == 0)
        w = (struct worth){ 1, 1 };
    free(load);
    return w;
}

static size_t
copies_twice(const struct plan *p, size_t i)
{
    const uint32_t *slot = p->file.slot + i * p->file.slots;
    size_t n = 0;

    for (size_t g = 0, at = 0; g < p->devices; at += p->file.room[g], g++) {
        for (size_t a = at; a < at + p->file.room[g]; a++) {
            for (size_t b = a + 1; b < at + p->file.room[g]; b++)
                n += slot[a] == slot[b];
        }
    }
    return n;
}

static double
locality(const struct plan *p, size_t i)
{
    const struct shard_affine_link *l = shard_affine_into(&p->links, p->file.id[i]);
    size_t before = l == NULL ? SIZE_MAX : layer_of(p, l->from);
    double *load = calloc(p->file.experts, sizeof(*load)), v = -1;
    struct shard_place_in in = { p->file.experts, p->devices, 1, load, p->file.room, p->speed };

    if (before != SIZE_MAX && load != NULL)
        v = shard_affine_share(&in, l, p->file.slot + before * p->file.slots,
            p->file.slot + i * p->file.slots);
    free(load);
    return v;
}

static void
real(struct moe_jsonw *w, const char *key, double v)
{
    moe_jsonw_key(w, key);
    moe_jsonw_real(w, v);
}

/* A line a layer of one file, and one for all of its layers. */
static int
tell_file(const struct plan *p, size_t k, struct moe_err *e)
{
    double ratio = 0, balance = 0, gap = 0, worst = 0;
    size_t twice = 0, n = p->file.layers;
    struct moe_buf b = MOE_BUF_INIT;

    for (size_t i = 0; i <= n; i++) {
        struct worth v = i < n ? worth_of(p, k, i) : (struct worth){ ratio / (double)n, 1 };
        double near = i < n ? locality(p, i) : -1;
        struct moe_jsonw w = { &b, false };

        if (i < n) {
            ratio += v.ratio;
            balance += 1 / v.ratio;
            gap += v.ratio / v.bound - 1;
            worst = v.ratio > worst ? v.ratio : worst;
            twice += copies_twice(p, i);
        }
        moe_buf_clear(&b);
        if (p->json) {
            moe_jsonw_open(&w, '{');
            moe_jsonw_key(&w, "load");
            moe_jsonw_str(&w, p->names[k], strlen(p->names[k]));
            moe_jsonw_key(&w, "layer");
            if (i < n)
                moe_jsonw_uint(&w, p->file.id[i]);
            else
                moe_jsonw_null(&w);
            real(&w, "max_over_mean", v.ratio);
            real(&w, "balancedness", i < n ? 1 / v.ratio : balance / (double)n);
            real(&w, "gap_to_bound", i < n ? v.ratio / v.bound - 1 : gap / (double)n);
            if (i < n)
                real(&w, "bound_over_mean", v.bound);
            else
                real(&w, "worst_layer", worst);
            if (near >= 0)
                real(&w, "same_device_share", near);
            moe_jsonw_key(&w, "duplicates");
            moe_jsonw_uint(&w, i < n ? copies_twice(p, i) : twice);
            moe_jsonw_close(&w, '}');
            moe_buf_byte(&b, '\n');
        } else if (i < n) {
            moe_buf_fmt(&b, "layer %4" PRIu32 "  max/mean %8.5f  bound %8.5f  gap %7.3f %%",
                p->file.id[i], v.ratio, v.bound, 100 * (v.ratio / v.bound - 1));
            if (near >= 0)
                moe_buf_fmt(&b, "  pairs kept %5.1f %%", 100 * near);
            moe_buf_byte(&b, '\n');
        } else {
            moe_buf_show(&b, p->names[k], strlen(p->names[k]));
            moe_buf_fmt(&b, ": balancedness %.5f, max/mean %.5f, worst layer %.5f, gap %.3f %%, %zu"
                " twice on a device\n", balance / (double)n, v.ratio, worst,
                100 * gap / (double)n, twice);
        }
        if (b.bad) {
            moe_buf_fini(&b);
            return moe_err_set(e, MOE_ENOMEM, "plan: out of memory");
        }
        (void)fwrite(b.p, 1, b.len, stdout);
    }
    moe_buf_fini(&b);
    return 0;
}

static int
write_plan(const struct plan *p, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_out *o = NULL;
    int rc = shard_planfile_write(&p->file, p->names, &b, e);

    if (rc == 0 && (rc = moe_out_open(p->output, p->force, b.len, &o, e)) == 0 &&
        (rc = moe_out_write(o, b.p, b.len, e)) == 0) {
        rc = moe_out_commit(o, e);
        o = NULL;
    }
    moe_out_abort(o);
    moe_buf_fini(&b);
    return rc;
}

static int
run(struct plan *p, struct moe_err *e)
{
    bool silent = p->output != NULL && strcmp(p->output, "-") == 0;
    int rc;

    if ((rc = read_loads(p, e)) != 0 || (rc = set_shape(p, e)) != 0 ||
        (rc = set_speeds(p, e)) != 0)
        return rc;
    p->domains = p->robust ? p->n_loads : 1;
    if ((rc = place(p, e)) != 0 || (p->pairs != NULL && (rc = draw_together(p, e)) != 0))
        return rc;
    for (size_t k = 0; rc == 0 && !silent && k < p->n_loads; k++)
        rc = tell_file(p, k, e);
    return rc == 0 && p->output != NULL ? write_plan(p, e) : rc;
}

int
shard_plan(int argc, char **argv, struct moe_err *e)
{
    struct plan *p = calloc(1, sizeof(*p));
    bool done;
    int first, rc;

    if (p == NULL)
        return moe_err_set(e, MOE_ENOMEM, "plan: out of memory");
    p->nodes = p->groups = 1;
    p->slack = 0.1;
    p->moves = SIZE_MAX;
    rc = moe_opt_parse(&shard_plan_cmd, argc, argv, option, p, &first, &done, e);
    if (rc == 0 && !done) {
        p->names = (const char *const *)(argv + first);
        p->n_loads = (size_t)(argc - first);
        if (p->n_loads < 1 || p->n_loads > MAX_LOADS)
            rc = moe_err_set(e, MOE_EUSAGE, "1 to %d LOADs are wanted", MAX_LOADS);
        else
            rc = run(p, e);
    }
    for (size_t i = 0; i < p->n_loads && i < MAX_LOADS; i++)
        shard_load_fini(&p->load[i]);
    shard_affine_fini(&p->links);
    shard_planfile_fini(&p->file);
    free(p->speed);
    free(p->rc);
    free(p->err);
    free(p);
    return rc;
}
