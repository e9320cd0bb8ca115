/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns `moe-ckpt avg`: options, the weighted mean in double and in the order of
 * the operands, clipping of each and noise on the sum, and what that leaves of
 * privacy.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-ckpt/ckpt_avg.h"
#include "cmd/moe-ckpt/ckpt_norm.h"
#include "common/base/num.h"
#include "common/base/progress.h"
#include "common/system/gauss.h"
#include "common/system/rdp.h"

#define ALIGN 64
#define MOST 1e30               /* of any number that is given */

enum { OUTPUT = 1, FORCE, WEIGHTS, BASE, TOTAL, CLIP, NOISE, RATE, STEPS, DELTA, QUIET };

static const struct moe_opt rows[] = {
    { OUTPUT, 'o', "output", MOE_OPT_FILE, "OUT", "what to write; - is standard output",
        NULL, false, false },
    { FORCE, 0, "force", MOE_OPT_NONE, NULL, "replace OUT", NULL, false, false },
    { WEIGHTS, 'w', "weights", MOE_OPT_WORD, "W,W,...", "how much each counts; default: alike",
        NULL, false, false },
    { BASE, 'b', "base", MOE_OPT_FILE, "MODEL", "average what each adds to MODEL, and add that",
        NULL, false, false },
    { TOTAL, 0, "total", MOE_OPT_WORD, "X", "divide by X, not by the sum of the weights", NULL,
        false, false },
    { CLIP, 0, "clip", MOE_OPT_WORD, "S", "shorten each update to a norm of S at most", NULL, false,
        false },
    { NOISE, 0, "noise", MOE_OPT_WORD, "SIGMA", "with --clip: add noise of SIGMA * S to the sum",
        NULL, false, false },
    { RATE, 0, "sample-rate", MOE_OPT_WORD, "Q", "part of all clients in a round", NULL, false,
        false },
    { STEPS, 0, "steps", MOE_OPT_WORD, "T", "rounds of the run", NULL, false, false },
    { DELTA, 0, "delta", MOE_OPT_WORD, "D", "print the epsilon of the run for this delta", NULL,
        false, false },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "no progress", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = {
    "[-w W,...] [--force] [-q] -o OUT MODEL ...",
    "[-b MODEL] --clip S [--noise SIGMA] -o OUT MODEL ...",
    "--noise SIGMA --sample-rate Q --steps T --delta D",
    NULL
};

const struct moe_opt_cmd ckpt_avg_cmd = { "moe-ckpt avg", usage,
    "Average models or updates, privately if asked.", rows, NULL };

struct args {
    const char *output, *weights;
    char *base;
    bool force, quiet;
    double total, clip, noise, rate, steps, delta;      /* NAN: not given */
};

struct avg {
    const struct args *a;
    struct ckpt_peers p;        /* the models, and behind them the base if there is one */
    size_t n;                   /* models */
    size_t base;                /* its index, or SIZE_MAX */
    double *w, *factor;         /* [n] */
    double total, deviation;    /* of the noise on the sum; 0: none */
    double *x, *y, *sum;        /* pieces */
    unsigned char *raw;
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;

    switch (id) {
    case OUTPUT: a->output = arg; return 0;
    case FORCE: a->force = true; return 0;
    case QUIET: a->quiet = true; return 0;
    case WEIGHTS: a->weights = arg; return 0;
    case BASE: a->base = (char *)arg; return 0;
    case TOTAL: return moe_num_real(arg, 1e-30, MOST, "--total", &a->total, e);
    case CLIP: return moe_num_real(arg, 0, MOST, "--clip", &a->clip, e);
    case NOISE: return moe_num_real(arg, 0, MOST, "--noise", &a->noise, e);
    case RATE: return moe_num_real(arg, 0, 1, "--sample-rate", &a->rate, e);
    case STEPS: return moe_num_real(arg, 1, MOST, "--steps", &a->steps, e);
    default: return moe_num_real(arg, 0, 1, "--delta", &a->delta, e);
    }
}

/* ---- Weights ---------------------------------------------------------------------------- */

static int
read_weights(struct avg *v, struct moe_err *e)
{
    const char *p = v->a->weights;
    double sum = 0;
    size_t i = 0;

    for (; p != NULL && i < v->n; i++) {
        char word[64];
        size_t len = strcspn(p, ",");

        if (len >= sizeof(word))
            return moe_err_set(e, MOE_EUSAGE, "--weights: a number is too long");
        memcpy(word, p, len);
        word[len] = '\0';
        if (moe_num_real(word, 0, MOST, "--weights", &v->w[i], e) != 0)
            return e != NULL ? e->code : MOE_EUSAGE;
        p = p[len] == ',' ? p + len + 1 : NULL;
    }
    if (v->a->weights != NULL && (i != v->n || p != NULL))
        return moe_err_set(e, MOE_EUSAGE, "--weights: not one for each of %zu models", v->n);
    for (i = 0; i < v->n; i++) {
        if (v->a->weights == NULL)
            v->w[i] = 1;
        sum += v->w[i];
    }
    v->total = isnan(v->a->total) ? sum : v->a->total;
    return v->total > 0 ? 0 : moe_err_set(e, MOE_EUSAGE, "--weights: all are 0");
}

/* What shortens each update, and the noise that hides one of them. */
static int
clip(struct avg *v, struct moe_err *e)
{
    double largest = 0, norm;
    int rc = 0;

    for (size_t k = 0; rc == 0 && k < v->n; k++) {
        v->factor[k] = 1;
        largest = fmax(largest, v->w[k]);
        if (isnan(v->a->clip) || (rc = ckpt_norm(&v->p, k, v->base, v->x, v->y, &norm, e)) != 0)
            continue;
        if (norm > v->a->clip)
            v->factor[k] = v->a->clip / norm;
    }
    if (!isnan(v->a->noise))
        v->deviation = v->a->noise * v->a->clip * largest;
    return rc;
}

/* ---- The walk --------------------------------------------------------------------------- */

static int
mean(struct avg *v, size_t i, uint64_t at, size_t n, struct moe_err *e)
{
    int rc = 0;

    if (v->deviation > 0)
        rc = moe_gauss_fill(NULL, NULL, v->deviation, v->sum, n, e);
    else
        memset(v->sum, 0, n * sizeof(*v->sum));
    if (rc == 0 && v->base != SIZE_MAX)
        rc = ckpt_peers_read(&v->p, v->base, i, at, n, v->y, e);
    for (size_t k = 0; rc == 0 && k < v->n; k++) {
        double w = v->factor[k] * v->w[k];

        if ((rc = ckpt_peers_read(&v->p, k, i, at, n, v->x, e)) != 0)
            break;
        for (size_t j = 0; v->base != SIZE_MAX && j < n; j++)
            v->x[j] -= v->y[j];
        for (size_t j = 0; j < n; j++)
            v->sum[j] += w * v->x[j];
    }
    for (size_t j = 0; rc == 0 && j < n; j++) {
        v->sum[j] /= v->total;
        if (v->base != SIZE_MAX)
            v->sum[j] += v->y[j];
    }
    return rc;
}

static int
average(struct avg *v, size_t i, struct moe_sink *to, struct moe_progress *progress,
    struct moe_err *e)
{
    const struct moe_tensor *t = ckpt_peers_at(&v->p, v->p.lead, i);
    uint64_t count = ckpt_peers_count(t);
    size_t size = moe_dtype_bits(t->dtype) / 8;
    int rc = 0;

    for (uint64_t at = 0; rc == 0 && at < count;) {
        size_t n = count - at < MOE_BLEND_PIECE ? (size_t)(count - at) : MOE_BLEND_PIECE;

        if ((rc = mean(v, i, at, n, e)) == 0 && moe_blend_store(t->dtype, v->sum, n, v->raw) > 0)
            rc = moe_err_set(e, MOE_ELIMIT, "tensor %s: the average is too large for %s", t->name,
                moe_dtype_name(t->dtype));
        if (rc == 0)
            rc = moe_sink_write(to, v->raw, n * size, e);
        at += n;
        moe_progress_add(progress, n * size);
    }
    return rc;
}

/* A tensor that is no float: the same in all models, or there is no average. */
static int
copy(struct avg *v, size_t i, struct moe_sink *to, struct moe_err *e)
{
    const struct moe_tensor *t = ckpt_peers_at(&v->p, v->p.lead, i);
    uint64_t len = t->end - t->begin;
    int rc = 0;

    if (moe_dtype_is_float(t->dtype))
        return moe_err_set(e, MOE_EFORMAT, "tensor %s: is quantised: average what it was made"
            " from", t->name);
    for (uint64_t at = 0; rc == 0 && at < len;) {
        size_t n = len - at < MOE_BLEND_PIECE ? (size_t)(len - at) : MOE_BLEND_PIECE;

        for (size_t k = 0; rc == 0 && k < v->p.n; k++) {
            unsigned char *p = k == 0 ? v->raw : v->p.raw;

            rc = moe_source_read(v->p.s[k], v->p.at[k][i], at, p, n, e);
            if (rc == 0 && k > 0 && memcmp(v->raw, p, n) != 0)
                rc = moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: is of no float type, and another"
                    " than in %s", moe_source_path(v->p.s[k]), t->name,
                    moe_source_path(v->p.s[0]));
        }
        if (rc == 0)
            rc = moe_sink_write(to, v->raw, n, e);
        at += n;
    }
    return rc;
}

