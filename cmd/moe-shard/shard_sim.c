/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the command `sim`: bytes of every pair of devices, and from them the time
 * of steps, under a model of links that the options state.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_route.h"
#include "cmd/moe-shard/shard_sim.h"
#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/base/out.h"

#define MAX_STEPS 1000000

enum {
    PLAN = 1, NAIVE, DEVICES, NODES, RAIL, OUT_BYTES, BACK_BYTES, STEP, LATENCY, INNER, OUTER,
    COMPUTE, MATRIX, JSON, FORCE
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
    { MATRIX, 0, "matrix", MOE_OPT_FILE, "FILE", "write bytes from device to device", NULL, false,
        false },
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "JSON Lines, matrices with them", NULL, false, false },
    { FORCE, 0, "force", MOE_OPT_NONE, NULL, "replace what is there", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = {
    "-p PLAN [--rail] [OPTION ...] TRACE",
    "--naive E -g N [--nodes N] [OPTION ...] TRACE",
    NULL
};

const struct moe_opt_cmd shard_sim_cmd = {
    "moe-shard sim", usage, "Play a routing trace over a plan.", rows, NULL
};

struct sim {
    const char *plan, *matrix;
    size_t naive, devices, nodes;
    enum shard_route_way way;
    uint64_t out_bytes, back_bytes, step;
    double latency, inner, outer, compute;  /* seconds, bytes a second; bandwidth 0 = endless */
    bool json, force;
    struct shard_planfile file;
    struct shard_route_trace trace;
    double *time;               /* [steps] seconds */
    size_t steps;
    uint64_t *bytes;            /* [devices][devices] there and back, all layers */
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
    case MATRIX: s->matrix = arg; break;
    case JSON: s->json = true; break;
    default: s->force = true;
    }
    return rc;
}

/* ---- The plan ------------------------------------------------------------------------ */

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
    struct shard_planfile *p = &s->file;
    uint32_t *ids = calloc(s->trace.n + 1, sizeof(*ids));

    if (s->devices == 0 || s->devices % s->nodes != 0 || s->naive < s->devices) {
        free(ids);
        return moe_err_set(e, MOE_EUSAGE, "--naive: %zu experts on %zu devices of %zu nodes",
            s->naive, s->devices, s->nodes);
    }
    *p = (struct shard_planfile){ .experts = s->naive, .devices = s->devices, .nodes = s->nodes,
        .slots = s->naive };
    for (size_t i = 0; ids != NULL && i < s->trace.n; i++)
        ids[i] = s->trace.choice[i].layer;
    if (ids != NULL)
        qsort(ids, s->trace.n, sizeof(*ids), by_number);
    for (size_t i = 0; ids != NULL && i < s->trace.n; i++) {
        if (i == 0 || ids[i] != ids[i - 1])
            ids[p->layers++] = ids[i];
    }
    p->id = ids;
    p->room = calloc(p->devices, sizeof(*p->room));
    p->slot = calloc(p->layers * p->slots + 1, sizeof(*p->slot));
    if (ids == NULL || p->room == NULL || p->slot == NULL)
        return moe_err_set(e, MOE_ENOMEM, "simulation: out of memory");
    for (size_t l = 0; l < p->layers; l++) {
        for (size_t g = 0, i = l * p->slots; g < p->devices; g++) {
            p->room[g] = 0;
            for (size_t x = g; x < p->experts; x += p->devices, p->room[g]++)
                p->slot[i++] = (uint32_t)x;
        }
    }
    return 0;
}

/* ---- Time --------------------------------------------------------------- */

