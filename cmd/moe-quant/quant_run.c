/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the flow of data: tiles in batches through the pool, results written in
 * order. While one batch is computed, the one before is written.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_report.h"
#include "cmd/moe-quant/quant_run.h"
#include "common/base/stop.h"

#define MEMORY ((size_t)32 << 20)   /* input bytes of the tiles of a batch */
#define MIN_TILES 64
#define MAX_TILES 512

struct batch { struct quant_tile *tiles; size_t n; };

struct run {
    struct moe_source *s;
    const struct quant_plan *p;
    struct moe_sink *sink;
    const struct quant_run_options *opt;
    size_t cap, tiles;          /* bytes of a tile's input, tiles of a batch */
    struct batch batch[2];
    struct batch *now, *before;     /* computed, written; before may be NULL */
    size_t item;                /* the next tile to hand out */
    uint64_t at;
    uint16_t *scales;           /* of the matrix that is being written */
    size_t n_scales;
    struct quant_tile_stats stats, all;
    int write_rc;
    struct moe_err write_err;
};

/* ---- Cutting ---------------------------------------------------------------- */

static uint64_t
row_bytes(const struct quant_plan_item *x)
{
    return x->cols * (moe_dtype_bits(x->dtype) / 8);
}

/* The next tile of the plan; false past the last. An empty tensor is one tile. */
static bool
next_tile(struct run *r, struct quant_tile *t)
{
    const struct quant_plan_item *x;
    uint64_t left, len = QUANT_TILE_BYTES;

    if (r->item == r->p->n)
        return false;
    x = &r->p->items[r->item];
    left = x->len - r->at;
    if (x->quantised)
        len = row_bytes(x) >= len ? row_bytes(x) : len - len % row_bytes(x);
    if (len > left)
        len = left;
    t->item = x;
    t->at = r->at;
    t->len = (size_t)len;
    t->row = x->quantised ? r->at / row_bytes(x) : 0;
    t->rows = x->quantised ? len / row_bytes(x) : 0;
    t->last = len == left;
    t->bad = 0;
    t->rc = 0;
    t->stats = (struct quant_tile_stats){ .values = 0 };
    r->at += len;
    if (t->last) {
        r->item++;
        r->at = 0;
    }
    return true;
}

/* ---- Working ---------------------------------------------------------------- */

static int
read_tile(struct run *r, struct quant_tile *t)
{
    if (t->len == 0)
        return 0;
    return t->rc = moe_source_read(r->s, t->item->src, t->item->at + t->at, t->in, t->len,
        &t->err);
}

static int
write_matrix_end(struct run *r, const struct quant_plan_item *x, struct moe_err *e)
{
    uint64_t shape[2] = { x->rows, x->cols };   /* two I64, little-endian as everything */
    struct moe_buf b = MOE_BUF_INIT;
    int rc;

    if ((rc = moe_sink_write(r->sink, r->scales, r->n_scales * sizeof(*r->scales), e)) != 0 ||
        (rc = moe_sink_write(r->sink, shape, sizeof(shape), e)) != 0)
        return rc;
    r->n_scales = 0;
    quant_tile_merge(&r->all, &r->stats);
    if (r->opt->report != NULL) {
        quant_report_item(&b, r->s, r->p, x, &r->stats);
        rc = b.bad ? moe_err_set(e, MOE_ENOMEM, "report: out of memory") :
            moe_out_write(r->opt->report, b.p, b.len, e);
        moe_buf_fini(&b);
    }
    r->stats = (struct quant_tile_stats){ .values = 0 };
    return rc;
}

