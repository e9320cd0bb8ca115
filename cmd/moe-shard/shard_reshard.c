/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the command `reshard`: from one grid of ranks to another in one pass, no
 * whole model between, and the count of what ranks have already.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/moe-shard/shard_beside.h"
#include "cmd/moe-shard/shard_cut.h"
#include "cmd/moe-shard/shard_ends.h"
#include "cmd/moe-shard/shard_reshard.h"
#include "common/base/beneath.h"
#include "common/base/num.h"
#include "common/base/tool.h"

static const struct moe_opt rows[] = {
    SHARD_CUT_ROWS,
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = {
    "[--tp N] [--ep N] [--pp N] [OPTION ...] SRC DST",
    "-n [--json] [--tp N] [--ep N] [--pp N] SRC",
    NULL
};

const struct moe_opt_cmd shard_reshard_cmd = {
    "moe-shard reshard", usage, "Cut a split model anew, for other ranks.", rows, NULL
};

struct reshard {
    struct shard_set set;           /* what is read; its grid, spread, layout become the new ones */
    struct moe_grid old_grid;
    struct moe_cutplan old, plan;
    struct shard_ends from, to;
    const char *path;
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    return shard_cut_option(ctx, id, arg, e);
}

/* ---- What ranks have already -------------------------------------------------------- */

/* Bytes of a slab that both parts have. */
static uint64_t
common_slab(const struct moe_scatter *a, uint32_t ta, const struct moe_scatter *b, uint32_t tb)
{
    struct moe_cut_range ra[MOE_CUT_SEGS], rb[MOE_CUT_SEGS];
    const struct moe_scatter *cut = a->cut.how == MOE_CUT_AXIS ? a : b;
    uint64_t both = 0;
    int na, nb;

    if ((a->cut.how == MOE_CUT_FIRST && ta > 0) || (b->cut.how == MOE_CUT_FIRST && tb > 0))
        return 0;
    if (cut->cut.how != MOE_CUT_AXIS)
        return cut->slab;
    na = a->cut.how == MOE_CUT_AXIS ? moe_cut_ranges(&a->cut, ta, ra) : 0;
    nb = b->cut.how == MOE_CUT_AXIS ? moe_cut_ranges(&b->cut, tb, rb) : 0;
    for (int i = 0; i < na || i < nb; i++) {
        uint64_t sa = a->cut.step, sb = b->cut.step;
        uint64_t lo = i < na ? ra[i].lo * sa : 0, hi = i < na ? ra[i].hi * sa : UINT64_MAX;

        if (i < nb && rb[i].lo * sb > lo)
            lo = rb[i].lo * sb;
        if (i < nb && rb[i].hi * sb < hi)
            hi = rb[i].hi * sb;
        both += hi > lo ? (hi - lo) / cut->cut.step : 0;
    }
    return cut->outer * cut->inner * both;
}

/* Experts of item i's stack (or 1) that both have. */
static uint64_t
common_slabs(const struct moe_scatter *a, uint32_t ea, const struct moe_scatter *b, uint32_t eb)
{
    uint64_t n = 0;

    for (uint64_t x = 0; x < a->slabs; x++) {
        uint64_t expert = a->stacked ? x : (uint64_t)a->expert;

        n += (!a->stacked && a->expert < 0) || (moe_grid_holds(a->grid, a->layer, expert, ea) &&
            moe_grid_holds(b->grid, b->layer, expert, eb));
    }
    return n;
}

/* Bytes of rank k's new file that rank k does not have in its old one. */
static uint64_t
moved(const struct reshard *x, uint32_t k)
{
    const struct moe_grid *a = &x->old_grid, *b = &x->set.grid;
    uint64_t shape[MOE_SAFET_MAX_RANK], bytes, sum = 0;
    uint32_t tb = k % b->tp, eb = k / b->tp % b->ep, pb = k / b->tp / b->ep;
    uint32_t ta = k % a->tp, ea = k / a->tp % a->ep, pa = k / a->tp / a->ep;

    for (size_t i = 0; i < x->plan.n; i++) {
        const struct moe_scatter *sa = &x->old.items[i].scatter, *sb = &x->plan.items[i].scatter;
        uint64_t have = 0;

        if (!moe_cutplan_part(&x->plan, i, pb, eb, tb, shape, &bytes))
            continue;
        if (pa < a->pp && moe_cutplan_on_stage(&x->old, i, pa))
            have = common_slab(sa, ta, sb, tb) * common_slabs(sa, ea, sb, eb);
        sum += have < bytes ? bytes - have : 0;
    }
    return sum;
}

static int
print(const struct reshard *x, bool json, struct moe_err *e)
{
    uint32_t n = moe_grid_ranks(&x->set.grid);
    uint64_t *bytes = calloc(n, sizeof(*bytes));
    int rc;

    if (bytes == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (uint32_t k = 0; k < n; k++)
        bytes[k] = moved(x, k);
    rc = shard_cut_print(&x->plan, json, bytes, e);
    free(bytes);
    return rc;
}

/* ---- Moving ----------------------------------------------------------------------------- */

static void
batch(void *ctx, size_t i, size_t n)
{
    struct reshard *x = ctx;

    shard_ranks_batch(x->from.ranks, i, n);
    shard_ranks_batch(x->to.ranks, i, n);
}

static int
read_piece(void *ctx, size_t i, uint64_t at, void *p, size_t n, struct shard_move_hand *h,
    struct moe_err *e)
{
    struct reshard *x = ctx;

    return shard_ends_gather(&x->from, i, at, p, n, h, e);
}

static int
write_piece(void *ctx, size_t i, uint64_t at, const void *p, size_t n,
    struct shard_move_hand *h, struct moe_err *e)
{
    struct reshard *x = ctx;

    return shard_ends_deal(&x->to, i, at, p, n, h, e);
}

static int
check_sum(void *ctx, size_t i, const unsigned char sum[MOE_DIGEST_LEN],
    struct shard_move_hand *h, struct moe_err *e)
{
    struct reshard *x = ctx;

    (void)h;
    if (memcmp(sum, x->set.sums[i], MOE_DIGEST_LEN) == 0)
        return 0;
    atomic_store(&x->from.differs, true);
    return moe_err_set(e, MOE_EFORMAT, "%s: %s: is not the tensor that was split", x->path,
        x->set.t[i]->name);
}

static int
write_set(struct reshard *x, const struct shard_cut_options *o,
    enum shard_ranks_layout old_layout, int dir, const char *dst, struct moe_err *e)
{
    struct shard_beside_dir beside = { dir, x->path };
    struct moe_progress progress;
    struct shard_move m = { .plan = &x->plan, .ctx = x, .batch = batch, .read = read_piece,
        .write = write_piece, .done = check_sum, .threads = o->threads, .progress = &progress };
    struct moe_outdir *d = NULL;
    uint64_t bytes = 0;
    int rc;

    for (size_t f = 0; f < x->set.n_files; f++)
        bytes += x->set.files[f].data;
    moe_progress_start(&progress, "resharding", bytes, o->quiet);
    x->from.plan = &x->old;
    x->to.plan = &x->plan;
    if ((rc = shard_ranks_open(&x->old, old_layout, dir, x->path, &x->from.ranks, e)) == 0 &&
        (rc = moe_outdir_open(dst, o->force, &d, e)) == 0 &&
        (rc = shard_ranks_create(&x->plan, o->layout, d, &x->to.ranks, e)) == 0 &&
        (rc = shard_move_run(&m, e)) == 0 &&
        (rc = shard_ranks_commit(x->to.ranks, e)) == 0 &&
        (rc = shard_set_write(&x->set, d, e)) == 0)
        rc = shard_beside_copy(&x->set, d, shard_beside_from, &beside, e);
    shard_ranks_free(x->from.ranks);
    shard_ranks_free(x->to.ranks);
    if (rc == 0)
        rc = moe_outdir_commit(d, e);
    else
        moe_outdir_abort(d);
    moe_progress_end(&progress);
    return rc;
}

static void
tell(const struct reshard *x)
{
    uint64_t bytes = 0;
    char text[32];

    for (uint32_t k = 0; k < moe_grid_ranks(&x->set.grid); k++)
        bytes += moved(x, k);
    moe_tool_warn("%zu tensors for %u ranks; %s that a rank of that number did not have",
        x->set.n, (unsigned)moe_grid_ranks(&x->set.grid),
        moe_num_human(text, sizeof(text), bytes));
}

static int
reshard(struct reshard *x, const struct shard_cut_options *o, int dir, const char *dst,
    struct moe_err *e)
{
    const struct moe_config *config = x->set.config.tree != NULL ? &x->set.config : NULL;
    enum shard_ranks_layout old_layout = x->set.layout;
    struct shard_set before = x->set;
    int rc;

    /* The old plan keeps the old grid; all else of the set is the new one's too. */
    x->old_grid = x->set.grid;
    before.grid = x->old_grid;
    if ((rc = shard_cut_plan(&before, config, x->path, &x->old, e)) != 0)
        return rc;
    x->old.grid = &x->old_grid;
    for (size_t i = 0; i < x->old.n; i++)
        x->old.items[i].scatter.grid = &x->old_grid;
    if ((rc = shard_cut_grid(o, config, &x->set, e)) != 0 ||
        (rc = shard_cut_plan(&x->set, config, x->path, &x->plan, e)) != 0)
        return rc;
    if (o->dry)
        return print(x, o->json, e);
    rc = write_set(x, o, old_layout, dir, dst, e);
    if (rc == 0 && !o->quiet)
        tell(x);
    return rc;
}

int
shard_reshard(int argc, char **argv, struct moe_err *e)
{
    struct shard_cut_options o = SHARD_CUT_DEFAULTS;
    struct reshard x = { .path = NULL };
    bool done;
    int first, n, dir, rc = moe_opt_parse(&shard_reshard_cmd, argc, argv, option, &o, &first,
        &done, e);

    if (rc != 0 || done)
        return rc;
    n = argc - first;
    if (n != 2 && !(o.dry && n == 1))
        return moe_err_set(e, MOE_EUSAGE, "SRC and DST are wanted, %d operands are given", n);
    if (o.json && !o.dry)
        return moe_err_set(e, MOE_EUSAGE, "--json goes with -n");
    x.path = argv[first];
    if ((dir = moe_beneath_dir(x.path, e)) < 0)
        return dir;
    if ((rc = shard_set_read(dir, x.path, &x.set, e)) == 0)
        rc = reshard(&x, &o, dir, argv[first + 1], e);
    moe_cutplan_free(&x.plan);
    moe_cutplan_free(&x.old);
    moe_grid_fini(&x.old_grid);
    shard_set_fini(&x.set);
    (void)close(dir);
    if (rc != 0 && atomic_load(&x.from.differs)) {
        moe_tool_warn("%s", e->text);
        return MOE_EXIT_NO;
    }
    return rc;
}
