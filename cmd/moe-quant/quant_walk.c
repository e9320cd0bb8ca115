/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns going through all values of a model. What is done with them is the
 * caller's.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_tile.h"
#include "cmd/moe-quant/quant_walk.h"
#include "common/base/stop.h"

#define PIECE ((uint64_t)32 << 10)  /* values of what is no matrix */

int
quant_walk_open(const char *path, const char *lora, struct quant_walk *w,
    struct moe_err *e)
{
    const struct quant_codec *f32 = quant_scheme_find("f32");
    const struct quant_plan_options opt = { .plain = true, .lora_dir = lora,
        .policy = { .format = f32, .shared = f32, .rest = f32, .group = QUANT_POLICY_AUTO } };
    int rc;

    w->plan = (struct quant_plan){ .n = 0 };
    if ((rc = moe_source_open(path, &w->s, e)) != 0)
        return rc;
    if (moe_source_is_stream(w->s))
        return moe_err_set(e, MOE_EUNSUP, "%s: a stream: give a file", path);
    return quant_plan_make(w->s, "x.safetensors", &opt, &w->plan, e);
}

void
quant_walk_close(struct quant_walk *w)
{
    quant_plan_free(&w->plan);
    moe_source_close(w->s);
}

static uint64_t
most_values(const struct quant_plan_item *x)
{
    return x->scheme.codec != NULL ? quant_tile_rows(x) * x->cols : PIECE;
}

size_t
quant_walk_most(const struct quant_walk *w)
{
    uint64_t n = PIECE;

    for (size_t i = 0; i < w->plan.n; i++)
        n = most_values(&w->plan.items[i]) > n ? most_values(&w->plan.items[i]) : n;
    return (size_t)n;
}

int
quant_walk_values(struct quant_walk *w, size_t i, uint64_t row, size_t n,
    struct quant_scratch *scratch, float *x, struct moe_err *e)
{
    const struct quant_plan_item *t = &w->plan.items[i];
    uint64_t size = moe_dtype_bits(t->dtype) / 8;
    void *raw;
    int rc;

    if (t->scheme.codec != NULL) {
        rc = quant_input_rows(w->s, &t->in, t->name, row, n / t->cols, scratch, x, e);
        return rc != 0 || t->lora == 0 ? rc : quant_lora_apply(w->plan.lora, t->lora, row,
            n / t->cols, t->cols, scratch, x, e);
    }
    if ((raw = quant_input_scratch(scratch, 0, n * (size_t)size)) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    if ((rc = moe_source_read(w->s, t->src, row * size, raw, n * (size_t)size, e)) == 0)
        (void)moe_dtype_to_f32(t->dtype, raw, n, x);
    return rc;
}

struct run {
    struct quant_walk *w;
    struct moe_progress *progress;
    quant_walk_fn *fn;
    void *ctx;
    struct quant_scratch *scratch;  /* [threads] */
    float **x;
    pthread_mutex_t lock;
    size_t failed;              /* the first item that did; SIZE_MAX: none */
    int rc;
    struct moe_err err;
};

static void
fail(struct run *r, size_t i, int rc, const struct moe_err *e)
{
    pthread_mutex_lock(&r->lock);
    if (i < r->failed) {
        r->failed = i;
        r->rc = rc;
        r->err = *e;
    }
    pthread_mutex_unlock(&r->lock);
}

static void
job(void *ctx, size_t i, int worker)
{
    struct run *r = ctx;
    const struct quant_plan_item *t = &r->w->plan.items[i];
    uint64_t all, step, row = 0;
    struct moe_err e = { 0, "" };
    int rc = 0;

    if (t->scheme.codec != NULL) {
        all = t->rows;
        step = quant_tile_rows(t);
    } else {
        all = moe_dtype_is_float(t->dtype) && moe_dtype_bits(t->dtype) >= 8 ?
            t->len / (moe_dtype_bits(t->dtype) / 8) : 0;
        step = PIECE;
        if (all == 0)
            rc = r->fn(r->ctx, worker, i, 0, 0, NULL, &e);
    }
    for (; rc == 0 && row < all && i < r->failed; row += step) {
        size_t n = (size_t)(all - row < step ? all - row : step);

        n *= t->scheme.codec != NULL ? (size_t)t->cols : 1;
        if ((rc = moe_stop_check(&e)) == 0 && (rc = quant_walk_values(r->w, i, row, n,
            &r->scratch[worker], r->x[worker], &e)) == 0)
            rc = r->fn(r->ctx, worker, i, row, n, r->x[worker], &e);
    }
    if (rc != 0)
        fail(r, i, rc, &e);
    moe_progress_add(r->progress, t->len);
}

int
quant_walk_run(struct quant_walk *w, struct moe_pool *pool, struct moe_progress *progress,
    quant_walk_fn *fn, void *ctx, struct moe_err *e)
{
    struct run r = { .w = w, .progress = progress, .fn = fn, .ctx = ctx, .failed = SIZE_MAX,
        .lock = PTHREAD_MUTEX_INITIALIZER };
    size_t threads = (size_t)moe_pool_size(pool);
    int rc = 0;

    r.scratch = calloc(threads, sizeof(*r.scratch));
    r.x = calloc(threads, sizeof(*r.x));
    if (r.scratch == NULL || r.x == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < threads; i++) {
        if ((r.x[i] = malloc(quant_walk_most(w) * sizeof(float))) == NULL)
            rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    }
    if (rc == 0) {
        moe_pool_run(pool, w->plan.n, job, &r);
        if (r.failed != SIZE_MAX)
            rc = moe_err_set(e, r.rc, "%s", r.err.text);
    }
    for (size_t i = 0; i < threads; i++) {
        if (r.scratch != NULL)
            quant_input_scratch_fini(&r.scratch[i]);
        if (r.x != NULL)
            free(r.x[i]);
    }
    free(r.scratch);
    free(r.x);
    return rc;
}
