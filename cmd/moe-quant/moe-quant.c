/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moe-quant: quantise the matrices of a model. Owns the command line and the
 * order of things: plan, open the outputs, run, commit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_budget.h"
#include "cmd/moe-quant/quant_calib.h"
#include "cmd/moe-quant/quant_diff.h"
#include "cmd/moe-quant/quant_kl.h"
#include "cmd/moe-quant/quant_plan.h"
#include "cmd/moe-quant/quant_report.h"
#include "cmd/moe-quant/quant_run.h"
#include "cmd/moe-quant/quant_scan.h"
#include "cmd/moe-quant/quant_table.h"
#include "cmd/moe-quant/quant_to.h"
#include "common/base/num.h"
#include "common/base/opt.h"
#include "common/base/tool.h"

#define MAX_AUX ((size_t)64 << 20)      /* bytes of a file beside the weights */
#define FORMATS "int4|int8|int8-w8a8|fp8|fp8-tensor|fp8-block|fp8-deepseek|mxfp4|mxfp8|nvfp4"

enum { FORMAT = 1, GROUP, ASYM, SHARED, POLICY, ROUTER, SEARCH, SIGN, IMATRIX, METHOD,
    CALIBRATE, MEMORY, TOKENS, IMATRIX_OUT, LORA, NAN_IS, DEQUANT, TO, DIFF, KL, SCAN, CHECK,
    LIMIT, BUDGET, BPW, DRY, REPORT, GATE, THREADS, RESUME, FORCE, JSON, QUIET };

static const struct moe_opt rows[] = {
    { FORMAT, 'f', "format", MOE_OPT_CHOICE, "FORMAT", "format of routed experts; default int4",
        FORMATS, false, false },
    { GROUP, 'g', "group", MOE_OPT_CHOICE, "N",
        "columns that share a scale; default 128 or less", "32|64|128|channel", false,
        false },
    { ASYM, 0, "asym", MOE_OPT_NONE, NULL, "integers with zero points", NULL, false, false },
    { SHARED, 0, "shared", MOE_OPT_CHOICE, "FORMAT",
        "format of shared experts; default int8, or as -f", "keep|" FORMATS, false,
        false },
    { POLICY, 0, "policy", MOE_OPT_FILE, "FILE", "rules in YAML: which matrix gets which format",
        NULL, false, false },
    { ROUTER, 0, "force-router", MOE_OPT_NONE, NULL,
        "let rules quantise routers, norms, gates", NULL, false, false },
    { SEARCH, 0, "search", MOE_OPT_CHOICE, "HOW", "look for better scales; default rtn",
        "rtn|mse|wide", false, false },
    { SIGN, 0, "scale-sign", MOE_OPT_CHOICE, "SIGN", "signs of scales in a search; default pos",
        "pos|both", false, false },
    { IMATRIX, 0, "imatrix", MOE_OPT_FILE, "FILE",
        "weigh errors by an importance matrix of llama.cpp", NULL, false, false },
    { METHOD, 0, "method", MOE_OPT_CHOICE, "HOW", "how codes are chosen; default nearest",
        "nearest|gptq", false, false },
    { CALIBRATE, 0, "calibrate", MOE_OPT_FILE, "TEXT", "run the model on a text for that", NULL,
        false, false },
    { MEMORY, 0, "memory", MOE_OPT_WORD, "SIZE", "for --calibrate; default 4GiB", NULL, false,
        false },
    { TOKENS, 0, "tokens", MOE_OPT_WORD, "N", "of TEXT at most; default all", NULL, false, false },
    { IMATRIX_OUT, 0, "imatrix-out", MOE_OPT_FILE, "FILE",
        "with --calibrate: write an importance matrix", NULL, false, false },
    { LORA, 0, "merge-lora", MOE_OPT_DIR, "DIR", "add a LoRA adapter of PEFT to the weights", NULL,
        false, false },
    { NAN_IS, 0, "nan", MOE_OPT_CHOICE, "WHAT", "values that are no numbers; default stop",
        "stop|zero", false, false },
    { DEQUANT, 0, "dequant", MOE_OPT_NONE, NULL, "the other way: write a quantised model in BF16",
        NULL, true, false },
    { TO, 0, "to", MOE_OPT_CHOICE, "FORM", "write a model in another form, its values as they are",
        QUANT_TO_CHOICES, true, false },
    { DIFF, 0, "diff", MOE_OPT_NONE, NULL, "compare two models, however they are stored", NULL,
        true, false },
    { KL, 0, "kl", MOE_OPT_FILE, "TEXT", "how two models differ when they read a text", NULL, true,
        false },
    { SCAN, 0, "scan", MOE_OPT_NONE, NULL, "tell the range of the values of a model", NULL, true,
        false },
    { CHECK, 0, "check", MOE_OPT_NONE, NULL, "read every byte of a model and decode it", NULL,
        true, false },
    { LIMIT, 0, "limit", MOE_OPT_WORD, "X", "with --scan: a magnitude not to pass; default 448",
        NULL, false, false },
    { BUDGET, 0, "budget", MOE_OPT_WORD, "SIZE", "write a policy for a model of this size", NULL,
        true, false },
    { BPW, 0, "bpw", MOE_OPT_WORD, "X", "write a policy for X bits a weight", NULL, true, false },
    { DRY, 'n', "dry-run", MOE_OPT_NONE, NULL, "print the plan and exact sizes; write nothing",
        NULL, false, false },
    { REPORT, 0, "report", MOE_OPT_FILE, "FILE", "measure the errors; one JSON line a tensor",
        NULL, false, false },
    { GATE, 0, "gate", MOE_OPT_WORD, "GATE",
        "no model if a matrix is worse than sqnr=DB", NULL, false, false },
    { THREADS, 'j', "threads", MOE_OPT_WORD, "N", "threads; default: the processors", NULL, false,
        false },
    { RESUME, 0, "resume", MOE_OPT_NONE, NULL, "go on where a run like this was ended", NULL, false,
        false },
    { FORCE, 0, "force", MOE_OPT_NONE, NULL, "replace what is there", NULL, false, false },
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "with -n: JSON Lines", NULL, false, false },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "no progress and no summary on stderr", NULL,
        false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false }
};

