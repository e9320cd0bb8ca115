/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the flow of data: tiles in batches through the pool, results written in
 * order. While one batch is computed, the one before is written.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_report.h"
#include "cmd/moe-quant/quant_run.h"
#include "common/base/stop.h"
#include "kernels/kernels.h"

#define MEMORY ((size_t)32 << 20)   /* input bytes of the tiles of a batch */
#define MIN_TILES 64
#define MAX_TILES 512

struct batch { struct quant_tile *tiles; size_t n; };

struct run {
    struct moe_source *s;
    struct quant_plan *p;
    struct moe_sink *sink;
    const struct quant_run_options *opt;
    struct quant_tile_caps caps;
    size_t tiles;               /* of a batch */
    struct quant_desk *desks;   /* one a thread */
    struct batch batch[2];
    struct batch *now, *before;     /* computed, written; before may be NULL */
    size_t item;                /* the next tile to hand out: a row, or a byte of what is copied */
    uint64_t at;
    struct moe_buf scales, zeros;   /* of the matrix that is being written */
    struct quant_stats stats;
    float *found;               /* [items] largest magnitudes, in the first pass */
    int *found_rc;
    int write_rc;
    struct moe_err write_err;
};

/* ---- Cutting ---------------------------------------------------------------- */

/* The next tile of the plan; false past the last. An empty tensor is one tile. */
static bool
next_tile(struct run *r, struct quant_tile *t)
{
    const struct quant_plan_item *x;
    uint64_t left, n;

    if (r->item == r->p->n)
        return false;
    x = &r->p->items[r->item];
    t->item = x;
    t->bad = 0;
    t->rc = 0;
    t->stats = (struct quant_stats){ .values = 0 };
    t->at = t->row = r->at;
    if (x->scheme.codec == NULL) {
        left = x->len - r->at;
        n = left < QUANT_TILE_BYTES ? left : QUANT_TILE_BYTES;
        t->len = (size_t)n;
    } else {
        left = x->rows - r->at;
        n = quant_tile_rows(x);
        n = n < left ? n : left;
        t->rows = n;
        t->len = (size_t)(x->len / x->rows * n);
    }
    t->last = n == left;
    r->at += n;
    if (t->last) {
        r->item++;
        r->at = 0;
    }
    return true;
}

/* ---- Working ---------------------------------------------------------------- */

/* What lies as plain bytes is read ahead of the work on it. */
static int
read_tile(struct run *r, struct quant_tile *t)
{
    const struct quant_plan_item *x = t->item;
    uint64_t at = t->at;

    if (t->len == 0 || (x->scheme.codec != NULL && !quant_input_direct(&x->in)))
        return 0;
    if (x->scheme.codec != NULL)
        at = x->in.data.at + (x->in.first + t->row) * x->cols * moe_dtype_bits(x->dtype) / 8;
    return t->rc = moe_source_read(r->s, x->src, at, t->in, t->len, &t->err);
}

static int
report(struct run *r, const struct quant_plan_item *x, const struct quant_stats *stats,
    struct moe_err *e)
{
    if (r->opt->report == NULL)
        return 0;
    return quant_report_item(r->opt->report, r->s, r->p, x, stats, e);
}

/* The next bytes of the output. */
static int
emit(struct run *r, const void *p, size_t n, struct moe_err *e)
{
    if (r->opt->journal != NULL)
        quant_journal_add(r->opt->journal, p, n);
    return moe_sink_write(r->sink, p, n, e);
}

/* An item is written: what the journal promises has to be on disk first. */
static int
finish(struct run *r, const struct quant_plan_item *x, struct moe_err *e)
{
    bool due = false;
    int rc = 0;

    if (r->opt->journal != NULL &&
        (rc = quant_journal_item(r->opt->journal, x->name, &due, e)) == 0 && due &&
        (rc = moe_sink_sync(r->sink, e)) == 0)
        rc = quant_journal_promise(r->opt->journal, e);
    return rc;
}

/* The parts that come after the codes. */
static int
write_rest(struct run *r, const struct quant_plan_item *x, struct moe_err *e)
{
    uint64_t shape[2] = { x->rows, x->cols };   /* two I64, little-endian as everything */
    struct quant_part part[QUANT_SCHEME_PARTS];
    size_t n = quant_scheme_parts(&x->scheme, x->rows, x->cols, part);
    float global = x->redeal ? x->in.m.global : 0;
    int rc = 0;

    for (size_t k = 1; rc == 0 && k < n; k++) {
        if (k == 1) {
            rc = emit(r, r->scales.p, r->scales.len, e);
        } else if (part[k].dtype == MOE_I64) {
            rc = emit(r, shape, sizeof(shape), e);
        } else if (part[k].dtype == MOE_F32) {
            global = x->redeal ? global : quant_encode_global(r->p->ranges[x->range]);
            rc = emit(r, &global, sizeof(global), e);
        } else {
            uint32_t *zeros = malloc((size_t)part[k].bytes + 1);

            if (zeros == NULL)
                return moe_err_set(e, MOE_ENOMEM, "out of memory");
            quant_encode_zeros(zeros, (const int8_t *)r->zeros.p, x->rows, part[k].shape[1],
                x->scheme.codec->bits);
            rc = emit(r, zeros, (size_t)part[k].bytes, e);
            free(zeros);
        }
    }
    moe_buf_clear(&r->scales);
    moe_buf_clear(&r->zeros);
    return rc;
}

