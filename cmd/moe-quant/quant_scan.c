/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns looking at the values of a model: what is counted, the lines and the
 * verdicts. What the limit should be is the user's to say.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_scan.h"
#include "cmd/moe-quant/quant_walk.h"
#include "common/base/jsonw.h"

#define EXPONENTS 256           /* of F32 */

struct figures {
    uint64_t values, zeros, nan, inf, subnormal, over;
    float min, max, absmin, absmax; /* of the finite; absmin without zeros */
    uint64_t exponent[EXPONENTS];
};

struct run { const struct quant_walk *w; struct figures *all; float limit; };

static int
see(void *ctx, int worker, size_t i, uint64_t row, size_t n, float *x, struct moe_err *e)
{
    struct run *r = ctx;
    struct figures *f = &r->all[i];

    (void)worker;
    (void)row;
    (void)e;
    for (size_t k = 0; k < n; k++) {
        float v = x[k], a = fabsf(v);
        uint32_t u;

        memcpy(&u, &a, sizeof(u));
        f->exponent[u >> 23]++;
        if (u >= 0x7f800000) {
            f->nan += u > 0x7f800000;
            f->inf += u == 0x7f800000;
            continue;
        }
        f->min = f->values == 0 || v < f->min ? v : f->min;
        f->max = f->values == 0 || v > f->max ? v : f->max;
        f->values++;
        f->zeros += u == 0;
        f->subnormal += u != 0 && u < 0x00800000;
        f->over += a > r->limit;
        f->absmax = a > f->absmax ? a : f->absmax;
        f->absmin = u != 0 && (f->absmin == 0 || a < f->absmin) ? a : f->absmin;
    }
    return 0;
}

static void
merge(struct figures *a, const struct figures *b)
{
    if (b->values > 0) {
        a->min = a->values == 0 ? b->min : fminf(a->min, b->min);
        a->max = a->values == 0 ? b->max : fmaxf(a->max, b->max);
        a->absmin = a->absmin == 0 || (b->absmin != 0 && b->absmin < a->absmin) ? b->absmin :
            a->absmin;
        a->absmax = fmaxf(a->absmax, b->absmax);
    }
    a->values += b->values;
    a->zeros += b->zeros;
    a->nan += b->nan;
    a->inf += b->inf;
    a->subnormal += b->subnormal;
    a->over += b->over;
    for (int k = 0; k < EXPONENTS; k++)
        a->exponent[k] += b->exponent[k];
}

/* ---- Lines -------------------------------------------------------------------- */

static void
text(struct moe_jsonw *w, const char *key, const char *s)
{
    moe_jsonw_key(w, key);
    moe_jsonw_str(w, s, strlen(s));
}

static void
number(struct moe_jsonw *w, const char *key, uint64_t v)
{
    moe_jsonw_key(w, key);
    moe_jsonw_uint(w, v);
}

static void
real(struct moe_jsonw *w, const char *key, double v)
{
    moe_jsonw_key(w, key);
    moe_jsonw_real(w, v);
}

static void
members(struct moe_jsonw *w, const struct figures *f)
{
    number(w, "values", f->values + f->nan + f->inf);
    real(w, "min", (double)f->min);
    real(w, "max", (double)f->max);
    real(w, "absmin", (double)f->absmin);
    real(w, "absmax", (double)f->absmax);
    number(w, "zeros", f->zeros);
    number(w, "subnormal", f->subnormal);
    number(w, "nan", f->nan);
    number(w, "inf", f->inf);
    number(w, "over", f->over);
    real(w, "over_share", f->values > 0 ? (double)f->over / (double)f->values : 0);
    moe_jsonw_key(w, "exponents");      /* of the value's power of two, those that occur */
    moe_jsonw_open(w, '{');
    for (int k = 1; k < EXPONENTS - 1; k++) {
        char key[16];

        if (f->exponent[k] == 0)
            continue;
        (void)snprintf(key, sizeof(key), "%d", k - 127);
        number(w, key, f->exponent[k]);
    }
    moe_jsonw_close(w, '}');
}

static bool
is_bad(const struct figures *f)
{
    return f->nan + f->inf + f->over > 0;
}

