/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the comparison of two models: which matrices belong together, and the
 * lines. The figures are those of the report.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_diff.h"
#include "cmd/moe-quant/quant_report.h"
#include "cmd/moe-quant/quant_walk.h"
#include "kernels/kernels.h"

struct desk { struct quant_scratch scratch; float *y; };

struct run {
    struct quant_walk a, b;
    size_t *pair;               /* [items of a]: item of b, SIZE_MAX: none or another shape */
    struct quant_stats *stats;
    bool *found;                /* [items of b] */
    struct desk *desks;
};

/* ---- Pairs -------------------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
    return strcmp((*(const struct quant_plan_item *const *)a)->name,
        (*(const struct quant_plan_item *const *)b)->name);
}

/* A matrix may be copied in one model (NAME.weight) and be decoded in the other (NAME). */
static const char *
key(const struct quant_plan_item *x, char *buf, size_t size)
{
    size_t n = strlen(x->name);

    if (x->scheme.codec != NULL || n >= size || n <= 7 || strcmp(x->name + n - 7, ".weight") != 0)
        return x->name;
    memcpy(buf, x->name, n - 7);
    buf[n - 7] = '\0';
    return buf;
}

static bool
same_shape(const struct quant_plan_item *x, const struct quant_plan_item *y)
{
    if ((x->scheme.codec == NULL) != (y->scheme.codec == NULL))
        return false;
    if (x->scheme.codec != NULL)
        return x->rows == y->rows && x->cols == y->cols;
    return x->len / moe_dtype_bits(x->dtype) == y->len / moe_dtype_bits(y->dtype) &&
        moe_dtype_is_float(x->dtype) == moe_dtype_is_float(y->dtype);
}

static int
make_pairs(struct run *r, struct moe_err *e)
{
    const struct quant_plan *a = &r->a.plan, *b = &r->b.plan;
    const struct quant_plan_item **list = malloc((b->n + 1) * sizeof(*list));

    r->pair = malloc((a->n + 1) * sizeof(*r->pair));
    r->stats = calloc(a->n + 1, sizeof(*r->stats));
    r->found = calloc(b->n + 1, sizeof(*r->found));
    if (list == NULL || r->pair == NULL || r->stats == NULL || r->found == NULL) {
        free(list);
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < b->n; i++)
        list[i] = &b->items[i];
    qsort(list, b->n, sizeof(*list), compare);
    for (size_t i = 0; i < a->n; i++) {
        const struct quant_plan_item *x = &a->items[i], **y;

        y = bsearch(&x, list, b->n, sizeof(*list), compare);
        r->pair[i] = SIZE_MAX;
        if (y == NULL)
            continue;
        r->found[*y - b->items] = true;
        if (same_shape(x, *y))
            r->pair[i] = (size_t)(*y - b->items);
    }
    free(list);
    return 0;
}

/* ---- Values ------------------------------------------------------------------- */

static int
see(void *ctx, int worker, size_t i, uint64_t row, size_t n, float *x, struct moe_err *e)
{
    struct run *r = ctx;
    struct desk *d = &r->desks[worker];
    struct quant_stats *t = &r->stats[i];
    double err[3] = { 0, 0, 0 }, own[3] = { 0, 0, 0 };
    int rc;

    if (r->pair[i] == SIZE_MAX || x == NULL)
        return 0;
    if ((rc = quant_walk_values(&r->b, r->pair[i], row, n, &d->scratch, d->y, e)) != 0)
        return rc;
    moe_kernels()->err_f32(err, x, d->y, n);
    moe_kernels()->err_f32(own, d->y, d->y, n);
    t->xx += err[0];
    t->ee += err[1];
    t->max_err = fmax(t->max_err, err[2]);
    t->yy += own[0];
    t->values += n;
    return 0;
}

/* ---- Lines -------------------------------------------------------------------- */

static void
text(struct moe_jsonw *w, const char *name, const char *s)
{
    moe_jsonw_key(w, name);
    moe_jsonw_str(w, s, strlen(s));
}

static const char *
stored(const struct quant_plan_item *x)
{
    return x->scheme.codec == NULL || x->in.m.enc == MOE_ENC_PLAIN ? moe_dtype_name(x->dtype) :
        moe_qmat_enc_name(x->in.m.enc);
}