static const char *const usage[] = {
    "[-f FORMAT] [-g N] [--policy FILE] [OPTIONS] SRC DST",
    "-n [--json] [OPTIONS] SRC DST",
    "--dequant [-j N] [--force] SRC DST",
    "--to FORM [-j N] [--force] SRC DST",
    "--diff [--gate GATE] [-j N] A B",
    "--kl TEXT [--tokens N] [-j N] A B",
    "--scan [--limit X] [-j N] SRC",
    "--budget SIZE | --bpw X [--search HOW] [-j N] SRC >POLICY",
    "--check [-j N] SRC",
    NULL
};

static const struct moe_opt_cmd command = {
    "moe-quant", usage, "Quantise the matrices of a Mixture-of-Experts model.", rows, NULL
};

struct args {
    struct quant_plan_options plan;
    bool dry, force, json, quiet, dequant, search, resume;
    const char *report, *format, *shared, *kl;
    quant_to_fn *to;            /* of --to, or NULL */
    int look;                   /* DIFF, SCAN, CHECK, BUDGET, or 0 */
    struct quant_calib_options calib;
    double gate, limit, bpw;    /* 0 = none */
    uint64_t budget;
    int threads;
};

static int
gate(struct args *a, const char *arg, struct moe_err *e)
{
    if (strncmp(arg, "sqnr=", 5) != 0)
        return moe_err_set(e, MOE_EUSAGE, "--gate: sqnr=DB is wanted, not %s", arg);
    return moe_num_real(arg + 5, 0.001, 1000, "gate", &a->gate, e);
}

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;
    struct quant_policy_options *o = &a->plan.policy;
    int64_t n;
    int rc = 0;

    switch (id) {
    case FORMAT: a->format = arg; break;
    case GROUP:
        if (strcmp(arg, "channel") == 0)
            o->group = 0;
        else if ((rc = moe_num_int(arg, 32, 128, "group", &n, e)) == 0)
            o->group = (uint64_t)n;
        break;
    case ASYM: o->asym = true; break;
    case SHARED: a->shared = arg; break;
    case POLICY: a->plan.policy_file = arg; break;
    case ROUTER: o->force_router = true; break;
    case SEARCH:
        a->search = true;
        o->search = arg[0] == 'r' ? QUANT_SEARCH_RTN : arg[0] == 'm' ? QUANT_SEARCH_MSE :
            QUANT_SEARCH_WIDE;
        break;
    case SIGN: o->both = strcmp(arg, "both") == 0; break;
    case IMATRIX: a->plan.imatrix_file = arg; break;
    case METHOD: a->calib.factors = strcmp(arg, "gptq") == 0; break;
    case CALIBRATE: a->calib.text = arg; break;
    case MEMORY: rc = moe_num_size(arg, 1, INT64_MAX, "memory", &a->calib.memory, e); break;
    case TOKENS:
        if ((rc = moe_num_int(arg, 1, INT64_MAX, "tokens", &n, e)) == 0)
            a->calib.tokens = (uint64_t)n;
        break;
    case IMATRIX_OUT: a->calib.imatrix = arg; break;
    case LORA: a->plan.lora_dir = arg; break;
    case NAN_IS: a->plan.nan_zero = strcmp(arg, "zero") == 0; break;
    case DEQUANT: a->dequant = true; break;
    case TO: a->to = quant_to_find(arg); break;
    case KL:
        a->look = KL;
        a->kl = arg;
        break;
    case DIFF:
    case SCAN:
    case CHECK: a->look = id; break;
    case BUDGET:
        a->look = BUDGET;
        rc = moe_num_size(arg, 1, INT64_MAX, "budget", &a->budget, e);
        break;
    case BPW:
        a->look = BUDGET;
        rc = moe_num_real(arg, 1, 32, "bpw", &a->bpw, e);
        break;
    case LIMIT: rc = moe_num_real(arg, 0, 3e38, "limit", &a->limit, e); break;
    case DRY: a->dry = true; break;
    case REPORT: a->report = arg; break;
    case GATE: rc = gate(a, arg, e); break;
    case THREADS:
        if ((rc = moe_num_int(arg, 1, MOE_POOL_MAX, "threads", &n, e)) == 0)
            a->threads = (int)n;
        break;
    case RESUME: a->resume = true; break;
    case FORCE: a->force = true; break;
    case JSON: a->json = true; break;
    default: a->quiet = true;
    }
    return rc;
}