static int
write_average(struct avg *v, struct moe_err *e)
{
    struct moe_tensor *tensors = calloc(v->p.tensors, sizeof(*tensors));
    struct moe_sink_plan plan = { tensors, v->p.tensors, NULL, 0, ALIGN, NULL, 0 };
    struct moe_progress progress;
    struct moe_sink *to;
    int rc;

    if (tensors == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < v->p.tensors; i++)
        tensors[i] = *ckpt_peers_at(&v->p, v->p.lead, i);
    if ((rc = moe_sink_open(v->a->output, v->a->force, &plan, &to, e)) != 0)
        goto out;
    moe_progress_start(&progress, "averaging", moe_source_bytes(v->p.s[v->p.lead]), v->a->quiet);
    for (size_t i = 0; rc == 0 && i < v->p.tensors; i++)
        rc = moe_blend_takes(tensors[i].dtype) ? average(v, i, to, &progress, e) :
            copy(v, i, to, e);
    if (rc == 0)
        rc = ckpt_peers_beside(v->p.s[v->base != SIZE_MAX ? v->base : 0], to, e);
    moe_progress_end(&progress);
    if (rc == 0)
        rc = moe_sink_commit(to, e);
    else
        moe_sink_abort(to);
out:
    free(tensors);
    return rc;
}

