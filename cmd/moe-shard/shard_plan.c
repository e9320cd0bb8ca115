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
#include "cmd/moe-shard/shard_group.h"
#include "cmd/moe-shard/shard_load.h"
#include "cmd/moe-shard/shard_near.h"
#include "cmd/moe-shard/shard_place.h"
#include "cmd/moe-shard/shard_plan.h"
#include "cmd/moe-shard/shard_planfile.h"
#include "cmd/moe-shard/shard_shape.h"
#include "cmd/moe-shard/shard_worth.h"
#include "common/base/num.h"
#include "common/base/out.h"
#include "common/base/pool.h"
#include "common/base/tool.h"

#define MAX_LOADS 64
#define FEW 50                  /* tokens an expert, on the mean, below which counts say little */

enum {
    SLOTS = 1, DEVICES, NODES, GROUPS, ROOM, SPEED, TOPO, CLASSES, EXPERT_BYTES, WEIGHTS, PRIOR,
    ROBUST, FROM, MOVES, MOVE_BUDGET, PAIRS, SLACK, OUTPUT, JSON, THREADS, FORCE, QUIET
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
    { ROOM, 0, "room", MOE_OPT_WORD, "N,N", "slots of each device", NULL, false, false },
    { TOPO, 0, "topo", MOE_OPT_FILE, "FILE", "devices and links, as topo reads them", NULL, false,
        false },
    { CLASSES, 0, "bandwidth", MOE_OPT_WORD, "CLASS=SIZE", "with --topo: what it does not tell",
        NULL, false, false },
    { EXPERT_BYTES, 0, "expert-bytes", MOE_OPT_WORD, "SIZE", "of one expert of one layer", NULL,
        false, false },
    { WEIGHTS, 0, "weights", MOE_OPT_WORD, "W,W", "how much each LOAD counts", NULL, false, false },
    { PRIOR, 0, "prior", MOE_OPT_WORD, "X", "added to every count (0)", NULL, false, false },
    { ROBUST, 0, "robust", MOE_OPT_NONE, NULL, "best for the worst LOAD, not for their mean", NULL,
        false, false },
    { FROM, 0, "from", MOE_OPT_FILE, "PLAN", "begin with this plan", NULL, false, false },
    { MOVES, 0, "moves", MOE_OPT_WORD, "N", "with --from: slots of a layer that may change", NULL,
        false, false },
    { MOVE_BUDGET, 0, "move-budget", MOE_OPT_WORD, "SIZE", "with --from: bytes that may move",
        NULL, false, false },
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
    "--topo FILE [--expert-bytes SIZE] [OPTION ...] LOAD ...",
    "--from PLAN --moves N [OPTION ...] LOAD ...",
    NULL
};

const struct moe_opt_cmd shard_plan_cmd = {
    "moe-shard plan", usage, "Plan which device holds which experts.", rows, NULL
};

struct plan {
    /* The command line. */
    struct shard_shape_ask ask;
    size_t groups, moves;
    uint64_t move_bytes;        /* UINT64_MAX: not said */
    const char *weights, *from, *pairs, *output;
    bool robust, json, force, quiet;
    double slack, prior;
    int threads;
    /* What is read, and what comes out. */
    const char *const *names;
    size_t n_loads, domains;
    struct shard_load load[MAX_LOADS];
    double weight[MAX_LOADS];
    struct shard_shape shape;
    size_t moved;               /* slots that move_bytes are */
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
        p->ask.slots = (size_t)v;
        break;
    case DEVICES:
        rc = moe_num_int(arg, 1, SHARD_PLANFILE_MAX_DEVICES, "--devices", &v, e);
        p->ask.devices = (size_t)v;
        break;
    case NODES:
        rc = moe_num_int(arg, 1, SHARD_PLANFILE_MAX_DEVICES, "--nodes", &v, e);
        p->ask.nodes = (size_t)v;
        break;
    case GROUPS:
        rc = moe_num_int(arg, 1, SHARD_LOAD_MAX_EXPERTS, "--groups", &v, e);
        p->groups = (size_t)v;
        break;
    case SPEED: p->ask.speed = arg; break;
    case ROOM: p->ask.room = arg; break;
    case TOPO: p->ask.topo = arg; break;
    case CLASSES: p->ask.classes = arg; break;
    case EXPERT_BYTES: return moe_num_size(arg, 1, UINT64_C(1) << 50, "--expert-bytes",
        &p->ask.expert_bytes, e);
    case MOVE_BUDGET: return moe_num_size(arg, 0, UINT64_C(1) << 60, "--move-budget",
        &p->move_bytes, e);
    case WEIGHTS: p->weights = arg; break;
    case PRIOR: return moe_num_real(arg, 0, 1e12, "--prior", &p->prior, e);
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
        struct shard_load *a = &p->load[0], *b = &p->load[i];