/* What the options say together. */
static int
settle(struct args *a, struct moe_err *e)
{
    struct quant_policy_options *o = &a->plan.policy;
    bool chosen = a->format != NULL || o->group != QUANT_POLICY_AUTO || o->asym;

    if (a->dequant) {
        a->plan.plain = true;
        if (chosen || a->shared != NULL || a->plan.policy_file != NULL ||
            a->plan.imatrix_file != NULL)
            return moe_err_set(e, MOE_EUSAGE, "--dequant chooses no formats");
        return 0;
    }
    o->format = quant_scheme_find(a->format != NULL ? a->format : "int4");
    o->shared = o->format->bits == 4 ? quant_scheme_find("int8") : o->format;
    if (a->plan.imatrix_file != NULL && !a->search)
        o->search = QUANT_SEARCH_MSE;
    if (a->shared != NULL)
        o->shared = strcmp(a->shared, "keep") == 0 ? NULL : quant_scheme_find(a->shared);
    if ((a->calib.text != NULL) != (a->calib.factors || a->calib.imatrix != NULL))
        return moe_err_set(e, MOE_EUSAGE, "--calibrate goes with --method gptq or --imatrix-out,"
            " and these with it");
    if (a->calib.text != NULL && (a->resume || a->plan.lora_dir != NULL))
        return moe_err_set(e, MOE_EUSAGE, "--calibrate does not go with --resume or --merge-lora");
    if (o->asym && !quant_scheme_can_asym(o->format))
        return moe_err_set(e, MOE_EUSAGE, "%s has no zero points", o->format->name);
    if (o->group != QUANT_POLICY_AUTO && !quant_scheme_grouped(o->format) &&
        a->plan.policy_file == NULL)
        return moe_err_set(e, MOE_EUSAGE, "%s has no group to choose", o->format->name);
    return 0;
}