static int
write_tile(struct run *r, const struct quant_tile *t, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    size_t k;
    int rc;

    moe_progress_add(r->opt->progress, t->len);
    if (t->item->quantised) {
        k = quant_tile_scales(t);
        memcpy(r->scales + r->n_scales, t->scales, k * sizeof(*t->scales));
        r->n_scales += k;
        quant_tile_merge(&r->stats, &t->stats);
        rc = moe_sink_write(r->sink, t->codes, quant_tile_codes(t, r->p->opt.bits), e);
        return rc == 0 && t->last ? write_matrix_end(r, t->item, e) : rc;
    }
    if ((rc = moe_sink_write(r->sink, t->in, t->len, e)) != 0 || !t->last ||
        r->opt->report == NULL)
        return rc;
    quant_report_item(&b, r->s, r->p, t->item, NULL);
    rc = b.bad ? moe_err_set(e, MOE_ENOMEM, "report: out of memory") :
        moe_out_write(r->opt->report, b.p, b.len, e);
    moe_buf_fini(&b);
    return rc;
}

/* Job 0 writes the batch before; the others each compute a tile. */
static void
job(void *ctx, size_t i, int worker)
{
    struct run *r = ctx;
    struct quant_tile *t;

    (void)worker;
    if (i == 0) {
        for (size_t k = 0; r->before != NULL && r->write_rc == 0 && k < r->before->n; k++)
            r->write_rc = write_tile(r, &r->before->tiles[k], &r->write_err);
        return;
    }
    t = &r->now->tiles[i - 1];
    if (!moe_source_is_stream(r->s) && read_tile(r, t) != 0)
        return;
    if (t->item->quantised)
        quant_tile_work(t, r->p->opt.bits, r->opt->report != NULL);
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
        quant_tile_work(more, r->p->opt.bits, false);
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
    uint64_t at = t->row * x->cols + quant_tile_first_bad(t), bad = 0;
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
    size_t scales = 0, threads = (size_t)moe_pool_size(r->opt->pool);

    r->cap = QUANT_TILE_BYTES;
    for (size_t i = 0; i < r->p->n; i++) {
        const struct quant_plan_item *x = &r->p->items[i];

        if (!x->quantised)
            continue;
        if (row_bytes(x) > r->cap)
            r->cap = (size_t)row_bytes(x);
        if (x->rows * (x->cols / x->group) > scales)
            scales = (size_t)(x->rows * (x->cols / x->group));
    }
    r->tiles = 16 * threads < MIN_TILES ? MIN_TILES : 16 * threads;
    if (r->tiles > MAX_TILES)
        r->tiles = MAX_TILES;
    if (r->tiles > MEMORY / r->cap)
        r->tiles = MEMORY / r->cap;
    if ((r->scales = malloc((scales + 1) * sizeof(*r->scales))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (int k = 0; k < 2; k++) {
        struct batch *b = &r->batch[k];

        if ((b->tiles = calloc(r->tiles, sizeof(*b->tiles))) == NULL)
            return moe_err_set(e, MOE_ENOMEM, "out of memory");
        for (size_t i = 0; i < r->tiles; i++) {
            int rc = quant_tile_init(&b->tiles[i], r->cap, e);

            if (rc != 0)
                return rc;
        }
    }
    return 0;
}

static void
teardown(struct run *r)
{
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; r->batch[k].tiles != NULL && i < r->tiles; i++)
            quant_tile_fini(&r->batch[k].tiles[i]);
        free(r->batch[k].tiles);
    }
    free(r->scales);
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
quant_run(struct moe_source *s, const struct quant_plan *p, struct moe_sink *sink,
    const struct quant_run_options *opt, struct moe_err *e)
{
    struct run r = { .s = s, .p = p, .sink = sink, .opt = opt };
    struct moe_buf b = MOE_BUF_INIT;
    int rc = setup(&r, e), k = 0;

    do {
        if (rc == 0)
            rc = step(&r, &r.batch[k], r.now, e);
        k = 1 - k;
    } while (rc == 0 && r.now->n > 0);
    if (rc == 0 && opt->report != NULL) {
        quant_report_summary(&b, p, &r.all);
        rc = b.bad ? moe_err_set(e, MOE_ENOMEM, "report: out of memory") :
            moe_out_write(opt->report, b.p, b.len, e);
    }
    moe_buf_fini(&b);
    teardown(&r);
    return rc;
}
