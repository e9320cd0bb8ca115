/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the words and lines about what was or would be done. Measures nothing.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_report.h"
#include "common/base/out.h"

struct worst { const struct quant_plan_item *item; double sqnr; };

struct quant_report {
    struct moe_out *out;
    struct quant_stats all, role[MOE_ROLE_N];
    struct worst worst[QUANT_REPORT_WORST]; /* ascending */
    size_t n_worst;
};

/* ---- Members ------------------------------------------------------------------ */

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
    moe_jsonw_real(w, v);       /* infinite: null */
}

double
quant_report_sqnr(const struct quant_stats *s)
{
    return s->ee > 0 ? 10 * log10(s->xx / s->ee) : INFINITY;
}

void
quant_report_errors(struct moe_jsonw *w, const struct quant_stats *s)
{
    double both = sqrt(s->xx * s->yy);

    real(w, "sqnr_db", quant_report_sqnr(s));
    real(w, "max_abs_err", s->max_err);
    real(w, "rel_rms", s->xx > 0 ? sqrt(s->ee / s->xx) : 0);
    real(w, "cosine", both > 0 ? fmin((s->xx + s->yy - s->ee) / 2 / both, 1) : 1);
    if (s->wx > 0)
        real(w, "weighted_sqnr_db", s->we > 0 ? 10 * log10(s->wx / s->we) : INFINITY);
    number(w, "groups", s->groups);
    number(w, "zero_groups", s->zero_groups);
    number(w, "clipped", s->clipped);
    number(w, "nan_zeroed", s->nan_zeroed);
    real(w, "scale_min", (double)s->scale_min);
    real(w, "scale_max", (double)s->scale_max);
}

void
quant_report_line(struct moe_buf *b, struct moe_source *s, const struct quant_plan_item *x,
    const struct quant_stats *stats)
{
    const struct moe_tensor *t = moe_source_at(s, x->src);
    struct moe_jsonw w = { b, false };
    char scheme[QUANT_SCHEME_NAME];

    moe_jsonw_open(&w, '{');
    text(&w, "name", x->name);
    text(&w, "source", t->name);
    text(&w, "role", moe_naming_role(x->role));
    if (x->layer >= 0)
        number(&w, "layer", (uint64_t)x->layer);
    if (x->expert >= 0)
        number(&w, "expert", (uint64_t)x->expert);
    text(&w, "scheme", quant_scheme_name(&x->scheme, scheme));
    text(&w, "dtype", x->scheme.codec == NULL || x->in.m.enc == MOE_ENC_PLAIN ?
        moe_dtype_name(x->dtype) : moe_qmat_enc_name(x->in.m.enc));
    if (x->redeal) {
        moe_jsonw_key(&w, "redealt");
        moe_jsonw_bool(&w, true);
    }
    if (x->found != QUANT_IMATRIX_NONE)
        text(&w, "importance", x->found == QUANT_IMATRIX_DEAD ? "dead" : "used");
    moe_jsonw_key(&w, "shape");
    moe_jsonw_open(&w, '[');
    for (int i = 0; x->scheme.codec == NULL && i < t->rank; i++)
        moe_jsonw_uint(&w, t->shape[i]);
    if (x->scheme.codec != NULL) {
        moe_jsonw_uint(&w, x->rows);
        moe_jsonw_uint(&w, x->cols);
    }
    moe_jsonw_close(&w, ']');
    number(&w, "bytes_in", x->len);
    number(&w, "bytes_out", quant_plan_bytes(x));
    if (stats != NULL)
        quant_report_errors(&w, stats);
    moe_jsonw_close(&w, '}');
    moe_buf_byte(b, '\n');
}

/* ---- Summary ------------------------------------------------------------------ */

static void
sizes(struct moe_jsonw *w, const struct quant_plan *p, int role)
{
    uint64_t quantised = 0, kept = 0, in = 0, out = 0;

    for (size_t i = 0; i < p->n; i++) {
        const struct quant_plan_item *x = &p->items[i];

        if (role >= 0 && (int)x->role != role)
            continue;
        quantised += quant_plan_quantised(x);
        kept += !quant_plan_quantised(x);
        in += x->len;
        out += quant_plan_bytes(x);
    }
    number(w, "quantised", quantised);
    number(w, "kept", kept);
    number(w, "bytes_in", in);
    number(w, "bytes_out", out);
}

