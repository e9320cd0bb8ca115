/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the command `merge`: from a set of ranks to the files it was made of,
 * byte for byte.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/moe-shard/shard_beside.h"
#include "cmd/moe-shard/shard_cut.h"
#include "cmd/moe-shard/shard_ends.h"
#include "cmd/moe-shard/shard_ggufmerge.h"
#include "cmd/moe-shard/shard_merge.h"
#include "common/base/beneath.h"
#include "common/base/num.h"
#include "common/base/pool.h"
#include "common/base/tool.h"

enum { THREADS = 1, FORCE, QUIET };

static const struct moe_opt rows[] = {
    { THREADS, 'j', "threads", MOE_OPT_WORD, "N", "threads; default: the processors", NULL, false,
        false },
    { FORCE, 0, "force", MOE_OPT_NONE, NULL, "replace what is there", NULL, false, false },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "no progress and no summary on stderr", NULL,
        false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[-j N] [--force] SRC DST", "[--force] PART.gguf DST", NULL };

const struct moe_opt_cmd shard_merge_cmd = {
    "moe-shard merge", usage, "Join the ranks of a split model to the model it was.", rows, NULL
};

struct args { bool force, quiet; int threads; };

struct merge {
    struct shard_set set;
    struct moe_cutplan plan;
    struct shard_ends ends;
    int dir;                    /* of the set */
    const char *path;
    struct moe_outdir *to;      /* NULL: one file */
    struct moe_out **outs;      /* [set.n_files] */
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;
    int64_t v = 0;
    int rc = 0;

    switch (id) {
    case THREADS:
        rc = moe_num_int(arg, 1, MOE_POOL_MAX, "--threads", &v, e);
        a->threads = (int)v;
        break;
    case FORCE: a->force = true; break;
    default: a->quiet = true;
    }
    return rc;
}

/* ---- Moving ---------------------------------------------------------------------- */

static void
batch(void *ctx, size_t i, size_t n)
{
    struct merge *x = ctx;

    shard_ranks_batch(x->ends.ranks, i, n);
}

static int
read_piece(void *ctx, size_t i, uint64_t at, void *p, size_t n, struct shard_move_hand *h,
    struct moe_err *e)
{
    struct merge *x = ctx;

    return shard_ends_gather(&x->ends, i, at, p, n, h, e);
}

static int
write_piece(void *ctx, size_t i, uint64_t at, const void *p, size_t n,
    struct shard_move_hand *h, struct moe_err *e)
{
    struct merge *x = ctx;
    const struct shard_set_file *f = &x->set.files[x->set.file_of[i]];
    struct moe_out *o = x->outs[x->set.file_of[i]];

    (void)h;
    /* Tensors come in order of data, so that a stream gets its bytes as they come. */
    if (moe_out_is_stream(o))
        return moe_out_write(o, p, n, e);
    return moe_out_pwrite(o, p, n, f->head_len + x->set.t[i]->begin + at, e);
}

static int
check_sum(void *ctx, size_t i, const unsigned char sum[MOE_DIGEST_LEN],
    struct shard_move_hand *h, struct moe_err *e)
{
    struct merge *x = ctx;

    (void)h;
    if (memcmp(sum, x->set.sums[i], MOE_DIGEST_LEN) == 0)
        return 0;
    atomic_store(&x->ends.differs, true);
    return moe_err_set(e, MOE_EFORMAT, "%s: %s: is not the tensor that was split", x->path,
        x->set.t[i]->name);
}

/* ---- Files -------------------------------------------------------------------------- */

static int
open_outs(struct merge *x, const char *dst, bool force, struct moe_err *e)
{
    int rc = 0;

    if ((x->outs = calloc(x->set.n_files + 1, sizeof(*x->outs))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    if (strcmp(dst, "-") == 0 || !x->set.directory) {
        if (x->set.n_files != 1)
            return moe_err_set(e, MOE_EUSAGE, "the model was %zu files: DST must be a directory",
                x->set.n_files);
    } else if ((rc = moe_outdir_open(dst, force, &x->to, e)) != 0) {
        return rc;
    }
    for (size_t f = 0; f < x->set.n_files && rc == 0; f++) {
        const struct shard_set_file *s = &x->set.files[f];

        rc = x->to != NULL ? moe_outdir_file(x->to, s->name, s->head_len + s->data, &x->outs[f],
            e) : moe_out_open(dst, force, s->head_len + s->data, &x->outs[f], e);
        if (rc == 0)
            rc = moe_out_is_stream(x->outs[f]) ?
                moe_out_write(x->outs[f], s->head, s->head_len, e) :
                moe_out_pwrite(x->outs[f], s->head, s->head_len, 0, e);
    }
    return rc;
}

/* File `name` of the original into the output. */
static int
copy_file(struct merge *x, const char *name, struct moe_err *e)
{
    struct shard_beside_dir dir = { x->dir, x->path };
    struct moe_buf b = MOE_BUF_INIT;
    int rc = shard_beside_from(&dir, name, &b, e);

    if (rc == 0)
        rc = moe_outdir_put(x->to, name, b.p, b.len, e);
    moe_buf_fini(&b);
    return rc;
}

static int
finish(struct merge *x, struct moe_err *e)
{
    int rc = 0;

    for (size_t i = 0; x->to != NULL && rc == 0 && i < x->set.n_aux; i++)
        rc = copy_file(x, x->set.aux[i], e);
    if (rc == 0 && x->to != NULL && x->set.index)
        rc = copy_file(x, SHARD_SET_INDEX, e);
    for (size_t f = 0; rc == 0 && f < x->set.n_files; f++) {
        struct moe_out *o = x->outs[f];

        x->outs[f] = NULL;
        rc = moe_out_commit(o, e);
    }
    if (rc == 0 && x->to != NULL) {
        struct moe_outdir *to = x->to;

        x->to = NULL;
        rc = moe_outdir_commit(to, e);
    }
    return rc;
}

static int
merge(struct merge *x, const struct args *a, const char *dst, struct moe_err *e)
{
    const struct moe_config *config = x->set.config.tree != NULL ? &x->set.config : NULL;
    struct moe_progress progress;
    struct shard_move m = { .plan = &x->plan, .ctx = x, .batch = batch, .read = read_piece,
        .write = write_piece, .done = check_sum, .threads = a->threads, .progress = &progress };
    uint64_t bytes = 0;
    int rc;

    for (size_t f = 0; f < x->set.n_files; f++)
        bytes += x->set.files[f].data;
    x->ends.plan = &x->plan;
    if ((rc = shard_cut_plan(&x->set, config, x->path, &x->plan, e)) != 0 ||
        (rc = shard_ranks_open(&x->plan, x->set.layout, x->dir, x->path, &x->ends.ranks, e)) != 0 ||
        (rc = open_outs(x, dst, a->force, e)) != 0)
        return rc;
    m.in_order = moe_out_is_stream(x->outs[0]);
    moe_progress_start(&progress, "merging", bytes, a->quiet);
    rc = shard_move_run(&m, e);
    moe_progress_end(&progress);
    if (rc == 0)
        rc = finish(x, e);
    if (rc == 0 && !a->quiet) {
        char text[32];

        moe_tool_warn("%zu tensors, %s: every digest as recorded", x->set.n,
            moe_num_human(text, sizeof(text), bytes));
    }
    return rc;
}

static bool
is_gguf(const char *path)
{
    size_t n = strlen(path);

    return n > 5 && strcmp(path + n - 5, ".gguf") == 0;
}

/* What was joined is not what was split: no trouble, but a no. */
static int
answer(int rc, bool differs, const struct moe_err *e)
{
    if (rc == 0 || !differs)
        return rc;
    moe_tool_warn("%s", e->text);
    return MOE_EXIT_NO;
}

int
shard_merge(int argc, char **argv, struct moe_err *e)
{
    struct args a = { .threads = 0 };
    struct merge x = { .dir = -1 };
    bool done;
    int first, rc = moe_opt_parse(&shard_merge_cmd, argc, argv, option, &a, &first, &done, e);

    if (rc != 0 || done)
        return rc;
    if (argc - first != 2)
        return moe_err_set(e, MOE_EUSAGE, "SRC and DST are wanted, %d operands are given",
            argc - first);
    x.path = argv[first];
    if (is_gguf(x.path)) {
        bool differs;

        rc = shard_ggufmerge(x.path, &(struct shard_pack_options){ .force = a.force,
            .quiet = a.quiet }, argv[first + 1], &differs, e);
        return answer(rc, differs, e);
    }
    if ((x.dir = moe_beneath_dir(x.path, e)) < 0)
        return x.dir;
    if ((rc = shard_set_read(x.dir, x.path, &x.set, e)) == 0)
        rc = merge(&x, &a, argv[first + 1], e);
    for (size_t f = 0; x.outs != NULL && f < x.set.n_files; f++)
        moe_out_abort(x.outs[f]);
    free(x.outs);
    moe_outdir_abort(x.to);
    shard_ranks_free(x.ends.ranks);
    moe_cutplan_free(&x.plan);
    shard_set_fini(&x.set);
    (void)close(x.dir);
    return answer(rc, atomic_load(&x.ends.differs), e);
}
