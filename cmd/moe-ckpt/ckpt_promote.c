/* SPDX-License-Identifier: Apache-2.0 */
/* Owns `moe-ckpt promote`: the gate of a checkpoint by the metric of its run. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cmd/moe-ckpt/ckpt_promote.h"
#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/base/read.h"
#include "common/system/series.h"

#define DEFAULT_JITTER 0.0017
#define DEFAULT_WINDOW (72.0 * 3600)
#define DEFAULT_GAP 3600.0
#define DEFAULT_SAMPLES 100
#define MOST_SECONDS 1e12

enum { MAX_JITTER = 1, WINDOW, MAX_GAP, SAMPLES, TIME, METRIC, QUIET, JSON };

static const struct moe_opt rows[] = {
    { MAX_JITTER, 'x', "max-jitter", MOE_OPT_WORD, "X", "the jitter stays below X; default: 0.0017",
        NULL, false, false },
    { WINDOW, 0, "window", MOE_OPT_WORD, "TIME", "over the last TIME; default: 72h", NULL, false,
        false },
    { MAX_GAP, 0, "max-gap", MOE_OPT_WORD, "TIME", "the longest without a sample; default: 1h",
        NULL, false, false },
    { SAMPLES, 0, "samples", MOE_OPT_WORD, "N", "so many at least; default: 100", NULL, false,
        false },
    { TIME, 0, "time", MOE_OPT_WORD, "COLUMN", "of the times; default: time", NULL, false, false },
    { METRIC, 0, "metric", MOE_OPT_WORD, "COLUMN", "of the metric; default: loss", NULL, false,
        false },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "say nothing, the exit status tells", NULL, false,
        false },
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "print one JSON object", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[-x X] [--window TIME] [OPTION ...] CSV", NULL };

const struct moe_opt_cmd ckpt_promote_cmd = { "moe-ckpt promote", usage,
    "Tell whether a metric has been steady long enough.", rows, NULL };

struct args {
    double jitter, window, gap;
    int64_t samples;
    const char *time, *metric;
    bool quiet, json;
};

/* Seconds, or a number with s, m, h or d behind. */
static int
duration(const char *arg, const char *what, double *out, struct moe_err *e)
{
    static const struct { char unit; double seconds; } units[] = { { 's', 1 }, { 'm', 60 },
        { 'h', 3600 }, { 'd', 86400 } };
    char word[64];
    size_t n = strlen(arg);
    double times = 1;
    int rc;

    for (size_t i = 0; n > 0 && i < 4; i++) {
        if (arg[n - 1] == units[i].unit) {
            times = units[i].seconds;
            n--;
            break;
        }
    }
    if (n >= sizeof(word))
        return moe_err_set(e, MOE_EUSAGE, "%s: too long", what);
    memcpy(word, arg, n);
    word[n] = '\0';
    rc = moe_num_real(word, 0, MOST_SECONDS, what, out, e);
    *out *= times;
    return rc;
}

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;

    switch (id) {
    case MAX_JITTER: return moe_num_real(arg, 0, 1e30, "--max-jitter", &a->jitter, e);
    case WINDOW: return duration(arg, "--window", &a->window, e);
    case MAX_GAP: return duration(arg, "--max-gap", &a->gap, e);
    case SAMPLES: return moe_num_int(arg, 2, INT64_C(1) << 40, "--samples", &a->samples, e);
    case TIME: a->time = arg; return 0;
    case METRIC: a->metric = arg; return 0;
    case JSON: a->json = true; return 0;
    default: a->quiet = true; return 0;
    }
}

/* NULL, or what speaks against it. */
static const char *
against(const struct args *a, const struct moe_series_window *w)
{
    if (w->span < a->window)
        return "the series is shorter than the window";
    if (w->n < (size_t)a->samples)
        return "too few samples";
    if (w->gap > a->gap)
        return "too long without a sample";
    if (!isfinite(w->jitter))
        return "a value is no number";
    return w->jitter < a->jitter ? NULL : "the jitter is too large";
}

static int
json(const struct moe_series_window *w, const char *why, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_jsonw j = { &b, false };
    int rc = 0;

    moe_jsonw_open(&j, '{');
    moe_jsonw_key(&j, "promote");
    moe_jsonw_bool(&j, why == NULL);
    moe_jsonw_key(&j, "why");
    if (why != NULL)
        moe_jsonw_str(&j, why, strlen(why));
    else
        moe_jsonw_null(&j);
    moe_jsonw_key(&j, "jitter");
    moe_jsonw_real(&j, w->jitter);
    moe_jsonw_key(&j, "mean");
    moe_jsonw_real(&j, w->mean);
    moe_jsonw_key(&j, "slope");
    moe_jsonw_real(&j, w->slope);
    moe_jsonw_key(&j, "gap");
    moe_jsonw_real(&j, w->gap);
    moe_jsonw_key(&j, "span");
    moe_jsonw_real(&j, w->span);
    moe_jsonw_key(&j, "samples");
    moe_jsonw_uint(&j, w->n);
    moe_jsonw_close(&j, '}');
    if (b.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    else
        printf("%s\n", b.p);
    moe_buf_fini(&b);
    return rc;
}

int
ckpt_promote(int argc, char **argv, struct moe_err *e)
{
    struct args a = { DEFAULT_JITTER, DEFAULT_WINDOW, DEFAULT_GAP, DEFAULT_SAMPLES, "time", "loss",
        false, false };
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_series s = MOE_SERIES_INIT;
    struct moe_series_window w;
    const char *why;
    int rc, first;
    bool done;

    if ((rc = moe_opt_parse(&ckpt_promote_cmd, argc, argv, option, &a, &first, &done, e)) != 0 ||
        done)
        return rc;
    if (argc - first != 1)
        return moe_err_set(e, MOE_EUSAGE, "promote wants one CSV file");
    if ((rc = moe_read_file(argv[first], MOE_SERIES_MAX_BYTES, &b, e)) != 0 ||
        (rc = moe_series_csv(b.p != NULL ? b.p : "", b.len, argv[first], a.time, a.metric, &s,
        e)) != 0)
        goto out;
    moe_series_window(&s, a.window, &w);
    why = against(&a, &w);
    if (a.json)
        rc = json(&w, why, e);
    else if (!a.quiet)
        printf("%s: jitter %.6g, %zu samples, %.4g h: %s\n", why == NULL ? "yes" : "no", w.jitter,
            w.n, fmin(w.span, a.window) / 3600, why == NULL ? "steady" : why);
    if (rc == 0)
        rc = why != NULL;
out:
    moe_series_fini(&s);
    moe_buf_fini(&b);
    return rc;
}