        if ((rc = shard_load_read(p->names[i], &p->load[i], e)) != 0)
            return rc;
        if (b->layers != a->layers || b->experts != a->experts ||
            memcmp(b->id, a->id, a->layers * sizeof(*a->id)) != 0)
            return moe_err_set(e, MOE_EFORMAT, "%s: other layers or experts than %s",
                p->names[i], p->names[0]);
        warn_about(p, b, p->names[i]);
        for (size_t k = 0; k < b->layers * b->experts; k++)
            b->count[k] += p->prior;
        p->weight[i] = 1;
    }
    return p->weights == NULL ? 0 :
        shard_shape_list(p->weights, "--weights", p->n_loads, p->weight, e);
}

/* The old plan; what it does not say (speeds, links) is as the options say. */
static int
take_old(struct plan *p, struct moe_err *e)
{
    struct shard_planfile *f = &p->file;
    const struct shard_load *l = &p->load[0];
    int rc;

    if ((rc = shard_planfile_read(p->from, f, e)) != 0)
        return rc;
    if (f->layers != l->layers || f->experts != l->experts ||
        memcmp(f->id, l->id, l->layers * sizeof(*l->id)) != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: other layers or experts than %s", p->from,
            p->names[0]);
    p->ask.devices = f->devices;
    p->ask.nodes = f->nodes;
    p->ask.have = f->room;
    return 0;
}

/* Devices and slots, and a plan of them that is empty unless there is an old one. */
static int
set_shape(struct plan *p, struct moe_err *e)
{
    struct shard_planfile *f = &p->file;
    const struct shard_load *l = &p->load[0];
    int rc;

    if (p->from != NULL && (rc = take_old(p, e)) != 0)
        return rc;
    if ((rc = shard_shape_get(&p->ask, l->layers, l->experts, &p->shape, e)) != 0)
        return rc;
    if (l->experts % p->groups != 0 || (p->groups > 1 && p->groups % p->shape.nodes != 0))
        return moe_err_set(e, MOE_EUNSUP, "%zu experts in %zu groups on %zu nodes: do not divide",
            l->experts, p->groups, p->shape.nodes);
    if (p->from != NULL)
        return 0;
    *f = (struct shard_planfile){ .layers = l->layers, .experts = l->experts,
        .devices = p->shape.devices, .nodes = p->shape.nodes, .slots = p->shape.slots };
    f->id = calloc(f->layers + 1, sizeof(*f->id));
    f->room = calloc(f->devices + 1, sizeof(*f->room));
    f->slot = calloc(f->layers * f->slots + 1, sizeof(*f->slot));
    if (f->id == NULL || f->room == NULL || f->slot == NULL)
        return moe_err_set(e, MOE_ENOMEM, "plan: out of memory");
    memcpy(f->id, l->id, f->layers * sizeof(*f->id));
    memcpy(f->room, p->shape.room, f->devices * sizeof(*f->room));
    return 0;
}

/* Slots that may change: as many in each layer, the first ones one more. */
static int
set_moves(struct plan *p, struct moe_err *e)
{
    if (p->move_bytes == UINT64_MAX)
        return 0;
    if (p->ask.expert_bytes == 0)
        return moe_err_set(e, MOE_EUSAGE, "--move-budget wants --expert-bytes");
    p->moved = (size_t)(p->move_bytes / p->ask.expert_bytes);
    return 0;
}

static size_t
moves_of(const struct plan *p, size_t i)
{
    size_t n = p->file.layers;

    if (p->move_bytes == UINT64_MAX)
        return p->moves;
    return p->moved / n + (i < p->moved % n);
}
/* ---- One layer ---------------------------------------------------------------------------- */