static int
dry_run(struct moe_source *s, const struct quant_plan *p, const char *dst, bool json,
    struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc = quant_table_plan(&b, s, p, dst, json, e);

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
tell(struct moe_source *s, const struct quant_plan *p)
{
    char in[32], out[32];
    uint64_t a = 0, b = 0;
    size_t n = 0, dead = 0;

    for (size_t i = 0; i < p->n; i++) {
        a += p->items[i].len;
        b += quant_plan_bytes(&p->items[i]);
        n += quant_plan_quantised(&p->items[i]);
    }
    for (size_t i = 0; i < p->n; i++)
        dead += p->items[i].found == QUANT_IMATRIX_DEAD;
    if (dead > 0)
        moe_tool_warn("%zu matrices of experts that the importance matrix knows nothing of", dead);
    if (p->odd_names)
        moe_tool_warn("warning: no released loader takes single experts of this family");
    moe_tool_warn("%zu matrices quantised; of %zu tensors %zu written anew, %zu copied, %zu"
        " dropped: %s -> %s", n, moe_source_n(s), quant_plan_count(p, s, QUANT_USE_WRITTEN),
        quant_plan_count(p, s, QUANT_USE_COPIED), quant_plan_count(p, s, QUANT_USE_DROPPED),
        moe_num_human(in, sizeof(in), a), moe_num_human(out, sizeof(out), b));
}

/* 1 and a line on stderr when a matrix is worse than the gate. */
static int
pass_gate(const struct args *a, const struct quant_report *r)
{
    const char *name;

    if (a->gate == 0 || quant_report_worst(r, &name) >= a->gate)
        return 0;
    moe_tool_warn("gate: %s has %.2f dB, under %g: no model is written", name,
        quant_report_worst(r, &name), a->gate);
    return 1;
}

/* The output, from the start or from where a run before it came. */
static int
open_sink(struct moe_source *s, const struct quant_plan *p, const struct args *a,
    const char *dst, struct quant_run_options *opt, struct moe_sink **sink, struct moe_err *e)
{
    uint64_t bytes;
    int rc;

    if (!a->resume)
        return moe_sink_open(dst, a->force, &p->sink, sink, e);
    if ((rc = quant_journal_open(dst, s, p, &opt->journal, &opt->first, &bytes, e)) != 0)
        return rc;
    if (opt->first > 0 && !a->quiet)
        moe_tool_warn("going on after %zu of %zu tensors", opt->first, p->n);
    return moe_sink_keep(dst, a->force, &p->sink, bytes, sink, e);
}

static int
write_model(struct moe_source *s, struct quant_plan *p, const struct args *a, const char *dst,
    struct moe_err *e)
{
    struct quant_run_options opt = { .pool = NULL };
    struct moe_progress progress;
    struct moe_sink *sink = NULL;
    int rc, no = 0;

    moe_progress_start(&progress, "quantising", moe_source_bytes(s), a->quiet);
    opt.progress = &progress;
    if ((rc = moe_pool_new(a->threads, &opt.pool, e)) != 0 ||
        (rc = open_sink(s, p, a, dst, &opt, &sink, e)) != 0)
        goto out;
    if ((a->report != NULL || a->gate > 0) &&
        (rc = quant_report_open(a->report, a->force, &opt.report, e)) != 0)
        goto out;
    if ((rc = quant_run(s, p, sink, &opt, e)) != 0 || (rc = copy_aux(s, p, sink, e)) != 0)
        goto out;
    no = opt.report != NULL ? pass_gate(a, opt.report) : 0;
    if (no == 0) {
        rc = moe_sink_commit(sink, e);
        sink = NULL;
        if (rc == 0)
            quant_journal_done(opt.journal);
    }
    if (rc == 0 && opt.report != NULL) {
        rc = quant_report_close(opt.report, s, p, e);
        opt.report = NULL;
    }
out:
    moe_progress_end(&progress);
    moe_sink_abort(sink);
    quant_journal_close(opt.journal);
    quant_report_abort(opt.report);
    moe_pool_free(opt.pool);
    if (rc == 0 && no == 0 && !a->quiet)
        tell(s, p);
    return rc != 0 ? rc : no;
}

/* The model after the engine has run it on a text; what too few tokens came to is named. */
static int
calibrated(struct moe_source *s, struct quant_plan *p, const struct args *a, const char *src,
    const char *dst, struct moe_err *e)
{
    struct quant_calib_options o = a->calib;
    struct quant_calib *c;
    int rc;

    o.force = a->force;
    o.quiet = a->quiet;
    o.threads = a->threads;
    if ((rc = quant_calib_run(src, p, &o, &c, e)) != 0)
        return rc;
    if (!a->quiet)
        quant_calib_tell(c);
    p->calib = o.factors ? c : NULL;
    rc = write_model(s, p, a, dst, e);
    quant_calib_free(c);
    return rc;
}

/* The modes that write no model. */
static int
look(const struct args *a, const char *const *path, struct moe_err *e)
{
    struct quant_diff_options diff = { NULL, a->gate, a->quiet };
    struct quant_scan_options scan = { NULL, a->plan.lora_dir, a->limit > 0 ? a->limit : 448,
        a->quiet };
    struct quant_budget_options budget = { NULL, a->budget, a->bpw, a->plan.policy.search,
        a->plan.policy.both, a->quiet };
    struct quant_kl_options kl = { NULL, a->kl, a->calib.tokens, a->quiet };
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_pool *pool;
    int rc = moe_pool_new(a->threads, &pool, e);

    if (rc != 0)
        return rc;
    diff.pool = scan.pool = budget.pool = kl.pool = pool;
    rc = a->look == KL ? quant_kl_models(path[0], path[1], &kl, &b, e) :
        a->look == DIFF ? quant_diff_models(path[0], path[1], &diff, &b, e) :
        a->look == SCAN ? quant_scan_model(path[0], &scan, &b, e) :
        a->look == BUDGET ? quant_budget_solve(path[0], &budget, &b, e) :
        quant_scan_check(path[0], &scan, &b, e);
    if (rc >= 0)
        (void)fwrite(b.p, 1, b.len, stdout);    /* moe_tool_end() checks stdout */
    moe_buf_fini(&b);
    moe_pool_free(pool);
    return rc;
}

/* --to: no option but a few goes with it. */
static int
convert(const struct args *a, const char *const *path, struct moe_err *e)
{
    struct quant_to_options o = { .force = a->force, .quiet = a->quiet };
    struct moe_source *s = NULL;
    int rc;

    if (a->format != NULL || a->shared != NULL || a->plan.policy_file != NULL || a->search ||
        a->plan.imatrix_file != NULL || a->plan.policy.asym || a->plan.nan_zero ||
        a->plan.policy.group != QUANT_POLICY_AUTO || a->plan.lora_dir != NULL || a->dry ||
        a->resume || a->report != NULL || a->gate > 0)
        return moe_err_set(e, MOE_EUSAGE, "--to changes no values: only -j, --force and -q go with"
            " it");
    if ((rc = moe_pool_new(a->threads, &o.pool, e)) == 0 &&
        (rc = moe_source_open(path[0], &s, e)) == 0)
        rc = a->to(s, path[1], &o, e);
    moe_source_close(s);
    moe_pool_free(o.pool);
    return rc;
}

static int
run(int argc, char **argv, struct moe_err *e)
{
    struct args a = { .plan.policy.group = QUANT_POLICY_AUTO,
        .calib.memory = (uint64_t)4 << 30 };
    struct quant_plan plan = { .n = 0 };
    struct moe_source *s = NULL;
    const char *src, *dst;
    bool done;
    int first, rc;

    if ((rc = moe_opt_parse(&command, argc, argv, option, &a, &first, &done, e)) != 0 || done)
        return rc;
    if (a.limit > 0 && a.look != SCAN)
        return moe_err_set(e, MOE_EUSAGE, "--limit goes with --scan");
    if (a.plan.lora_dir != NULL && a.look != 0 && a.look != SCAN)
        return moe_err_set(e, MOE_EUSAGE, "--merge-lora goes with --scan, or with writing a model");
    if (a.look != 0 && argc - first != (a.look == DIFF || a.look == KL ? 2 : 1))
        return moe_err_set(e, MOE_EUSAGE, "%s wanted, %d operands are given",
            a.look == DIFF || a.look == KL ? "two models are" : "one model is", argc - first);
    if (a.look != 0)
        return look(&a, (const char *const *)argv + first, e);
    if (argc - first != 2)
        return moe_err_set(e, MOE_EUSAGE, "SRC and DST are wanted, %d operands are given",
            argc - first);
    if (a.to != NULL)
        return convert(&a, (const char *const *)argv + first, e);
    if (a.json && !a.dry)
        return moe_err_set(e, MOE_EUSAGE, "--json goes with -n; see --report");
    if ((rc = settle(&a, e)) != 0)
        return rc;
    src = argv[first];
    dst = argv[first + 1];
    if (a.report != NULL && strcmp(a.report, "-") == 0 && strcmp(dst, "-") == 0)
        return moe_err_set(e, MOE_EUSAGE, "model and report cannot both go to stdout");
    if (a.resume && (!quant_plan_is_dir(dst) || strcmp(src, "-") == 0))
        return moe_err_set(e, MOE_EUSAGE, "--resume goes from files to a directory");
    if (a.resume && (a.report != NULL || a.gate > 0))
        return moe_err_set(e, MOE_EUSAGE, "--resume measures nothing; --diff does, afterwards");
    if (a.gate > 0 && strcmp(dst, "-") == 0)
        return moe_err_set(e, MOE_EUSAGE, "--gate cannot hold back what went to stdout");
    if ((rc = moe_source_open(src, &s, e)) == 0 &&
        (rc = quant_plan_make(s, dst, &a.plan, &plan, e)) == 0)
        rc = a.dry ? dry_run(s, &plan, dst, a.json, e) :
            a.calib.text != NULL ? calibrated(s, &plan, &a, src, dst, e) :
            write_model(s, &plan, &a, dst, e);
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
