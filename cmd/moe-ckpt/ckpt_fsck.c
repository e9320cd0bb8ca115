/* SPDX-License-Identifier: Apache-2.0 */
/* Owns `moe-ckpt fsck`: whether a store is whole. */
#include <inttypes.h>
#include <stdio.h>

#include "cmd/moe-ckpt/ckpt_fsck.h"
#include "cmd/moe-ckpt/ckpt_spec.h"
#include "common/base/num.h"
#include "common/base/progress.h"
#include "common/base/tool.h"
#include "common/store/fsck.h"

enum { FAST = 1, THREADS, QUIET };

static const struct moe_opt rows[] = {
    { FAST, 0, "fast", MOE_OPT_NONE, NULL, "checksums and references, without decoding", NULL,
        false, false },
    { THREADS, 'j', "threads", MOE_OPT_WORD, "N", "threads; default: the processors", NULL,
        false, false },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "no progress and no summary", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[-q] [-j N] [--fast] STORE", NULL };

const struct moe_opt_cmd ckpt_fsck_cmd = { "moe-ckpt fsck", usage, "Tell whether a store is whole.",
    rows, NULL };

struct args { bool fast, quiet; int threads; };

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;
    int64_t n = 0;
    int rc = 0;

    switch (id) {
    case FAST: a->fast = true; break;
    case QUIET: a->quiet = true; break;
    default:
        rc = moe_num_int(arg, 1, MOE_POOL_MAX, "threads", &n, e);
        a->threads = (int)n;
    }
    return rc;
}

static void
told(void *ctx, const char *text)
{
    (void)ctx;
    printf("%s\n", text);
}

int
ckpt_fsck(int argc, char **argv, struct moe_err *e)
{
    struct moe_progress progress;
    struct args a = { false, false, 0 };
    struct moe_fsck f = { 0 };
    int rc, first;
    bool done;

    if ((rc = moe_opt_parse(&ckpt_fsck_cmd, argc, argv, option, &a, &first, &done, e)) != 0 ||
        done)
        return rc;
    if (argc - first != 1)
        return moe_err_set(e, MOE_EUSAGE, "fsck wants one STORE");
    if ((rc = moe_store_open(argv[first], false, 0, &f.store, e)) == 0 &&
        (rc = ckpt_spec_pool(a.threads, &f.pool, e)) == 0) {
        f.fast = a.fast;
        f.told = told;
        f.progress = &progress;
        moe_progress_start(&progress, "fsck", 0, a.quiet);
        rc = moe_fsck_run(&f, e);
        moe_progress_end(&progress);
    }
    if (rc == 0 && f.bad == 0 && f.saves == 0)
        rc = moe_err_set(e, MOE_ENOENT, "%s: holds no save to check", argv[first]);
    if (rc == 0 && !a.quiet)
        moe_tool_warn("%s: %" PRIu64 " saves, %" PRIu64 " files, %" PRIu64 " parts, %" PRIu64
            " records in %" PRIu64 " packs: %" PRIu64 " bad", argv[first], f.saves, f.files,
            f.parts, f.records, f.packs, f.bad);
    moe_pool_free(f.pool);
    moe_store_close(f.store);
    return rc != 0 ? rc : f.bad > 0 ? MOE_EXIT_NO : 0;
}