/* Loads of layer i: a domain a file, or one of all. Freed by the caller. */
static double *
domains_of(const struct plan *p, size_t i)
{
    size_t n = p->file.experts;
    double *out = calloc(p->domains * n, sizeof(*out)), all = 0;

    for (size_t k = 0; k < p->n_loads; k++)
        all += p->weight[k];
    for (size_t k = 0; out != NULL && k < p->n_loads; k++)
        shard_load_add(&p->load[k], i, (double)p->file.devices *
            (p->robust ? 1 : p->weight[k] / all), out + (p->robust ? k : 0) * n);
    return out;
}

/* What a layer is to be placed by; load: of domains_of(). */
static struct shard_place_in
place_in(const struct plan *p, size_t domains, const double *load)
{
    return (struct shard_place_in){ p->file.experts, p->file.devices, domains, load, p->file.room,
        p->shape.speed };
}

/* Devices exchanged so that tokens have less far to go, on the mean of all loads. */
static int
draw_near(const struct plan *p, size_t i, uint32_t *slot, struct moe_err *e)
{
    double *load = calloc(p->file.experts, sizeof(*load)), all = 0;
    struct shard_place_in in = place_in(p, 1, load);
    int rc;

    if (load == NULL)
        return moe_err_set(e, MOE_ENOMEM, "plan: out of memory");
    for (size_t k = 0; k < p->n_loads; k++)
        all += p->weight[k];
    for (size_t k = 0; k < p->n_loads; k++)
        shard_load_add(&p->load[k], i, (double)p->file.devices * p->weight[k] / all, load);
    rc = shard_near_improve(&in, &p->shape.wire, slot, e);
    free(load);
    return rc;
}

static void
layer(void *ctx, size_t i, int worker)
{
    struct plan *p = ctx;
    double *load = domains_of(p, i);
    struct shard_place_in in = place_in(p, p->domains, load);
    uint32_t *slot = p->file.slot + i * p->file.slots;

    (void)worker;
    if (load == NULL)
        p->rc[i] = moe_err_set(&p->err[i], MOE_ENOMEM, "plan: out of memory");
    else if (p->from != NULL)
        p->rc[i] = shard_place_from(&in, moves_of(p, i), slot, &p->err[i]);
    else if (p->groups > 1 && p->shape.nodes > 1)
        p->rc[i] = shard_group_place(&in, p->groups, p->shape.nodes, slot, &p->err[i]);
    else
        p->rc[i] = shard_place_layer(&in, slot, &p->err[i]);
    if (p->rc[i] == 0 && p->from == NULL && p->shape.wire.n > 0)
        p->rc[i] = draw_near(p, i, slot, &p->err[i]);
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

/* Layer after layer, so that each is fitted to one that no longer changes. */
static int
draw_together(struct plan *p, struct moe_err *e)
{
    int rc = shard_affine_read(p->pairs, p->file.experts, &p->links, e);

    for (size_t i = 0; rc == 0 && i < p->file.layers; i++) {
        const struct shard_affine_link *l = shard_affine_into(&p->links, p->file.id[i]);
        size_t before = l == NULL ? p->file.layers :
            shard_planfile_layer(&p->file, l->from);
        double *load, limit, now;

        if (before == p->file.layers)
            continue;
        if ((load = domains_of(p, i)) == NULL)
            return moe_err_set(e, MOE_ENOMEM, "plan: out of memory");
        {
            struct shard_place_in in = place_in(p, p->domains, load);
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

/* ---- The whole ----------------------------------------------------------------------------- */

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
        (rc = set_moves(p, e)) != 0)
        return rc;
    p->domains = p->robust ? p->n_loads : 1;
    if ((rc = place(p, e)) != 0 || (p->pairs != NULL && (rc = draw_together(p, e)) != 0))
        return rc;
    for (size_t k = 0; rc == 0 && !silent && k < p->n_loads; k++) {
        struct shard_worth w = { &p->file, p->names[k], &p->load[k], p->shape.speed,
            p->pairs != NULL ? &p->links : NULL, p->shape.wire.n > 0 ? &p->shape.wire : NULL,
            p->json };

        rc = shard_worth_tell(&w, e);
    }
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
    p->groups = 1;
    p->slack = 0.1;
    p->moves = SIZE_MAX;
    p->move_bytes = UINT64_MAX;
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
    shard_shape_fini(&p->shape);
    free(p->rc);
    free(p->err);
    free(p);
    return rc;
}