static void
figures(struct moe_jsonw *w, const struct quant_stats *s)
{
    double both = sqrt(s->xx * s->yy);

    moe_jsonw_key(w, "sqnr_db");
    moe_jsonw_real(w, quant_report_sqnr(s));
    moe_jsonw_key(w, "max_abs_err");
    moe_jsonw_real(w, s->max_err);
    moe_jsonw_key(w, "rel_rms");
    moe_jsonw_real(w, s->xx > 0 ? sqrt(s->ee / s->xx) : 0);
    moe_jsonw_key(w, "cosine");
    moe_jsonw_real(w, both > 0 ? fmin((s->xx + s->yy - s->ee) / 2 / both, 1) : 1);
}

static void
line(struct moe_buf *b, const struct quant_plan_item *x, const struct quant_plan_item *y,
    const struct quant_stats *s)
{
    struct moe_jsonw w = { b, false };
    char buf[1024];

    moe_jsonw_open(&w, '{');
    text(&w, "name", key(x, buf, sizeof(buf)));
    text(&w, "role", moe_naming_role(x->role));
    if (x->layer >= 0) {
        moe_jsonw_key(&w, "layer");
        moe_jsonw_uint(&w, (uint64_t)x->layer);
    }
    if (x->expert >= 0) {
        moe_jsonw_key(&w, "expert");
        moe_jsonw_uint(&w, (uint64_t)x->expert);
    }
    if (y == NULL) {
        text(&w, "fault", "not in both, or of another shape");
    } else {
        text(&w, "a", stored(x));
        text(&w, "b", stored(y));
        figures(&w, s);
    }
    moe_jsonw_close(&w, '}');
    moe_buf_byte(b, '\n');
}

static int
lines(struct run *r, double gate, struct moe_buf *out)
{
    struct moe_jsonw w = { out, false };
    struct quant_stats all = { .values = 0 };
    uint64_t faults = 0, worse = 0, differ = 0;

    for (size_t i = 0; i < r->a.plan.n; i++) {
        const struct quant_plan_item *x = &r->a.plan.items[i];
        bool paired = r->pair[i] != SIZE_MAX;

        line(out, x, paired ? &r->b.plan.items[r->pair[i]] : NULL, &r->stats[i]);
        faults += !paired;
        quant_encode_merge(&all, &r->stats[i]);
        differ += paired && r->stats[i].ee > 0;
        worse += paired && gate > 0 && !(quant_report_sqnr(&r->stats[i]) >= gate);
    }
    for (size_t i = 0; i < r->b.plan.n; i++) {
        if (r->found[i])
            continue;
        line(out, &r->b.plan.items[i], NULL, NULL);
        faults++;
    }
    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "summary");
    moe_jsonw_bool(&w, true);
    moe_jsonw_key(&w, "differ");
    moe_jsonw_uint(&w, differ);
    moe_jsonw_key(&w, "faults");
    moe_jsonw_uint(&w, faults);
    moe_jsonw_key(&w, "under_gate");
    moe_jsonw_uint(&w, worse);
    figures(&w, &all);
    moe_jsonw_close(&w, '}');
    moe_buf_byte(out, '\n');
    return faults + worse > 0;
}

int
quant_diff_models(const char *a, const char *b, const struct quant_diff_options *opt,
    struct moe_buf *out, struct moe_err *e)
{
    struct run r = { .pair = NULL };
    size_t threads = (size_t)moe_pool_size(opt->pool);
    struct moe_progress progress;
    int rc;

    moe_progress_start(&progress, "comparing", 0, opt->quiet);
    if ((rc = quant_walk_open(a, NULL, &r.a, e)) != 0 ||
        (rc = quant_walk_open(b, NULL, &r.b, e)) != 0 ||
        (rc = make_pairs(&r, e)) != 0)
        goto out;
    progress.total = moe_source_bytes(r.a.s);
    if ((r.desks = calloc(threads, sizeof(*r.desks))) == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < threads; i++) {
        if ((r.desks[i].y = malloc(quant_walk_most(&r.a) * sizeof(float))) == NULL)
            rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    }
    if (rc == 0)
        rc = quant_walk_run(&r.a, opt->pool, &progress, see, &r, e);
    if (rc == 0)
        rc = lines(&r, opt->gate, out);
    if (out->bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
out:
    moe_progress_end(&progress);
    for (size_t i = 0; r.desks != NULL && i < threads; i++) {
        quant_input_scratch_fini(&r.desks[i].scratch);
        free(r.desks[i].y);
    }
    free(r.desks);
    free(r.pair);
    free(r.stats);
    free(r.found);
    quant_walk_close(&r.a);
    quant_walk_close(&r.b);
    return rc;
}
