/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the command `split`: from a source to a set of ranks.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_beside.h"
#include "cmd/moe-shard/shard_cut.h"
#include "cmd/moe-shard/shard_ends.h"
#include "cmd/moe-shard/shard_pack.h"
#include "cmd/moe-shard/shard_split.h"
#include "common/base/num.h"
#include "common/base/tool.h"
#include "common/formats/source.h"

enum { MAX_SIZE = SHARD_CUT_LAST, MAX_TENSORS, LINKS };

static const struct moe_opt rows[] = {
    SHARD_CUT_ROWS,
    { MAX_SIZE, 0, "max-size", MOE_OPT_WORD, "SIZE", "no ranks: files of at most so many bytes",
        NULL, false, false },
    { MAX_TENSORS, 0, "max-tensors", MOE_OPT_WORD, "N", "no ranks: GGUF files of so many tensors",
        NULL, false, false },
    { LINKS, 0, "links", MOE_OPT_WORD, "B,B", "no ranks: a file for each link of so many bytes/s",
        NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = {
    "[--tp N] [--ep N] [--pp N] [OPTION ...] SRC DST",
    "-n [--json] [--tp N] [--ep N] [--pp N] SRC",
    "--max-size SIZE | --links B,B [-n] [OPTION ...] SRC DST",
    NULL
};

const struct moe_opt_cmd shard_split_cmd = {
    "moe-shard split", usage, "Cut a model for the ranks that will run it.", rows, NULL
};

struct split {
    struct moe_source *src;
    struct shard_set set;
    struct moe_cutplan plan;
    struct shard_ends ends;
};

struct args {
    struct shard_cut_options cut;
    struct shard_pack_options pack;
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;
    int64_t v = 0;
    int rc;

    if (id == MAX_SIZE)
        return moe_num_size(arg, 1, UINT64_C(1) << 60, "--max-size", &a->pack.max_bytes, e);
    if (id == LINKS) {
        a->pack.links = arg;
        return 0;
    }
    if (id != MAX_TENSORS)
        return shard_cut_option(&a->cut, id, arg, e);
    rc = moe_num_int(arg, 1, INT32_MAX, "--max-tensors", &v, e);
    a->pack.max_tensors = (size_t)v;
    return rc;
}

/* ---- What the original is ------------------------------------------------------------ */

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

static int
take_files(struct split *x, struct moe_err *e)
{
    struct shard_set *s = &x->set;
    size_t n = moe_source_files(x->src), aux = 0;
    struct moe_buf index = MOE_BUF_INIT;

    while (moe_source_aux_name(x->src, aux) != NULL)
        aux++;
    s->files = calloc(n + 1, sizeof(*s->files));
    s->aux = calloc(aux + 1, sizeof(*s->aux));
    if (s->files == NULL || s->aux == NULL)
        return no_memory(e);
    for (size_t f = 0; f < n; f++) {
        const char *name = moe_source_file(x->src, f), *base = strrchr(name, '/');
        struct moe_buf b = MOE_BUF_INIT;
        int rc = moe_source_head(x->src, f, &b, e);

        if (rc == 0 && moe_source_is_dir(x->src) && base != NULL)
            rc = moe_err_set(e, MOE_EUNSUP, "%s: %s: files of folders within a model are not"
                " split", moe_source_path(x->src), name);
        s->files[f].name = moe_source_is_stream(x->src) ? "stdin.safetensors" :
            base != NULL ? base + 1 : name;
        s->files[f].head_len = b.len;
        s->files[f].head = moe_buf_take(&b);
        s->n_files++;
        if (rc != 0 || s->files[f].head == NULL)
            return rc != 0 ? rc : no_memory(e);
        s->files[f].data = moe_source_file_size(x->src, f) - s->files[f].head_len;
    }
    for (; s->n_aux < aux; s->n_aux++)
        s->aux[s->n_aux] = moe_source_aux_name(x->src, s->n_aux);
    s->directory = moe_source_is_dir(x->src);
    s->index = moe_source_aux(x->src, SHARD_SET_INDEX, SHARD_BESIDE_MAX, &index, e) == 0;
    moe_buf_fini(&index);
    return 0;
}

/* Data of a file with a header that was made again begins elsewhere, but is as long. */
static int
take_tensors(struct split *x, struct moe_err *e)
{
    struct shard_set *s = &x->set;

    s->n = moe_source_n(x->src);
    s->t = calloc(s->n + 1, sizeof(*s->t));
    s->file_of = calloc(s->n + 1, sizeof(*s->file_of));
    s->sums = calloc(s->n + 1, sizeof(*s->sums));
    s->unordered = calloc(s->n + 1, sizeof(*s->unordered));
    if (s->t == NULL || s->file_of == NULL || s->sums == NULL || s->unordered == NULL)
        return no_memory(e);
    for (size_t f = 0; f < s->n_files; f++)
        s->files[f].data = 0;
    for (size_t i = 0; i < s->n; i++) {
        s->t[i] = moe_source_at(x->src, i);
        s->file_of[i] = moe_source_file_of(x->src, i);
        s->files[s->file_of[i]].data += s->t[i]->end - s->t[i]->begin;
    }
    return 0;
}

/* ---- Moving ---------------------------------------------------------------------------- */

static void
batch(void *ctx, size_t i, size_t n)
{
    struct split *x = ctx;

    shard_ranks_batch(x->ends.ranks, i, n);
}

static int
read_piece(void *ctx, size_t i, uint64_t at, void *p, size_t n, struct shard_move_hand *h,
    struct moe_err *e)
{
    struct split *x = ctx;

    (void)h;
    return moe_source_read(x->src, i, at, p, n, e);
}

static int
write_piece(void *ctx, size_t i, uint64_t at, const void *p, size_t n,
    struct shard_move_hand *h, struct moe_err *e)
{
    struct split *x = ctx;

    return shard_ends_deal(&x->ends, i, at, p, n, h, e);
}

static int
keep_sum(void *ctx, size_t i, const unsigned char sum[MOE_DIGEST_LEN], struct shard_move_hand *h,
    struct moe_err *e)
{
    struct split *x = ctx;

    (void)h;
    (void)e;
    memcpy(x->set.sums[i], sum, MOE_DIGEST_LEN);
    return 0;
}

static int
beside(void *ctx, const char *name, struct moe_buf *b, struct moe_err *e)
{
    return moe_source_aux(ctx, name, SHARD_BESIDE_MAX, b, e);
}

static int
write_set(struct split *x, const struct shard_cut_options *o, const char *dst, struct moe_err *e)
{
    struct moe_progress progress;
    struct shard_move m = { .plan = &x->plan, .ctx = x, .batch = batch, .read = read_piece,
        .write = write_piece, .done = keep_sum, .in_order = moe_source_is_stream(x->src),
        .threads = o->threads, .progress = &progress };
    struct moe_outdir *d;
    int rc;

    moe_progress_start(&progress, "splitting", moe_source_bytes(x->src), o->quiet);
    x->ends.plan = &x->plan;
    if ((rc = moe_outdir_open(dst, o->force, &d, e)) != 0)
        goto out;
    if ((rc = shard_ranks_create(&x->plan, o->layout, d, &x->ends.ranks, e)) == 0 &&
        (rc = shard_move_run(&m, e)) == 0 &&
        (rc = shard_ranks_commit(x->ends.ranks, e)) == 0 &&
        (rc = shard_set_write(&x->set, d, e)) == 0)
        rc = shard_beside_copy(&x->set, d, beside, x->src, e);
    shard_ranks_free(x->ends.ranks);
    if (rc == 0)
        rc = moe_outdir_commit(d, e);
    else
        moe_outdir_abort(d);
out:
    moe_progress_end(&progress);
    return rc;
}

/* Files of a size instead of ranks. */
static int
pack(struct args *a, const char *src, const char *dst, struct moe_err *e)
{
    const struct shard_cut_options *o = &a->cut;

    if (o->tp != 1 || o->ep != 1 || o->pp != 1 || o->plan != NULL)
        return moe_err_set(e, MOE_EUSAGE, "--max-size, --max-tensors and --links go without ranks");
    if (a->pack.links != NULL && a->pack.max_bytes > 0)
        return moe_err_set(e, MOE_EUSAGE, "--links and --max-size do not go together");
    a->pack.dry = o->dry;
    a->pack.json = o->json;
    a->pack.force = o->force;
    a->pack.quiet = o->quiet;
    return shard_pack_split(src, &a->pack, dst, e);
}

int
shard_split(int argc, char **argv, struct moe_err *e)
{
    struct args a = { .cut = SHARD_CUT_DEFAULTS };
    struct split x = { .src = NULL };
    const struct moe_config *config;
    struct shard_cut_options o;
    bool done;
    int first, n, rc = moe_opt_parse(&shard_split_cmd, argc, argv, option, &a, &first, &done, e);

    if (rc != 0 || done)
        return rc;
    n = argc - first;
    o = a.cut;
    if (n != 2 && !(o.dry && n == 1))
        return moe_err_set(e, MOE_EUSAGE, "SRC and DST are wanted, %d operands are given", n);
    if (o.json && !o.dry)
        return moe_err_set(e, MOE_EUSAGE, "--json goes with -n");
    if (a.pack.max_bytes > 0 || a.pack.max_tensors > 0 || a.pack.links != NULL)
        return pack(&a, argv[first], n == 2 ? argv[first + 1] : NULL, e);
    if ((rc = moe_source_open(argv[first], &x.src, e)) != 0)
        return rc;
    config = moe_source_config(x.src);
    if (moe_source_gguf(x.src) != NULL)
        rc = moe_err_set(e, MOE_EUNSUP, "%s: a GGUF file is split by --max-size, not for"
            " ranks", argv[first]);
    if (rc == 0 && (rc = take_files(&x, e)) == 0 && (rc = take_tensors(&x, e)) == 0 &&
        (rc = shard_cut_grid(&o, config, &x.set, e)) == 0 &&
        (rc = shard_cut_order(x.src, &x.set, e)) == 0 &&
        (rc = shard_cut_plan(&x.set, config, moe_source_path(x.src), &x.plan, e)) == 0)
        rc = o.dry ? shard_cut_print(&x.plan, o.json, NULL, e) :
            write_set(&x, &o, argv[first + 1], e);
    if (rc == 0 && !o.dry && !o.quiet) {
        char text[32];

        moe_tool_warn("%zu tensors of %s for %u ranks", x.set.n,
            moe_num_human(text, sizeof(text), moe_source_bytes(x.src)),
            (unsigned)moe_grid_ranks(&x.set.grid));
    }
    moe_cutplan_free(&x.plan);
    shard_set_fini(&x.set);
    moe_source_close(x.src);
    return rc;
}
