/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns `moe-ckpt cat`: a save as one stream. A file comes out byte for byte; the
 * safetensors files of a directory come out as one.
 */
#include <string.h>

#include "cmd/moe-ckpt/ckpt_cat.h"
#include "cmd/moe-ckpt/ckpt_merge.h"
#include "cmd/moe-ckpt/ckpt_spec.h"
#include "common/base/num.h"
#include "common/base/out.h"

enum { OUTPUT = 1, FORCE, THREADS };

static const struct moe_opt rows[] = {
    { OUTPUT, 'o', "output", MOE_OPT_FILE, "FILE", "write to FILE; default: standard output", NULL,
        false, false },
    { FORCE, 0, "force", MOE_OPT_NONE, NULL, "replace FILE if it is there", NULL, false, false },
    { THREADS, 'j', "threads", MOE_OPT_WORD, "N", "threads; default: the processors", NULL,
        false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[-j N] [-o FILE [--force]] STORE[@ID[:FILE]]", NULL };

const struct moe_opt_cmd ckpt_cat_cmd = { "moe-ckpt cat", usage,
    "Print a save, or one file of it.", rows, NULL };

struct args { const char *output; bool force; int threads; };

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;
    int64_t n;
    int rc;

    switch (id) {
    case OUTPUT: a->output = arg; break;
    case FORCE: a->force = true; break;
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
    return moe_out_write(ctx, p, n, e);
}

static int
print(struct ckpt_spec_open *s, struct moe_out *o, struct moe_err *e)
{
    const struct moe_snapshot_file *f;

    if (s->spec.name != NULL) {
        if ((f = moe_snapshot_find(&s->snap, s->spec.name)) == NULL)
            return moe_err_set(e, MOE_ENOENT, "%s@%s: holds no file %s", s->spec.store,
                s->spec.id, s->spec.name);
        return ckpt_spec_file(s, f, put, o, e);
    }
    if (s->snap.shape == MOE_SNAPSHOT_FILE)
        return ckpt_spec_file(s, &s->snap.files[0], put, o, e);
    return ckpt_merge(s, o, e);
}

int
ckpt_cat(int argc, char **argv, struct moe_err *e)
{
    struct ckpt_spec_open s = CKPT_SPEC_OPEN_INIT;
    struct args a = { "-", false, 0 };
    struct moe_out *o = NULL;
    int rc, first;
    bool done;

    if ((rc = moe_opt_parse(&ckpt_cat_cmd, argc, argv, option, &a, &first, &done, e)) != 0 || done)
        return rc;
    if (argc - first != 1)
        return moe_err_set(e, MOE_EUSAGE, "cat wants one STORE@ID");
    if ((rc = ckpt_spec_open(argv[first], a.threads, &s, e)) == 0 &&
        (rc = moe_out_open(a.output, a.force, 0, &o, e)) == 0 && (rc = print(&s, o, e)) == 0) {
        rc = moe_out_commit(o, e);
        o = NULL;
    }
    moe_out_abort(o);
    ckpt_spec_close(&s);
    return rc;
}
