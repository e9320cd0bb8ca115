/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the command `sim`: bytes of every pair of devices, and from them the time
 * of steps, under a model of links that the options state.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_affine.h"
#include "cmd/moe-shard/shard_draw.h"
#include "cmd/moe-shard/shard_load.h"
#include "cmd/moe-shard/shard_picture.h"
#include "cmd/moe-shard/shard_route.h"
#include "cmd/moe-shard/shard_sim.h"
#include "cmd/moe-shard/shard_tell.h"
#include "cmd/moe-shard/shard_wire.h"
#include "common/base/num.h"
#include "common/base/out.h"

#define MAX_STEPS 1000000

enum {
    PLAN = 1, NAIVE, DEVICES, NODES, RAIL, OUT_BYTES, BACK_BYTES, STEP, LATENCY, INNER, OUTER,
    COMPUTE, TOPO, CLASSES, DRAW, TOKENS, SEED, PAIRS, MATRIX, PICTURE, JSON, FORCE
};

static const struct moe_opt rows[] = {
    { PLAN, 'p', "plan", MOE_OPT_FILE, "PLAN", "the plan to play over", NULL, false, false },
    { NAIVE, 0, "naive", MOE_OPT_WORD, "E", "no plan: expert x of E on device x % devices", NULL,
        false, false },
    { DEVICES, 'g', "devices", MOE_OPT_WORD, "N", "with --naive", NULL, false, false },
    { NODES, 0, "nodes", MOE_OPT_WORD, "N", "with --naive", NULL, false, false },
    { RAIL, 0, "rail", MOE_OPT_NONE, NULL, "one message a node, and on from there", NULL, false,
        false },
    { OUT_BYTES, 0, "dispatch-bytes", MOE_OPT_WORD, "SIZE", "of a token on its way out (1)", NULL,
        false, false },
    { BACK_BYTES, 0, "combine-bytes", MOE_OPT_WORD, "SIZE", "of a token on its way back (1)", NULL,
        false, false },
    { STEP, 0, "step", MOE_OPT_WORD, "N", "tokens of a step (all)", NULL, false, false },
    { LATENCY, 0, "latency", MOE_OPT_WORD, "SEC", "of an exchange (0)", NULL, false, false },
    { INNER, 0, "node-bandwidth", MOE_OPT_WORD, "SIZE", "a second and device, within a node", NULL,
        false, false },
    { OUTER, 0, "link-bandwidth", MOE_OPT_WORD, "SIZE", "a second and device, between nodes", NULL,
        false, false },
    { COMPUTE, 0, "token-time", MOE_OPT_WORD, "SEC", "of an expert and token (0)", NULL, false,
        false },
    { TOPO, 0, "topo", MOE_OPT_FILE, "FILE", "devices and links, as topo reads them", NULL, false,
        false },
    { CLASSES, 0, "bandwidth", MOE_OPT_WORD, "CLASS=SIZE", "with --topo: what it does not tell",
        NULL, false, false },
    { DRAW, 0, "draw", MOE_OPT_WORD, "K", "no trace: draw K experts a token from counts", NULL,
        false, false },
    { TOKENS, 0, "tokens", MOE_OPT_WORD, "N", "with --draw: so many (4096)", NULL, false, false },
    { SEED, 0, "seed", MOE_OPT_WORD, "N", "with --draw (0)", NULL, false, false },
    { PAIRS, 0, "pairs", MOE_OPT_FILE, "FILE", "with --draw: which expert follows which", NULL,
        false, false },
    { MATRIX, 0, "matrix", MOE_OPT_FILE, "FILE", "write bytes from device to device", NULL, false,
        false },
    { PICTURE, 0, "picture", MOE_OPT_FILE, "FILE", "draw devices and links as SVG", NULL, false,
        false },
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "JSON Lines, matrices with them", NULL, false, false },
    { FORCE, 0, "force", MOE_OPT_NONE, NULL, "replace what is there", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = {
    "-p PLAN [--rail] [OPTION ...] TRACE",
    "--naive E -g N [--nodes N] [OPTION ...] TRACE",
    "-p PLAN --topo FILE --draw K [OPTION ...] LOAD",
    NULL
};

const struct moe_opt_cmd shard_sim_cmd = {
    "moe-shard sim", usage, "Play a routing trace over a plan.", rows, NULL
};

struct sim {
    const char *plan, *matrix, *picture;
    size_t naive, devices, nodes;
    enum shard_route_way way;
    uint64_t out_bytes, back_bytes, step;
    double latency, inner, outer, compute;  /* seconds, bytes a second; bandwidth 0 = endless */
    bool json, force;
    const char *topo, *classes, *pairs;
    size_t draw;                /* experts a token, drawn from counts; 0: a trace */
    uint64_t tokens, seed;
    struct shard_planfile file;
    struct shard_wire wire;
    struct shard_route_trace trace;
    double *time;               /* [steps] seconds */
    size_t steps;
    double *bytes;              /* [devices][devices] there and back, all layers */
    double *scratch;            /* [devices][devices] */
    double *load;               /* [devices] choices of all layers */
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct sim *s = ctx;
    int64_t v = 0;
    uint64_t u = 0;
    int rc = 0;

    switch (id) {
    case PLAN: s->plan = arg; break;
    case NAIVE: case DEVICES: case NODES:
        rc = moe_num_int(arg, 1, SHARD_PLANFILE_MAX_DEVICES, "number", &v, e);
        *(id == NAIVE ? &s->naive : id == DEVICES ? &s->devices : &s->nodes) = (size_t)v;
        break;
    case RAIL: s->way = SHARD_ROUTE_RAIL; break;
    case OUT_BYTES: return moe_num_size(arg, 0, (uint64_t)1 << 40, "--dispatch-bytes",
        &s->out_bytes, e);
    case BACK_BYTES: return moe_num_size(arg, 0, (uint64_t)1 << 40, "--combine-bytes",
        &s->back_bytes, e);
    case STEP:
        rc = moe_num_int(arg, 1, INT64_MAX, "--step", &v, e);
        s->step = (uint64_t)v;
        break;
    case LATENCY: return moe_num_real(arg, 0, 1e6, "--latency", &s->latency, e);
    case INNER: case OUTER:
        rc = moe_num_size(arg, 1, UINT64_MAX, "bandwidth", &u, e);
        *(id == INNER ? &s->inner : &s->outer) = (double)u;
        break;
    case COMPUTE: return moe_num_real(arg, 0, 1e6, "--token-time", &s->compute, e);
    case TOPO: s->topo = arg; break;
    case CLASSES: s->classes = arg; break;
    case DRAW:
        rc = moe_num_int(arg, 1, SHARD_LOAD_MAX_EXPERTS, "--draw", &v, e);
        s->draw = (size_t)v;
        break;
    case TOKENS: case SEED:
        rc = moe_num_int(arg, id == TOKENS, INT64_MAX, "number", &v, e);
        *(id == TOKENS ? &s->tokens : &s->seed) = (uint64_t)v;
        break;
    case PAIRS: s->pairs = arg; break;
    case MATRIX: s->matrix = arg; break;
    case PICTURE: s->picture = arg; break;
    case JSON: s->json = true; break;
    default: s->force = true;
    }
    return rc;
}

/* ---- What is played -------------------------------------------------------------- */

static int
by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Every layer of the trace, experts dealt out in turn. */
static int
naive_plan(struct sim *s, struct moe_err *e)
{
    uint32_t *ids = calloc(s->trace.n + 1, sizeof(*ids));
    size_t n = 0;
    int rc;

    if (ids == NULL)
        return moe_err_set(e, MOE_ENOMEM, "simulation: out of memory");
    for (size_t i = 0; i < s->trace.n; i++)
        ids[i] = s->trace.choice[i].layer;
    qsort(ids, s->trace.n, sizeof(*ids), by_number);
    for (size_t i = 0; i < s->trace.n; i++) {
        if (n == 0 || ids[i] != ids[n - 1])
            ids[n++] = ids[i];
    }
    rc = shard_planfile_naive(s->naive, s->devices, s->nodes, ids, n, &s->file, e);
    free(ids);
    return rc;
}

/* The trace of a file, or one drawn from its counts. */
static int
get_trace(struct sim *s, const char *path, struct moe_err *e)
{
    struct shard_affine_pairs pairs = { .n = 0 };
    struct shard_load load;
    int rc;

    if (s->draw == 0)
        return shard_route_read(path, &s->trace, e);
    if ((rc = shard_load_read(path, &load, e)) != 0)
        return rc;
    if (s->pairs == NULL || (rc = shard_affine_read(s->pairs, load.experts, &pairs, e)) == 0)
        rc = shard_draw(&load, s->pairs != NULL ? &pairs : NULL, s->tokens, s->draw, s->seed,
            &s->trace, e);
    shard_affine_fini(&pairs);
    shard_load_fini(&load);
    return rc;
}

/* The links: of a topology, or of nodes that are all alike. */
static int
get_wires(struct sim *s, struct moe_err *e)
{
    if (s->plan != NULL) {
        s->devices = s->file.devices;
        s->nodes = s->file.nodes;
    }
    if (s->topo == NULL && (s->devices == 0 || s->devices % s->nodes != 0))
        return moe_err_set(e, MOE_EUSAGE, "--naive: %zu devices of %zu nodes", s->devices,
            s->nodes);
    if (s->topo == NULL)
        return shard_wire_nodes(s->devices, s->nodes, s->inner, s->outer, &s->wire, e);
    return shard_wire_topo(s->topo, s->classes, &s->wire, e);
}

/* Plan or none, trace and links: do they go together? */
static int
get_plan(struct sim *s, struct moe_err *e)
{
    int rc;

    if (s->plan != NULL && (rc = shard_planfile_read(s->plan, &s->file, e)) != 0)
        return rc;
    if ((rc = get_wires(s, e)) != 0)
        return rc;
    if (s->topo != NULL && s->devices != 0 && s->devices != s->wire.n)
        return moe_err_set(e, MOE_EUNSUP, "%s: %zu accelerators, the plan is for %zu devices",
            s->topo, s->wire.n, s->devices);
    s->devices = s->wire.n;
    s->nodes = s->wire.nodes;
    if (s->plan == NULL && s->naive < s->devices)
        return moe_err_set(e, MOE_EUSAGE, "--naive: %zu experts on %zu devices", s->naive,
            s->devices);
    return s->plan != NULL ? 0 : naive_plan(s, e);
}

/* ---- Time --------------------------------------------------------------- */

/* Seconds of an exchange of this many bytes a token. */
static double
exchange(struct sim *s, const uint64_t *sent, uint64_t bytes, bool back)
{
    size_t n = s->wire.n;

    for (size_t a = 0; a < n; a++) {
        for (size_t b = 0; b < n; b++)
            s->scratch[a * n + b] = (double)(back ? sent[b * n + a] : sent[a * n + b]) *
                (double)bytes;
    }
    return s->latency + shard_wire_time(&s->wire, s->scratch);
}

static void
add_time(struct sim *s, size_t step, const struct shard_route_flow *f)
{
    uint64_t most = 0;

    for (size_t g = 0; g < s->file.devices; g++)
        most = f->load[g] > most ? f->load[g] : most;
    s->time[step] += exchange(s, f->sent, s->out_bytes, false) + s->compute * (double)most +
        exchange(s, f->sent, s->back_bytes, true);
}

/* ---- Files ----------------------------------------------------------------- */

static int
write_file(const struct sim *s, const char *path, struct moe_buf *b, struct moe_err *e)
{
    struct moe_out *o = NULL;
    int rc;

    if (b->bad)
        rc = moe_err_set(e, MOE_ENOMEM, "simulation: out of memory");
    else if ((rc = moe_out_open(path, s->force, b->len, &o, e)) == 0 &&
        (rc = moe_out_write(o, b->p, b->len, e)) == 0) {
        rc = moe_out_commit(o, e);
        o = NULL;
    }
    moe_out_abort(o);
    moe_buf_fini(b);
    return rc;
}

/* The bytes from each device to each other: a line a sender. */
static int
write_matrix(const struct sim *s, struct moe_err *e)
{
    size_t n = s->file.devices;
    struct moe_buf b = MOE_BUF_INIT;

    for (size_t a = 0; a < n; a++) {
        for (size_t k = 0; k < n; k++)
            moe_buf_fmt(&b, "%s%.0f", k > 0 ? " " : "", s->bytes[a * n + k]);
        moe_buf_byte(&b, '\n');
    }
    return write_file(s, s->matrix, &b, e);
}

static int
write_picture(const struct sim *s, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc = shard_picture_svg(&s->wire, s->load, s->bytes, &b, e);

    if (rc == 0)
        return write_file(s, s->picture, &b, e);
    moe_buf_fini(&b);
    return rc;
}

/* ---- The whole --------------------------------------------------------------- */

static struct shard_tell
telling(const struct sim *s)
{
    return (struct shard_tell){ &s->file, &s->wire, s->out_bytes, s->back_bytes, s->json };
}

static int
play_layer(struct sim *s, size_t l, struct moe_err *e)
{
    size_t n = s->file.devices;
    struct shard_tell tell = telling(s);
    struct shard_route_flow all = { NULL, NULL }, f = { NULL, NULL };
    int rc = shard_route_flow_new(n, &all, e);

    for (size_t k = 0; rc == 0 && k < s->steps; k++) {
        uint64_t from = k * s->step, left = s->trace.tokens - from;

        if ((rc = shard_route_flow_new(n, &f, e)) == 0 && (rc = shard_route_layer(&s->file, l,
            &s->wire, &s->trace, s->way, from, from + (left < s->step ? left : s->step), &f,
            e)) == 0) {
            add_time(s, k, &f);
            for (size_t g = 0; g < n; g++)
                all.load[g] += f.load[g];
            for (size_t i = 0; i < n * n; i++)
                all.sent[i] += f.sent[i];
        }
        shard_route_flow_free(&f);
    }
    for (size_t a = 0; rc == 0 && a < n; a++) {
        s->load[a] += (double)all.load[a];
        for (size_t b = 0; b < n; b++)
            s->bytes[a * n + b] += (double)(all.sent[a * n + b] * s->out_bytes +
                all.sent[b * n + a] * s->back_bytes);
    }
    if (rc == 0)
        rc = shard_tell_layer(&tell, l, &all, e);
    shard_route_flow_free(&all);
    return rc;
}

static int
tell_all(struct sim *s, struct moe_err *e)
{
    struct shard_tell t = telling(s);

    return shard_tell_all(&t, s->time, s->steps, s->bytes, e);
}

static int
play(struct sim *s, const char *trace, struct moe_err *e)
{
    int rc;

    if ((rc = get_trace(s, trace, e)) != 0 || (rc = get_plan(s, e)) != 0)
        return rc;
    if (s->step == 0 || s->step > s->trace.tokens)
        s->step = s->trace.tokens;
    s->steps = (size_t)((s->trace.tokens + s->step - 1) / s->step);
    if (s->steps > MAX_STEPS)
        return moe_err_set(e, MOE_ELIMIT, "%s: %zu steps, over %d", trace, s->steps, MAX_STEPS);
    s->time = calloc(s->steps, sizeof(*s->time));
    s->bytes = calloc(s->wire.n * s->wire.n, sizeof(*s->bytes));
    s->scratch = calloc(s->wire.n * s->wire.n, sizeof(*s->scratch));
    s->load = calloc(s->wire.n, sizeof(*s->load));
    if (s->time == NULL || s->bytes == NULL || s->scratch == NULL || s->load == NULL)
        return moe_err_set(e, MOE_ENOMEM, "simulation: out of memory");
    for (size_t l = 0; rc == 0 && l < s->file.layers; l++)
        rc = play_layer(s, l, e);
    if (rc == 0)
        rc = tell_all(s, e);
    if (rc == 0 && s->matrix != NULL)
        rc = write_matrix(s, e);
    return rc == 0 && s->picture != NULL ? write_picture(s, e) : rc;
}

int
shard_sim(int argc, char **argv, struct moe_err *e)
{
    struct sim *s = calloc(1, sizeof(*s));
    bool done;
    int first, rc;

    if (s == NULL)
        return moe_err_set(e, MOE_ENOMEM, "simulation: out of memory");
    s->nodes = 1;
    s->out_bytes = s->back_bytes = 1;
    s->tokens = 4096;
    rc = moe_opt_parse(&shard_sim_cmd, argc, argv, option, s, &first, &done, e);
    if (rc == 0 && !done && (argc - first != 1 || (s->plan == NULL) == (s->naive == 0)))
        rc = moe_err_set(e, MOE_EUSAGE, "one TRACE is wanted, and --plan or --naive");
    else if (rc == 0 && !done)
        rc = play(s, argv[first], e);
    shard_planfile_fini(&s->file);
    shard_wire_fini(&s->wire);
    shard_route_fini(&s->trace);
    free(s->time);
    free(s->bytes);
    free(s->scratch);
    free(s->load);
    free(s);
    return rc;
}