/* The slowest device of an exchange: what it sends or what it gets, within its node and beyond. */
static double
exchange(const struct sim *s, const uint64_t *sent, uint64_t bytes, bool back)
{
    size_t n = s->file.devices, per = n / s->file.nodes;
    double most = 0;

    for (size_t g = 0; g < n; g++) {
        double way[2][2] = { { 0 } };       /* [out, in][within, beyond] bytes */

        for (size_t h = 0; h < n; h++) {
            bool beyond = g / per != h / per;

            way[back][beyond] += (double)sent[g * n + h] * (double)bytes;
            way[!back][beyond] += (double)sent[h * n + g] * (double)bytes;
        }
        for (int d = 0; d < 2; d++) {
            double t = (s->inner > 0 ? way[d][0] / s->inner : 0) +
                (s->outer > 0 ? way[d][1] / s->outer : 0);

            most = t > most ? t : most;
        }
    }
    return s->latency + most;
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

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The smallest time that at least this share of the steps is not above. */
static double
quantile(const struct sim *s, double q)
{
    size_t k = (size_t)(q * (double)s->steps);

    return s->time[k >= s->steps ? s->steps - 1 : k];
}

/* ---- Telling --------------------------------------------------------------- */

struct range { double max, min, mean; };

/* Bytes a device gets, there and back. */
static struct range
range_of(const struct sim *s, const uint64_t *bytes)
{
    size_t n = s->file.devices;
    struct range r = { 0, 0, 0 };

    for (size_t g = 0; g < n; g++) {
        double v = 0;

        for (size_t h = 0; h < n; h++)
            v += (double)bytes[h * n + g];
        r.max = v > r.max ? v : r.max;
        r.min = g == 0 || v < r.min ? v : r.min;
        r.mean += v / (double)n;
    }
    return r;
}

static double
spread(struct range r)
{
    return r.mean > 0 ? (r.max - r.min) / r.mean : 0;
}

static void
matrix(struct moe_jsonw *w, const char *key, size_t n, const uint64_t *sent, uint64_t bytes,
    bool turned)
{
    moe_jsonw_key(w, key);
    moe_jsonw_open(w, '[');
    for (size_t a = 0; a < n; a++) {
        moe_jsonw_open(w, '[');
        for (size_t b = 0; b < n; b++)
            moe_jsonw_uint(w, (turned ? sent[b * n + a] : sent[a * n + b]) * bytes);
        moe_jsonw_close(w, ']');
    }
    moe_jsonw_close(w, ']');
}

static int
tell_layer(const struct sim *s, size_t l, const struct shard_route_flow *f, struct moe_err *e)
{
    size_t n = s->file.devices;
    uint64_t most = 0, all = 0, tokens = 0;
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_jsonw w = { &b, false };

    for (size_t g = 0; g < n; g++) {
        most = f->load[g] > most ? f->load[g] : most;
        all += f->load[g];
    }
    for (size_t i = 0; i < n * n; i++)
        tokens += f->sent[i];
    if (s->json) {
        moe_jsonw_open(&w, '{');
        moe_jsonw_key(&w, "layer");
        moe_jsonw_uint(&w, s->file.id[l]);
        moe_jsonw_key(&w, "load");
        moe_jsonw_open(&w, '[');
        for (size_t g = 0; g < n; g++)
            moe_jsonw_uint(&w, f->load[g]);
        moe_jsonw_close(&w, ']');
        matrix(&w, "dispatch_bytes", n, f->sent, s->out_bytes, false);
        matrix(&w, "combine_bytes", n, f->sent, s->back_bytes, true);
        moe_jsonw_close(&w, '}');
        moe_buf_byte(&b, '\n');
    } else {
        moe_buf_fmt(&b, "layer %4" PRIu32 "  load max/mean %8.5f  tokens sent %12" PRIu64 "\n",
            s->file.id[l], all > 0 ? (double)most * (double)n / (double)all : 1, tokens);
    }
    if (!b.bad)
        (void)fwrite(b.p, 1, b.len, stdout);
    moe_buf_fini(&b);
    return b.bad ? moe_err_set(e, MOE_ENOMEM, "simulation: out of memory") : 0;
}

static void
tell_all(struct sim *s)
{
    struct range r = range_of(s, s->bytes);
    double sum = 0;

    for (size_t i = 0; i < s->steps; i++)
        sum += s->time[i];
    qsort(s->time, s->steps, sizeof(*s->time), by_size);
    if (s->json)
        printf("{\"steps\":%zu,\"makespan_s\":%.9g,\"p50_s\":%.9g,\"p99_s\":%.9g,"
            "\"max_bytes\":%.0f,\"min_bytes\":%.0f,\"spread\":%.9g}\n", s->steps, sum,
            quantile(s, 0.5), quantile(s, 0.99), r.max, r.min, spread(r));
    else
        printf("%zu steps, makespan %.6g s, P50 %.6g s, P99 %.6g s; bytes a device gets: %.0f to"
            " %.0f, spread %.1f %%\n", s->steps, sum, quantile(s, 0.5), quantile(s, 0.99), r.min,
            r.max, 100 * spread(r));
}

/* The bytes from each device to each other: a line a sender. */
static int
write_matrix(const struct sim *s, struct moe_err *e)
{
    size_t n = s->file.devices;
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_out *o = NULL;
    int rc;

    for (size_t a = 0; a < n; a++) {
        for (size_t k = 0; k < n; k++)
            moe_buf_fmt(&b, "%s%" PRIu64, k > 0 ? " " : "", s->bytes[a * n + k]);
        moe_buf_byte(&b, '\n');
    }
    if (b.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "simulation: out of memory");
    else if ((rc = moe_out_open(s->matrix, s->force, b.len, &o, e)) == 0 &&
        (rc = moe_out_write(o, b.p, b.len, e)) == 0) {
        rc = moe_out_commit(o, e);
        o = NULL;
    }
    moe_out_abort(o);
    moe_buf_fini(&b);
    return rc;
}

/* ---- The whole --------------------------------------------------------------- */

static int
play_layer(struct sim *s, size_t l, struct moe_err *e)
{
    size_t n = s->file.devices;
    struct shard_route_flow all = { NULL, NULL }, f = { NULL, NULL };
    int rc = shard_route_flow_new(n, &all, e);

    for (size_t k = 0; rc == 0 && k < s->steps; k++) {
        uint64_t from = k * s->step, to = from + s->step;

        if ((rc = shard_route_flow_new(n, &f, e)) == 0 &&
            (rc = shard_route_layer(&s->file, l, &s->trace, s->way, from, to, &f, e)) == 0) {
            add_time(s, k, &f);
            for (size_t g = 0; g < n; g++)
                all.load[g] += f.load[g];
            for (size_t i = 0; i < n * n; i++)
                all.sent[i] += f.sent[i];
        }
        shard_route_flow_free(&f);
    }
    for (size_t a = 0; rc == 0 && a < n; a++) {
        for (size_t b = 0; b < n; b++)
            s->bytes[a * n + b] += all.sent[a * n + b] * s->out_bytes +
                all.sent[b * n + a] * s->back_bytes;
    }
    if (rc == 0)
        rc = tell_layer(s, l, &all, e);
    shard_route_flow_free(&all);
    return rc;
}

static int
play(struct sim *s, const char *trace, struct moe_err *e)
{
    int rc;

    if ((rc = shard_route_read(trace, &s->trace, e)) != 0)
        return rc;
    rc = s->plan != NULL ? shard_planfile_read(s->plan, &s->file, e) : naive_plan(s, e);
    if (rc != 0)
        return rc;
    if (s->step == 0 || s->step > s->trace.tokens)
        s->step = s->trace.tokens;
    s->steps = (size_t)((s->trace.tokens + s->step - 1) / s->step);
    if (s->steps > MAX_STEPS)
        return moe_err_set(e, MOE_ELIMIT, "%s: %zu steps, over %d", trace, s->steps, MAX_STEPS);
    s->time = calloc(s->steps, sizeof(*s->time));
    s->bytes = calloc(s->file.devices * s->file.devices, sizeof(*s->bytes));
    if (s->time == NULL || s->bytes == NULL)
        return moe_err_set(e, MOE_ENOMEM, "simulation: out of memory");
    for (size_t l = 0; rc == 0 && l < s->file.layers; l++)
        rc = play_layer(s, l, e);
    if (rc == 0)
        tell_all(s);
    return rc == 0 && s->matrix != NULL ? write_matrix(s, e) : rc;
}

int
shard_sim(int argc, char **argv, struct moe_err *e)
{
    struct sim s = { .nodes = 1, .out_bytes = 1, .back_bytes = 1 };
    bool done;
    int first, rc = moe_opt_parse(&shard_sim_cmd, argc, argv, option, &s, &first, &done, e);

    if (rc != 0 || done)
        return rc;
    if (argc - first != 1 || (s.plan == NULL) == (s.naive == 0))
        return moe_err_set(e, MOE_EUSAGE, "one TRACE is wanted, and --plan or --naive");
    rc = play(&s, argv[first], e);
    shard_planfile_fini(&s.file);
    shard_route_fini(&s.trace);
    free(s.time);
    free(s.bytes);
    return rc;
}