static void
by_role(struct moe_jsonw *w, const struct quant_plan *p, const struct quant_report *r)
{
    moe_jsonw_key(w, "roles");
    moe_jsonw_open(w, '[');
    for (int i = 0; i < MOE_ROLE_N; i++) {
        if (r->role[i].values == 0)
            continue;
        moe_jsonw_open(w, '{');
        text(w, "role", moe_naming_role((enum moe_role)i));
        sizes(w, p, i);
        quant_report_errors(w, &r->role[i]);
        moe_jsonw_close(w, '}');
    }
    moe_jsonw_close(w, ']');
    moe_jsonw_key(w, "worst");
    moe_jsonw_open(w, '[');
    for (size_t i = 0; i < r->n_worst; i++) {
        moe_jsonw_open(w, '{');
        text(w, "name", r->worst[i].item->name);
        real(w, "sqnr_db", r->worst[i].sqnr);
        moe_jsonw_close(w, '}');
    }
    moe_jsonw_close(w, ']');
}

void
quant_report_summary(struct moe_buf *b, struct moe_source *s, const struct quant_plan *p,
    const struct quant_report *r)
{
    struct moe_jsonw w = { b, false };

    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "summary");
    moe_jsonw_bool(&w, true);
    sizes(&w, p, -1);
    number(&w, "tensors_in", moe_source_n(s));
    number(&w, "tensors_written", quant_plan_count(p, s, QUANT_USE_WRITTEN));
    number(&w, "tensors_copied", quant_plan_count(p, s, QUANT_USE_COPIED));
    moe_jsonw_key(&w, "dropped");
    moe_jsonw_open(&w, '[');
    for (size_t i = 0; i < moe_source_n(s); i++) {
        if (p->used[i] == QUANT_USE_DROPPED)
            moe_jsonw_str(&w, moe_source_at(s, i)->name, strlen(moe_source_at(s, i)->name));
    }
    moe_jsonw_close(&w, ']');
    if (p->imatrix != NULL) {
        moe_jsonw_key(&w, "dead");
        moe_jsonw_open(&w, '[');
        for (size_t i = 0; i < p->n; i++) {
            if (p->items[i].found == QUANT_IMATRIX_DEAD)
                moe_jsonw_str(&w, p->items[i].name, strlen(p->items[i].name));
        }
        moe_jsonw_close(&w, ']');
    }
    if (r != NULL) {
        quant_report_errors(&w, &r->all);
        by_role(&w, p, r);
    }
    moe_jsonw_close(&w, '}');
    moe_buf_byte(b, '\n');
}

/* ---- The report --------------------------------------------------------------- */

int
quant_report_open(const char *path, bool force, struct quant_report **out, struct moe_err *e)
{
    struct quant_report *r = calloc(1, sizeof(*r));
    int rc = 0;

    *out = NULL;
    if (r == NULL)
        return moe_err_set(e, MOE_ENOMEM, "report: out of memory");
    if (path != NULL && (rc = moe_out_open(path, force, 0, &r->out, e)) != 0)
        free(r);
    else
        *out = r;
    return rc;
}

static void
rank_worst(struct quant_report *r, const struct quant_plan_item *x, double sqnr)
{
    size_t at = r->n_worst;

    if (!isfinite(sqnr) || (at == QUANT_REPORT_WORST && sqnr >= r->worst[at - 1].sqnr))
        return;
    if (at == QUANT_REPORT_WORST)
        at--;
    else
        r->n_worst++;
    for (; at > 0 && r->worst[at - 1].sqnr > sqnr; at--)
        r->worst[at] = r->worst[at - 1];
    r->worst[at] = (struct worst){ x, sqnr };
}

static int
put(struct quant_report *r, struct moe_buf *b, struct moe_err *e)
{
    int rc = 0;

    if (b->bad)
        rc = moe_err_set(e, MOE_ENOMEM, "report: out of memory");
    else if (r->out != NULL)
        rc = moe_out_write(r->out, b->p, b->len, e);
    moe_buf_fini(b);
    return rc;
}

int
quant_report_item(struct quant_report *r, struct moe_source *s, const struct quant_plan *p,
    const struct quant_plan_item *x, const struct quant_stats *stats, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;

    (void)p;
    if (stats != NULL && quant_plan_quantised(x)) {
        quant_encode_merge(&r->all, stats);
        quant_encode_merge(&r->role[x->role], stats);
        rank_worst(r, x, quant_report_sqnr(stats));
    }
    if (r->out != NULL)
        quant_report_line(&b, s, x, stats);
    return put(r, &b, e);
}

double
quant_report_worst(const struct quant_report *r, const char **name)
{
    *name = r->n_worst > 0 ? r->worst[0].item->name : "";
    return r->n_worst > 0 ? r->worst[0].sqnr : INFINITY;
}

int
quant_report_close(struct quant_report *r, struct moe_source *s, const struct quant_plan *p,
    struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc;

    if (r->out != NULL)
        quant_report_summary(&b, s, p, r);
    if ((rc = put(r, &b, e)) == 0 && r->out != NULL) {
        rc = moe_out_commit(r->out, e);
        r->out = NULL;
    }
    quant_report_abort(r);
    return rc;
}

void
quant_report_abort(struct quant_report *r)
{
    if (r == NULL)
        return;
    moe_out_abort(r->out);
    free(r);
}
