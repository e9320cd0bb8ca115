/* SPDX-License-Identifier: Apache-2.0 */
/* Owns `moe-ckpt load`: the files of a save, byte for byte. */
#include <string.h>

#include "cmd/moe-ckpt/ckpt_load.h"
#include "cmd/moe-ckpt/ckpt_spec.h"
#include "common/base/num.h"
#include "common/base/out.h"
#include "common/base/progress.h"

enum { FORCE = 1, THREADS, QUIET };

static const struct moe_opt rows[] = {
    { FORCE, 0, "force", MOE_OPT_NONE, NULL, "exchange what is at DST", NULL, false, false },
    { THREADS, 'j', "threads", MOE_OPT_WORD, "N", "threads; default: the processors", NULL,
        false, false },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "no progress", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[-q] [-j N] [--force] STORE[@ID] DST", NULL };

const struct moe_opt_cmd ckpt_load_cmd = { "moe-ckpt load", usage,
    "Write the file or the directory that was saved.", rows, NULL };

struct args { bool force, quiet; int threads; };

struct to { struct moe_out *o; struct moe_progress *progress; };

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;
    int64_t n;
    int rc;

    switch (id) {
    case FORCE: a->force = true; break;
    case QUIET: a->quiet = true; break;
    default:
        if ((rc = moe_num_int(arg, 1, MOE_POOL_MAX, "threads", &n, e)) != 0)
            return rc;
        a->threads = (int)n;
    }
    return 0;
}

static int
put(void *ctx, const void *p, size_t n, struct moe_err *e)
{
    struct to *to = ctx;

    moe_progress_add(to->progress, n);
    return moe_out_write(to->o, p, n, e);
}

/* Write file f to o, which is committed or aborted. */
static int
one_file(struct ckpt_spec_open *s, const struct moe_snapshot_file *f, struct moe_out *o,
    struct moe_progress *progress, struct moe_err *e)
{
    struct to to = { o, progress };
    int rc = ckpt_spec_file(s, f, put, &to, e);

    if (rc == 0)
        return moe_out_commit(o, e);
    moe_out_abort(o);
    return rc;
}

static int
directory(struct ckpt_spec_open *s, const char *dst, bool force, struct moe_progress *progress,
    struct moe_err *e)
{
    struct moe_outdir *d;
    struct moe_out *o;
    int rc;

    if ((rc = moe_outdir_open(dst, force, &d, e)) != 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < s->snap.n; i++)
        if ((rc = moe_outdir_file(d, s->snap.files[i].name, s->snap.files[i].size, &o, e)) == 0)
            rc = one_file(s, &s->snap.files[i], o, progress, e);
    if (rc == 0)
        return moe_outdir_commit(d, e);
    moe_outdir_abort(d);
    return rc;
}

static int
load(struct ckpt_spec_open *s, const char *dst, const struct args *a, struct moe_err *e)
{
    struct moe_progress progress;
    struct moe_out *o;
    int rc;

    if (s->spec.name != NULL)
        return moe_err_set(e, MOE_EUSAGE, "load writes whole saves (cat and get print parts)");
    moe_progress_start(&progress, "load", moe_snapshot_bytes(&s->snap), a->quiet);
    if (s->snap.shape == MOE_SNAPSHOT_DIR)
        rc = directory(s, dst, a->force, &progress, e);
    else if ((rc = moe_out_open(dst, a->force, s->snap.files[0].size, &o, e)) == 0)
        rc = one_file(s, &s->snap.files[0], o, &progress, e);
    moe_progress_end(&progress);
    return rc;
}

int
ckpt_load(int argc, char **argv, struct moe_err *e)
{
    struct ckpt_spec_open s = CKPT_SPEC_OPEN_INIT;
    struct args a = { false, false, 0 };
    int rc, first;
    bool done;

    if ((rc = moe_opt_parse(&ckpt_load_cmd, argc, argv, option, &a, &first, &done, e)) != 0 ||
        done)
        return rc;
    if (argc - first != 2)
        return moe_err_set(e, MOE_EUSAGE, "load wants STORE@ID and DST");
    if ((rc = ckpt_spec_open(argv[first], a.threads, &s, e)) == 0)
        rc = load(&s, argv[first + 1], &a, e);
    ckpt_spec_close(&s);
    return rc;
}