static int
write_rows(struct run *r, const struct quant_tile *t, struct moe_err *e)
{
    const struct quant_plan_item *x = t->item;
    uint64_t scales = quant_scheme_scales(&x->scheme, t->rows, x->cols);
    int rc = emit(r, t->data,
        (size_t)t->rows * quant_encode_row(&x->scheme, x->cols), e);

    if (x->scheme.codec->rows == 0 && t->row > 0)
        scales = 0;             /* the one of the whole matrix is there */
    moe_buf_add(&r->scales, t->scale, (size_t)scales * quant_encode_scale(&x->scheme));
    if (x->scheme.asym)
        moe_buf_add(&r->zeros, t->zero, (size_t)scales);
    if (r->scales.bad || r->zeros.bad)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    quant_encode_merge(&r->stats, &t->stats);
    if (rc != 0 || !t->last)
        return rc;
    if ((rc = write_rest(r, x, e)) == 0 && (rc = finish(r, x, e)) == 0)
        rc = report(r, x, &r->stats, e);
    r->stats = (struct quant_stats){ .values = 0 };
    return rc;
}

static int
write_tile(struct run *r, const struct quant_tile *t, struct moe_err *e)
{
    int rc;

    moe_progress_add(r->opt->progress, t->len);
    if (t->item->scheme.codec != NULL)
        return write_rows(r, t, e);
    if ((rc = emit(r, t->in, t->len, e)) != 0 || !t->last)
        return rc;
    return (rc = finish(r, t->item, e)) != 0 ? rc : report(r, t->item, NULL, e);
}

/* Job 0 writes the batch before; the others each compute a tile. */
static void
job(void *ctx, size_t i, int worker)
{
    struct run *r = ctx;
    struct quant_tile *t;

    if (i == 0) {
        for (size_t k = 0; r->before != NULL && r->write_rc == 0 && k < r->before->n; k++)
            r->write_rc = write_tile(r, &r->before->tiles[k], &r->write_err);
        return;
    }
    t = &r->now->tiles[i - 1];
    if (!moe_source_is_stream(r->s) && read_tile(r, t) != 0)
        return;
    if (t->item->scheme.codec != NULL)
        quant_tile_work(t, r->s, r->p, r->opt->report != NULL, &r->desks[worker]);
}

/* ---- Ranges ------------------------------------------------------------------- */

/* Job i: the largest magnitude of item i, if it needs one. */
static void
range_job(void *ctx, size_t i, int worker)
{
    struct run *r = ctx;
    struct quant_tile *t = &r->batch[0].tiles[worker];
    const struct quant_plan_item *x = &r->p->items[i];
    float mm[2], most = 0;

    if (!quant_scheme_needs_range(&x->scheme) || x->redeal || r->found_rc[i] != 0)
        return;
    *t = (struct quant_tile){ .item = x, .in = t->in, .data = t->data, .scale = t->scale,
        .zero = t->zero };
    for (uint64_t row = 0; row < x->rows && moe_stop_signal() == 0; row += t->rows) {
        t->row = t->at = row;
        t->rows = quant_tile_rows(x);
        if (t->rows > x->rows - row)
            t->rows = x->rows - row;
        t->len = (size_t)(x->len / x->rows * t->rows);
        if (read_tile(r, t) != 0 ||
            quant_tile_load(t, r->s, r->p, &r->desks[worker]) != 0) {
            r->found_rc[i] = t->rc;
            return;
        }
        (void)moe_kernels()->range_f32(mm, r->desks[worker].x, (size_t)(t->rows * x->cols));
        most = fmaxf(most, fmaxf(-mm[0], mm[1]));
    }
    r->found[i] = most;
}

/* The first pass, for schemes that need it: what is unreadable is told by the second. */
static int
find_ranges(struct run *r, struct moe_err *e)
{
    int rc = 0;

    if (r->p->n_ranges == 0)
        return 0;
    r->found = calloc(r->p->n, sizeof(*r->found));
    r->found_rc = calloc(r->p->n, sizeof(*r->found_rc));
    if (r->found == NULL || r->found_rc == NULL) {
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    } else {
        moe_pool_run(r->opt->pool, r->p->n, range_job, r);
        rc = moe_stop_check(e);
        for (size_t i = 0; i < r->p->n; i++) {
            float *to = &r->p->ranges[r->p->items[i].range];

            *to = fmaxf(*to, r->found[i]);
        }
    }
    free(r->found);
    free(r->found_rc);
    return rc;
}

/* ---- NaN and infinity --------------------------------------------------------- */

/* Count what is bad in the rest of t's matrix, which ends with it. */
static int
count_rest(struct run *r, const struct quant_tile *t, const struct batch *b, uint64_t *bad,
    struct moe_err *e)
{
    struct quant_tile *more = &r->batch[b == &r->batch[0]].tiles[0];
    int rc;

