/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the command `fit`: reading points, telling fits and predictions.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_curve.h"
#include "cmd/moe-shard/shard_fit.h"
#include "common/base/json.h"
#include "common/base/num.h"
#include "common/base/read.h"

#define MAX_BYTES ((size_t)16 << 20)

enum { MODEL = 1, RELATIVE, RANKS, BYTES, LATENCY, BANDWIDTH, EXPERTS, TOP_K, NODES };

static const struct moe_opt rows[] = {
    { MODEL, 'm', "model", MOE_OPT_CHOICE, "M", "of the link: bytes and times, or n and bandwidths",
        "alpha-beta|contention", false, false },
    { RELATIVE, 0, "relative", MOE_OPT_NONE, NULL, "alpha-beta: errors beside the times", NULL,
        false, false },
    { RANKS, 'n', "ranks", MOE_OPT_WORD, "N", "predict collectives of so many ranks", NULL, false,
        false },
    { BYTES, 0, "bytes", MOE_OPT_WORD, "SIZE", "of each rank's buffer", NULL, false, false },
    { LATENCY, 0, "latency", MOE_OPT_WORD, "SEC", "alpha, when no points tell it", NULL, false,
        false },
    { BANDWIDTH, 0, "bandwidth", MOE_OPT_WORD, "SIZE", "a second, when no points tell it", NULL,
        false, false },
    { EXPERTS, 0, "experts", MOE_OPT_WORD, "E", "predict how many nodes a token goes to", NULL,
        false, false },
    { TOP_K, 0, "top-k", MOE_OPT_WORD, "K", "with --experts: chosen by a token", NULL, false,
        false },
    { NODES, 0, "nodes", MOE_OPT_WORD, "N", "with --experts: they are on", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = {
    "-m MODEL [--relative] [-n N --bytes SIZE] POINTS",
    "-n N --bytes SIZE --latency SEC --bandwidth SIZE",
    "--experts E --top-k K --nodes N",
    NULL
};

const struct moe_opt_cmd shard_fit_cmd = {
    "moe-shard fit", usage, "Fit the cost of links to measured points, and predict from it.", rows,
    NULL
};

struct fit {
    bool contention, model, relative;
    int64_t ranks, experts, top_k, nodes;
    uint64_t bytes;
    double latency, bandwidth;      /* NAN: not known */
    double x[SHARD_CURVE_POINTS], y[SHARD_CURVE_POINTS];
    size_t n;
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct fit *f = ctx;
    uint64_t u = 0;
    int rc = 0;

    switch (id) {
    case MODEL:
        f->model = true;
        f->contention = strcmp(arg, "contention") == 0;
        break;
    case RELATIVE: f->relative = true; break;
    case RANKS: return moe_num_int(arg, 1, INT64_C(1) << 30, "--ranks", &f->ranks, e);
    case BYTES: return moe_num_size(arg, 0, UINT64_C(1) << 60, "--bytes", &f->bytes, e);
    case LATENCY: return moe_num_real(arg, 0, 1e6, "--latency", &f->latency, e);
    case BANDWIDTH:
        rc = moe_num_size(arg, 1, UINT64_C(1) << 60, "--bandwidth", &u, e);
        f->bandwidth = (double)u;
        break;
    case EXPERTS: return moe_num_int(arg, 1, 1 << 20, "--experts", &f->experts, e);
    case TOP_K: return moe_num_int(arg, 1, 1 << 20, "--top-k", &f->top_k, e);
    default: return moe_num_int(arg, 1, 1 << 20, "--nodes", &f->nodes, e);
    }
    return rc;
}

/* ---- Points -------------------------------------------------------------------------- */

static int
point(struct fit *f, const char *path, size_t line, double x, double y, struct moe_err *e)
{
    if (!(x >= 0 && isfinite(x) && y > 0 && isfinite(y)))
        return moe_err_set(e, MOE_EFORMAT, "%s:%zu: not a number from 0 on and one above 0", path,
            line);
    if (f->n == SHARD_CURVE_POINTS)
        return moe_err_set(e, MOE_ELIMIT, "%s: over %d points", path, SHARD_CURVE_POINTS);
    f->x[f->n] = x;
    f->y[f->n++] = y;
    return 0;
}

/* A line of JSON of a benchmark: its bytes and its time; other lines are passed over. */
static int
json_line(struct fit *f, const char *path, size_t at, const char *p, struct moe_err *e)
{
    const json_t *bytes, *ns;
    json_t *tree;
    int rc = moe_json_parse(p, strlen(p), path, &tree, e);

    if (rc != 0)
        return rc;
    bytes = json_object_get(tree, "bytes");
    ns = json_object_get(tree, "ns");
    if (json_is_number(bytes) && json_is_number(ns))
        rc = point(f, path, at, json_number_value(bytes), json_number_value(ns) * 1e-9, e);
    json_decref(tree);
    return rc;
}

static int
text_line(struct fit *f, const char *path, size_t at, char *p, struct moe_err *e)
{
    char *tab = strchr(p, '\t');
    double x, y;

    if (tab != NULL)
        *tab++ = '\0';
    if (tab == NULL || moe_num_real(p, 0, 1e300, "", &x, NULL) != 0 ||
        moe_num_real(tab, 0, 1e300, "", &y, NULL) != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s:%zu: not two numbers with a tab between", path, at);
    return point(f, path, at, x, y, e);
}

static int
read_points(struct fit *f, const char *path, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    size_t at = 0;
    int rc = moe_read_file(path, MAX_BYTES, &b, e);

    if (rc == 0 && b.len > 0 && strlen(b.p) != b.len)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: a NUL in a text", path);
    for (char *p = b.p, *end; rc == 0 && p != NULL && *p != '\0'; p = end) {
        if ((end = strchr(p, '\n')) != NULL)
            *end++ = '\0';
        at++;
        if (*p == '\0' || *p == '#')
            continue;
        rc = *p == '{' ? json_line(f, path, at, p, e) : text_line(f, path, at, p, e);
    }
    if (rc == 0 && f->n == 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: no points", path);
    moe_buf_fini(&b);
    return rc;
}

/* ---- Telling ------------------------------------------------------------------------------ */

/* A number of JSON, null when it is none. */
static void
real(const char *key, double v, const char *end)
{
    if (isfinite(v))
        printf("\"%s\":%.12g%s", key, v, end);
    else
        printf("\"%s\":null%s", key, end);
}

static int
fit_points(struct fit *f, struct moe_err *e)
{
    struct shard_curve_contention first, c;
    struct shard_curve_line l;
    int rc;

    if (f->contention) {
        if ((rc = shard_curve_contention(f->x, f->y, f->n, false, &first, e)) != 0 ||
            (rc = shard_curve_contention(f->x, f->y, f->n, true, &c, e)) != 0)
            return rc;
        printf("{\"model\":\"contention\",\"points\":%zu,", f->n);
        real("base", c.base, ",");
        real("k", c.k, ",");
        real("se_base", c.se_base, ",");
        real("se_k", c.se_k, ",");
        real("linear_base", first.base, ",");
        real("linear_k", first.k, "}\n");
        f->bandwidth = f->ranks > 0 ? c.base / (1 + c.k * (double)f->ranks) : c.base;
        return 0;
    }
    if ((rc = shard_curve_line(f->x, f->y, f->n, f->relative, &l, e)) != 0)
        return rc;
    printf("{\"model\":\"alpha-beta\",\"points\":%zu,", f->n);
    real("alpha", l.a, ",");
    real("bandwidth", 1 / l.b, ",");
    real("slope", l.b, ",");
    real("se_alpha", l.se_a, ",");
    real("se_slope", l.se_b, ",");
    real("rss", l.rss, "}\n");
    f->latency = l.a;
    f->bandwidth = 1 / l.b;
    return 0;
}

static int
predict(const struct fit *f, struct moe_err *e)
{
    struct shard_curve_times t;

    if (!(f->latency >= 0) || !(f->bandwidth > 0))
        return moe_err_set(e, MOE_EUSAGE, "--latency and --bandwidth are wanted, or points that"
            " tell them");
    t = shard_curve_times((uint64_t)f->ranks, (double)f->bytes, f->latency, f->bandwidth);
    printf("{");
    real("ring_all_reduce", t.ring_all_reduce, ",");
    real("tree_all_reduce", t.tree_all_reduce, ",");
    real("ring_all_gather", t.ring_all_gather, ",");
    real("all_to_all", t.all_to_all, "}\n");
    return 0;
}

static int
run(struct fit *f, int n, char **operands, struct moe_err *e)
{
    int rc;

    if (n > 1 || (n == 1) != f->model || (n == 0 && f->ranks == 0 && f->experts == 0))
        return moe_err_set(e, MOE_EUSAGE, "POINTS and --model, or --ranks, or --experts are"
            " wanted");
    if (f->experts > 0) {
        double d;

        if (f->nodes == 0 || f->top_k == 0 || f->top_k > f->experts || f->experts % f->nodes != 0)
            return moe_err_set(e, MOE_EUSAGE, "--experts: %lld experts, of which %lld are chosen,"
                " on %lld nodes", (long long)f->experts, (long long)f->top_k, (long long)f->nodes);
        d = shard_curve_nodes((uint64_t)f->experts, (uint64_t)f->top_k, (uint64_t)f->nodes);
        printf("{");
        real("distinct", d, ",");
        real("remote", d * (double)(f->nodes - 1) / (double)f->nodes, "}\n");
    }
    if (n == 1 && ((rc = read_points(f, operands[0], e)) != 0 || (rc = fit_points(f, e)) != 0))
        return rc;
    return f->ranks > 0 ? predict(f, e) : 0;
}

int
shard_fit(int argc, char **argv, struct moe_err *e)
{
    struct fit *f = calloc(1, sizeof(*f));
    bool done;
    int first, rc;

    if (f == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    f->latency = f->bandwidth = NAN;
    rc = moe_opt_parse(&shard_fit_cmd, argc, argv, option, f, &first, &done, e);
    if (rc == 0 && !done)
        rc = run(f, argc - first, argv + first, e);
    free(f);
    return rc;
}