/* ---- The command ------------------------------------------------------------------------ */

static int
account(const struct args *a, struct moe_err *e)
{
    struct moe_rdp r;
    int rc;

    if (isnan(a->noise) || isnan(a->rate) || isnan(a->steps) || isnan(a->delta))
        return moe_err_set(e, MOE_EUSAGE,
            "an epsilon wants --noise, --sample-rate, --steps and --delta");
    if ((rc = moe_rdp_epsilon(a->rate, a->noise, a->steps, a->delta, &r, e)) != 0)
        return rc;
    printf("epsilon %.10g delta %.10g order %d\n", r.epsilon, a->delta, r.order);
    return 0;
}

static int
run(const struct args *a, char **models, size_t n, struct moe_err *e)
{
    struct avg v = { .a = a, .n = n, .base = a->base != NULL ? n : SIZE_MAX };
    char **paths = calloc(n + 1, sizeof(char *));
    int rc;

    v.w = calloc(n, sizeof(*v.w));
    v.factor = calloc(n, sizeof(*v.factor));
    v.x = malloc(MOE_BLEND_PIECE * sizeof(double));
    v.y = malloc(MOE_BLEND_PIECE * sizeof(double));
    v.sum = malloc(MOE_BLEND_PIECE * sizeof(double));
    v.raw = malloc(MOE_BLEND_PIECE * (size_t)8);     /* of the widest type */
    if (paths == NULL || v.w == NULL || v.factor == NULL || v.x == NULL || v.y == NULL ||
        v.sum == NULL || v.raw == NULL) {
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
        goto out;
    }
    memcpy(paths, models, n * sizeof(char *));
    paths[n] = a->base;
    if ((rc = read_weights(&v, e)) == 0 && (rc = ckpt_peers_open(paths,
        n + (a->base != NULL ? 1 : 0), true, &v.p, e)) == 0 && !isnan(a->clip) &&
        moe_source_is_stream(v.p.s[v.p.lead]))
        rc = moe_err_set(e, MOE_EUSAGE, "-: is read twice for --clip: give a file");
    if (rc == 0 && (rc = clip(&v, e)) == 0)
        rc = write_average(&v, e);
out:
    ckpt_peers_fini(&v.p);
    free(paths);
    free(v.w);
    free(v.factor);
    free(v.x);
    free(v.y);
    free(v.sum);
    free(v.raw);
    return rc;
}

int
ckpt_avg(int argc, char **argv, struct moe_err *e)
{
    struct args a = { .total = NAN, .clip = NAN, .noise = NAN, .rate = NAN, .steps = NAN,
        .delta = NAN };
    bool done, spent;
    int rc, first;

    if ((rc = moe_opt_parse(&ckpt_avg_cmd, argc, argv, option, &a, &first, &done, e)) != 0 || done)
        return rc;
    spent = !isnan(a.rate) || !isnan(a.steps) || !isnan(a.delta);
    if (argc == first && spent && a.output == NULL)
        return account(&a, e);
    if (argc == first || a.output == NULL)
        return moe_err_set(e, MOE_EUSAGE, "avg wants -o OUT and models");
    if (spent)
        return moe_err_set(e, MOE_EUSAGE, "an epsilon is told without models");
    if (!isnan(a.noise) && isnan(a.clip))
        return moe_err_set(e, MOE_EUSAGE, "--noise hides nothing without --clip");
    return run(&a, argv + first, (size_t)(argc - first), e);
}
