/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moe-quant: quantise the routed experts of a model. Owns the command line and
 * the order of things: plan, open the outputs, run, commit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_plan.h"
#include "cmd/moe-quant/quant_report.h"
#include "cmd/moe-quant/quant_run.h"
#include "common/base/num.h"
#include "common/base/opt.h"
#include "common/base/tool.h"

#define MAX_AUX ((size_t)64 << 20)      /* bytes of a file beside the weights */

enum { FORMAT = 1, GROUP, DRY, REPORT, THREADS, FORCE, JSON, QUIET };

static const struct moe_opt rows[] = {
    { FORMAT, 'f', "format", MOE_OPT_CHOICE, "FORMAT", "int4 (default) or int8", "int4|int8",
        false, false },
    { GROUP, 'g', "group", MOE_OPT_CHOICE, "N",
        "columns that share a scale; default 128, or what divides", "32|64|128", false, false },
    { DRY, 'n', "dry-run", MOE_OPT_NONE, NULL, "print the plan and exact sizes; write nothing",
        NULL, false, false },
    { REPORT, 0, "report", MOE_OPT_FILE, "FILE", "measure the errors; one JSON line a tensor",
        NULL, false, false },
    { THREADS, 'j', "threads", MOE_OPT_WORD, "N", "threads; default: the processors", NULL, false,
        false },
    { FORCE, 0, "force", MOE_OPT_NONE, NULL, "replace what is there", NULL, false, false },
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "with -n: JSON Lines", NULL, false, false },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "no progress and no summary on stderr", NULL,
        false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false }
};

static const char *const usage[] = {
    "[-f FORMAT] [-g N] [-j N] [--force] [--report FILE] SRC DST",
    "-n [--json] [-f FORMAT] [-g N] SRC DST",
    NULL
};

static const struct moe_opt_cmd command = {
    "moe-quant", usage, "Quantise the routed experts of a Mixture-of-Experts model.", rows, NULL
};

struct args {
    struct quant_plan_options opt;
    bool dry, force, json, quiet;
    const char *report;
    int threads;
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;
    int64_t n;
    int rc = 0;

    switch (id) {
    case FORMAT: a->opt.bits = strcmp(arg, "int4") == 0 ? 4 : 8; break;
    case GROUP:
        if ((rc = moe_num_int(arg, 32, 128, "group", &n, e)) == 0)
            a->opt.group = (uint64_t)n;
        break;
    case DRY: a->dry = true; break;
    case REPORT: a->report = arg; break;
    case THREADS:
        if ((rc = moe_num_int(arg, 1, MOE_POOL_MAX, "threads", &n, e)) == 0)
            a->threads = (int)n;
        break;
    case FORCE: a->force = true; break;
    case JSON: a->json = true; break;
    default: a->quiet = true;
    }
    return rc;
}

static int
dry_run(struct moe_source *s, const struct quant_plan *p, const char *dst, bool json,
    struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc = quant_report_plan(&b, s, p, dst, json, e);

    if (rc == 0)
        (void)fwrite(b.p, 1, b.len, stdout);    /* moe_tool_end() checks stdout */
    moe_buf_fini(&b);
    return rc;
}

/* The files beside the weights: config.json anew, the others as they are. */
static int
copy_aux(struct moe_source *s, const struct quant_plan *p, struct moe_sink *sink,
    struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    const char *name;
    int rc = 0;

    if (p->config.len > 0)
        rc = moe_sink_aux(sink, "config.json", p->config.p, p->config.len, e);
    for (size_t i = 0; rc == 0 && (name = moe_source_aux_name(s, i)) != NULL; i++) {
        if (strcmp(name, "config.json") == 0)
            continue;
        moe_buf_clear(&b);
        if ((rc = moe_source_aux(s, name, MAX_AUX, &b, e)) == 0)
            rc = moe_sink_aux(sink, name, b.p, b.len, e);
    }
    moe_buf_fini(&b);
    return rc;
}

static void
tell(const struct quant_plan *p)
{
    char in[32], out[32];
    uint64_t a = 0, b = 0;
    size_t n = 0;

    for (size_t i = 0; i < p->n; i++) {
        a += p->items[i].len;
        b += quant_plan_bytes(p, &p->items[i]);
        n += p->items[i].quantised;
    }
    moe_tool_warn("%zu matrices quantised to INT%d, %zu tensors kept: %s -> %s", n, p->opt.bits,
        p->n - n, moe_num_human(in, sizeof(in), a), moe_num_human(out, sizeof(out), b));
}

static int
write_model(struct moe_source *s, const struct quant_plan *p, const struct args *a,
    const char *dst, struct moe_err *e)
{
    struct quant_run_options opt = { .pool = NULL };
    struct moe_progress progress;
    struct moe_sink *sink = NULL;
    int rc;

    moe_progress_start(&progress, "quantising", moe_source_bytes(s), a->quiet);
    opt.progress = &progress;
    if ((rc = moe_pool_new(a->threads, &opt.pool, e)) != 0 ||
        (rc = moe_sink_open(dst, a->force, &p->sink, &sink, e)) != 0)
        goto out;
    if (a->report != NULL && (rc = moe_out_open(a->report, a->force, 0, &opt.report, e)) != 0)
        goto out;
    if ((rc = quant_run(s, p, sink, &opt, e)) != 0 || (rc = copy_aux(s, p, sink, e)) != 0)
        goto out;
    rc = moe_sink_commit(sink, e);
    sink = NULL;
    if (rc == 0 && opt.report != NULL) {
        rc = moe_out_commit(opt.report, e);
        opt.report = NULL;
    }
out:
    moe_progress_end(&progress);
    moe_sink_abort(sink);
    moe_out_abort(opt.report);
    moe_pool_free(opt.pool);
    if (rc == 0 && !a->quiet)
        tell(p);
    return rc;
}

static int
run(int argc, char **argv, struct moe_err *e)
{
    struct args a = { .opt = { 4, 0 } };
    struct quant_plan plan = { .n = 0 };
    struct moe_source *s = NULL;
    const char *src, *dst;
    bool done;
    int first, rc;

    if ((rc = moe_opt_parse(&command, argc, argv, option, &a, &first, &done, e)) != 0 || done)
        return rc;
    if (argc - first != 2)
        return moe_err_set(e, MOE_EUSAGE, "SRC and DST are wanted, %d operands are given",
            argc - first);
    if (a.json && !a.dry)
        return moe_err_set(e, MOE_EUSAGE, "--json goes with -n; see --report");
    src = argv[first];
    dst = argv[first + 1];
    if (a.report != NULL && strcmp(a.report, "-") == 0 && strcmp(dst, "-") == 0)
        return moe_err_set(e, MOE_EUSAGE, "model and report cannot both go to stdout");
    if ((rc = moe_source_open(src, &s, e)) == 0 &&
        (rc = quant_plan_make(s, dst, a.opt, &plan, e)) == 0)
        rc = a.dry ? dry_run(s, &plan, dst, a.json, e) : write_model(s, &plan, &a, dst, e);
    quant_plan_free(&plan);
    moe_source_close(s);
    return rc;
}

int
main(int argc, char **argv)
{
    struct moe_err e = { 0, "" };

    moe_tool_start("moe-quant");
    return moe_tool_end(run(argc, argv, &e), &e);
}
