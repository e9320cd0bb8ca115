/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moe-verify: tell whether files and tensors are what they were. Owns the
 * command line; the commands are verify_sum.c and verify_check.c.
 */
#include <string.h>

#include "cmd/moe-verify/verify_check.h"
#include "cmd/moe-verify/verify_opts.h"
#include "cmd/moe-verify/verify_sum.h"
#include "common/base/num.h"
#include "common/base/opt.h"
#include "common/base/pool.h"
#include "common/base/tool.h"

enum id { TENSORS = 1, JSON, ZERO, THREADS, QUIET, STATUS, IGNORE_MISSING, STRICT };

static const struct moe_opt opts[] = {
    { TENSORS, 't', "tensors", MOE_OPT_NONE, NULL, "sum: digests of tensors, not of files",
        NULL, false, false },
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "print JSON Lines", NULL, false, false },
    { ZERO, 'z', "zero", MOE_OPT_NONE, NULL, "records end in NUL, names are not escaped",
        NULL, false, false },
    { THREADS, 'j', "threads", MOE_OPT_WORD, "N", "work with N threads, not all processors",
        NULL, false, false },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "check: no line for what is as listed",
        NULL, false, false },
    { STATUS, 0, "status", MOE_OPT_NONE, NULL, "check: no output, only the exit status",
        NULL, false, false },
    { IGNORE_MISSING, 0, "ignore-missing", MOE_OPT_NONE, NULL,
        "check: pass over files that are missing", NULL, false, false },
    { STRICT, 0, "strict", MOE_OPT_NONE, NULL, "check: a bad line is an error (always so)",
        NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = {
    "sum [-qz] [-j N] [--json] [--tensors] [FILE | DIR ...]",
    "check [-qz] [-j N] [--status] [--ignore-missing] [LIST ...]",
    NULL,
};

static const char *const verbs[] = { "sum", "check", NULL };

static const struct moe_opt_cmd cmd = {
    "moe-verify", usage, "Tell whether files and tensors are what they were.", opts, verbs,
};

/* The options, and which of them only one of the commands has. */
struct line {
    struct verify_opts o;
    const char *sum_only, *check_only;
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct line *l = ctx;
    int64_t n;
    int rc;

    switch ((enum id)id) {
    case TENSORS: l->o.tensors = true; l->sum_only = "--tensors"; break;
    case JSON: l->o.json = true; break;
    case ZERO: l->o.zero = true; break;
    case QUIET: l->o.quiet = true; break;
    case STATUS: l->o.status = true; l->check_only = "--status"; break;
    case IGNORE_MISSING: l->o.ignore_missing = true; l->check_only = "--ignore-missing"; break;
    case STRICT: l->check_only = "--strict"; break;
    case THREADS:
        if ((rc = moe_num_int(arg, 1, MOE_POOL_MAX, "--threads", &n, e)) != 0)
            return rc;
        l->o.threads = (int)n;
        break;
    }
    return 0;
}

static int
run(int argc, char **argv, struct moe_err *e)
{
    struct line l = { .o = { .threads = 0 } };
    const char *verb;
    bool done = false;
    int first, rc = moe_opt_parse(&cmd, argc, argv, option, &l, &first, &done, e);

    if (rc != 0 || done)
        return rc;
    if (first >= argc)
        return moe_err_set(e, MOE_EUSAGE, "sum or check?");
    verb = argv[first++];
    if (strcmp(verb, "sum") == 0) {
        if (l.check_only != NULL)
            return moe_err_set(e, MOE_EUSAGE, "%s is for check", l.check_only);
        if (l.o.tensors && l.o.zero)
            return moe_err_set(e, MOE_EUSAGE, "--tensors has no form with --zero");
        return verify_sum(&l.o, argv + first, argc - first, e);
    }
    if (strcmp(verb, "check") == 0) {
        if (l.sum_only != NULL)
            return moe_err_set(e, MOE_EUSAGE, "%s is for sum; a list says itself", l.sum_only);
        return verify_check(&l.o, argv + first, argc - first, e);
    }
    return moe_err_set(e, MOE_EUSAGE, "no such command: %s", verb);
}

int
main(int argc, char **argv)
{
    struct moe_err e = { 0 };

    moe_tool_start("moe-verify");
    return moe_tool_end(run(argc, argv, &e), &e);
}