    for (const struct quant_tile *u = t; u < b->tiles + b->n; u++) {
        if (u->item != t->item)
            return 0;
        *bad += u->bad;
        if (u->last)
            return 0;
    }
    do {
        if (!next_tile(r, more))
            return 0;
        if ((rc = read_tile(r, more)) != 0)
            return moe_err_set(e, rc, "%s", more->err.text);
        quant_tile_work(more, r->s, r->p, false, &r->desks[0]);
        *bad += more->bad;
    } while (!more->last);
    return 0;
}

static int
bad_values(struct run *r, const struct quant_tile *t, const struct batch *b, struct moe_err *e)
{
    const struct quant_plan_item *x = t->item;
    const struct moe_tensor *whole = moe_source_at(r->s, x->src);
    bool part = x->len < whole->end - whole->begin;     /* one matrix of a stack */
    uint64_t at = t->row * x->cols + t->first_bad, bad = 0;
    int rc = count_rest(r, t, b, &bad, e);

    if (rc != 0)
        return rc;
    return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: %llu values are NaN or infinite, the first"
        " at [%llu, %llu]%s%s", moe_source_path(r->s), whole->name, (unsigned long long)bad,
        (unsigned long long)(at / x->cols), (unsigned long long)(at % x->cols),
        part ? " of " : "", part ? x->name : "");
}

/* The first fault of a batch, in order. */
static int
check_batch(struct run *r, const struct batch *b, struct moe_err *e)
{
    if (r->write_rc != 0)
        return moe_err_set(e, r->write_rc, "%s", r->write_err.text);
    for (size_t k = 0; k < b->n; k++) {
        const struct quant_tile *t = &b->tiles[k];

        if (t->rc != 0)
            return moe_err_set(e, t->rc, "%s", t->err.text);
        if (t->bad > 0)
            return bad_values(r, t, b, e);
    }
    return moe_stop_check(e);
}

/* ---- The whole ---------------------------------------------------------------- */

static int
setup(struct run *r, struct moe_err *e)
{
    size_t threads = (size_t)moe_pool_size(r->opt->pool), each;
    int rc = 0;

    for (size_t i = 0; i < r->p->n; i++)
        quant_tile_need(&r->caps, &r->p->items[i]);
    each = r->caps.in + r->caps.data + r->caps.scale + r->caps.zero + 64;
    r->tiles = 16 * threads < MIN_TILES ? MIN_TILES : 16 * threads;
    if (r->tiles > MAX_TILES)
        r->tiles = MAX_TILES;
    if (r->tiles > MEMORY / each)
        r->tiles = MEMORY / each;
    if (r->tiles < threads)     /* the first pass has one a thread */
        r->tiles = threads;
    if ((r->desks = calloc(threads, sizeof(*r->desks))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < threads; i++)
        rc = quant_tile_desk(&r->desks[i], &r->caps, r->opt->report != NULL, e);
    for (int k = 0; rc == 0 && k < 2; k++) {
        struct batch *b = &r->batch[k];

        if ((b->tiles = calloc(r->tiles, sizeof(*b->tiles))) == NULL)
            return moe_err_set(e, MOE_ENOMEM, "out of memory");
        for (size_t i = 0; rc == 0 && i < r->tiles; i++)
            rc = quant_tile_init(&b->tiles[i], &r->caps, e);
    }
    return rc;
}

static void
teardown(struct run *r)
{
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; r->batch[k].tiles != NULL && i < r->tiles; i++)
            quant_tile_fini(&r->batch[k].tiles[i]);
        free(r->batch[k].tiles);
    }
    for (int i = 0; r->desks != NULL && i < moe_pool_size(r->opt->pool); i++)
        quant_tile_desk_fini(&r->desks[i]);
    free(r->desks);
    moe_buf_fini(&r->scales);
    moe_buf_fini(&r->zeros);
}

/* Cut and compute batch b while `before` is written. */
static int
step(struct run *r, struct batch *b, struct batch *before, struct moe_err *e)
{
    for (b->n = 0; b->n < r->tiles && next_tile(r, &b->tiles[b->n]); b->n++) {
        struct quant_tile *t = &b->tiles[b->n];

        if (moe_source_is_stream(r->s) && read_tile(r, t) != 0)
            return moe_err_set(e, t->rc, "%s", t->err.text);
    }
    r->now = b;
    r->before = before;
    moe_pool_run(r->opt->pool, b->n + 1, job, r);
    return check_batch(r, b, e);
}

int
quant_run(struct moe_source *s, struct quant_plan *p, struct moe_sink *sink,
    const struct quant_run_options *opt, struct moe_err *e)
{
    struct run r = { .s = s, .p = p, .sink = sink, .opt = opt, .item = opt->first };
    int rc = setup(&r, e), k = 0;

    if (rc == 0)
        rc = find_ranges(&r, e);
    do {
        if (rc == 0)
            rc = step(&r, &r.batch[k], r.now, e);
        k = 1 - k;
    } while (rc == 0 && r.now->n > 0);
    teardown(&r);
    return rc;
}