static void
tensors(const struct run *r, struct moe_buf *out)
{
    for (size_t i = 0; i < r->w->plan.n; i++) {
        const struct quant_plan_item *x = &r->w->plan.items[i];
        struct moe_jsonw w = { out, false };

        if (r->all[i].values + r->all[i].nan + r->all[i].inf == 0)
            continue;
        moe_jsonw_open(&w, '{');
        text(&w, "name", x->name);
        text(&w, "role", moe_naming_role(x->role));
        if (x->layer >= 0)
            number(&w, "layer", (uint64_t)x->layer);
        if (x->expert >= 0)
            number(&w, "expert", (uint64_t)x->expert);
        members(&w, &r->all[i]);
        moe_jsonw_close(&w, '}');
        moe_buf_byte(out, '\n');
    }
}

static int
verdicts(const struct run *r, struct moe_buf *out, struct moe_err *e)
{
    struct figures *f = malloc(sizeof(*f));
    int no = 0;

    if (f == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (int role = 0; role < MOE_ROLE_N; role++) {
        struct moe_jsonw w = { out, false };

        memset(f, 0, sizeof(*f));
        for (size_t i = 0; i < r->w->plan.n; i++) {
            if ((int)r->w->plan.items[i].role == role)
                merge(f, &r->all[i]);
        }
        if (f->values + f->nan + f->inf == 0)
            continue;
        moe_jsonw_open(&w, '{');
        text(&w, "verdict", f->nan + f->inf > 0 ? "not finite" : f->over > 0 ? "over" : "fits");
        text(&w, "role", moe_naming_role((enum moe_role)role));
        real(&w, "limit", (double)r->limit);
        members(&w, f);
        moe_jsonw_close(&w, '}');
        moe_buf_byte(out, '\n');
        no = no || is_bad(f);
    }
    free(f);
    return no;
}

/* ---- The two modes ------------------------------------------------------------ */

static int
walk(const char *path, const struct quant_scan_options *opt, struct quant_walk *w,
    struct run *r, struct moe_err *e)
{
    struct moe_progress progress;
    int rc = quant_walk_open(path, opt->lora, w, e);

    if (rc != 0)
        return rc;
    r->w = w;
    r->limit = (float)opt->limit;
    if ((r->all = calloc(w->plan.n + 1, sizeof(*r->all))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    moe_progress_start(&progress, "reading", moe_source_bytes(w->s), opt->quiet);
    rc = quant_walk_run(w, opt->pool, &progress, see, r, e);
    moe_progress_end(&progress);
    return rc;
}

int
quant_scan_model(const char *path, const struct quant_scan_options *opt, struct moe_buf *out,
    struct moe_err *e)
{
    struct quant_walk w = { NULL, { .n = 0 } };
    struct run r = { .all = NULL };
    int rc = walk(path, opt, &w, &r, e);

    if (rc == 0) {
        tensors(&r, out);
        rc = verdicts(&r, out, e);
    }
    if (out->bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    free(r.all);
    quant_walk_close(&w);
    return rc;
}

int
quant_scan_check(const char *path, const struct quant_scan_options *opt, struct moe_buf *out,
    struct moe_err *e)
{
    struct quant_walk w = { NULL, { .n = 0 } };
    struct run r = { .all = NULL };
    uint64_t values = 0, bad = 0;
    int rc = walk(path, opt, &w, &r, e);

    for (size_t i = 0; rc == 0 && i < w.plan.n; i++) {
        const struct figures *f = &r.all[i];
        unsigned long long faults = f->nan + f->inf;

        values += f->values;
        if (faults == 0)
            continue;
        bad++;
        moe_buf_fmt(out, "%s: %llu values are NaN or infinite\n", w.plan.items[i].name,
            faults);
    }
    if (rc == 0) {
        moe_buf_fmt(out, "%zu tensors, %zu matrices, %llu values, %llu matrices with faults\n",
            moe_source_n(w.s), w.plan.n, (unsigned long long)values, (unsigned long long)bad);
        rc = bad > 0;
    }
    if (out->bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    free(r.all);
    quant_walk_close(&w);
    return rc;
}
