/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the words and lines about what was or would be done. Measures nothing.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cmd/moe-quant/quant_report.h"
#include "common/base/jsonw.h"
#include "common/base/num.h"

struct sum { uint64_t tensors, in, out; };

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

static void
errors(struct moe_jsonw *w, const struct quant_tile_stats *s)
{
    real(w, "sqnr_db", 10 * log10(s->xx / s->ee));
    real(w, "max_abs_err", s->max_err);
    real(w, "rel_rms", s->xx > 0 ? sqrt(s->ee / s->xx) : 0);
    number(w, "groups", s->groups);
    number(w, "zero_groups", s->zero_groups);
    number(w, "clipped", s->clipped);
    real(w, "scale_min", (double)s->scale_min);
    real(w, "scale_max", (double)s->scale_max);
}

void
quant_report_item(struct moe_buf *b, struct moe_source *s, const struct quant_plan *p,
    const struct quant_plan_item *x, const struct quant_tile_stats *stats)
{
    const struct moe_tensor *t = moe_source_at(s, x->src);
    struct moe_jsonw w = { b, false };
    char scheme[32] = "kept";

    if (x->quantised)
        (void)snprintf(scheme, sizeof(scheme), "int%d-g%llu", p->opt.bits,
            (unsigned long long)x->group);
    moe_jsonw_open(&w, '{');
    text(&w, "name", x->name);
    text(&w, "source", t->name);
    text(&w, "role", moe_naming_role(x->role));
    if (x->layer >= 0)
        number(&w, "layer", (uint64_t)x->layer);
    if (x->expert >= 0)
        number(&w, "expert", (uint64_t)x->expert);
    text(&w, "scheme", scheme);
    text(&w, "dtype", moe_dtype_name(x->dtype));
    moe_jsonw_key(&w, "shape");
    moe_jsonw_open(&w, '[');
    for (int i = 0; !x->quantised && i < t->rank; i++)
        moe_jsonw_uint(&w, t->shape[i]);
    if (x->quantised) {
        moe_jsonw_uint(&w, x->rows);
        moe_jsonw_uint(&w, x->cols);
    }
    moe_jsonw_close(&w, ']');
    number(&w, "bytes_in", x->len);
    number(&w, "bytes_out", quant_plan_bytes(p, x));
    if (stats != NULL)
        errors(&w, stats);
    moe_jsonw_close(&w, '}');
    moe_buf_byte(b, '\n');
}

static struct sum
add_up(const struct quant_plan *p, int role, bool quantised, uint64_t group)
{
    struct sum s = { 0, 0, 0 };

    for (size_t i = 0; i < p->n; i++) {
        const struct quant_plan_item *x = &p->items[i];

        if (x->quantised != quantised || (role >= 0 && (int)x->role != role) ||
            (group != 0 && x->group != group))
            continue;
        s.tensors++;
        s.in += x->len;
        s.out += quant_plan_bytes(p, x);
    }
    return s;
}

void
quant_report_summary(struct moe_buf *b, const struct quant_plan *p,
    const struct quant_tile_stats *stats)
{
    struct sum q = add_up(p, -1, true, 0), k = add_up(p, -1, false, 0);
    struct moe_jsonw w = { b, false };

    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "summary");
    moe_jsonw_bool(&w, true);
    number(&w, "bits", (uint64_t)p->opt.bits);
    number(&w, "quantised", q.tensors);
    number(&w, "kept", k.tensors);
    number(&w, "bytes_in", q.in + k.in);
    number(&w, "bytes_out", q.out + k.out);
    if (stats != NULL)
        errors(&w, stats);
    moe_jsonw_close(&w, '}');
    moe_buf_byte(b, '\n');
}

/* ---- The plan ---------------------------------------------------------------- */

static void
row(struct moe_buf *b, const char *role, const char *scheme, struct sum s)
{
    char in[32], out[32];

    if (s.tensors == 0)
        return;
    moe_buf_fmt(b, "%-12s %-10s %8llu %12s %12s\n", role, scheme,
        (unsigned long long)s.tensors, moe_num_human(in, sizeof(in), s.in),
        moe_num_human(out, sizeof(out), s.out));
}

static void
table(struct moe_buf *b, const struct quant_plan *p)
{
    moe_buf_fmt(b, "%-12s %-10s %8s %12s %12s\n", "role", "scheme", "tensors", "now", "then");
    for (int r = 0; r < MOE_ROLE_N; r++) {
        for (uint64_t g = 128; g >= 32; g /= 2) {
            char scheme[32];

            (void)snprintf(scheme, sizeof(scheme), "int%d g%llu", p->opt.bits,
                (unsigned long long)g);
            row(b, moe_naming_role((enum moe_role)r), scheme, add_up(p, r, true, g));
        }
        row(b, moe_naming_role((enum moe_role)r), "kept", add_up(p, r, false, 0));
    }
}

/* Where 128 did not divide: which layers, and to what they fell. */
static void
fallbacks(struct moe_buf *b, const struct quant_plan *p)
{
    for (size_t l = 0, end; p->opt.group == 0 && l < p->layers; l = end) {
        uint64_t g = p->layer_group[l];

        for (end = l + 1; end < p->layers && p->layer_group[end] == g; end++)
            ;
        if (g != 0 && g != 128)
            moe_buf_fmt(b, "layers %zu to %zu: groups of %llu, since 128 does not divide all"
                " their experts\n", l, end - 1, (unsigned long long)g);
    }
}

static void
file(struct moe_buf *b, bool json, const char *name, uint64_t bytes)
{
    struct moe_jsonw w = { b, false };

    if (!json) {
        moe_buf_fmt(b, "%14llu %s\n", (unsigned long long)bytes, name);
        return;
    }
    moe_jsonw_open(&w, '{');
    text(&w, "file", name);
    number(&w, "bytes", bytes);
    moe_jsonw_close(&w, '}');
    moe_buf_byte(b, '\n');
}

/* What lies beside the weights in a directory. */
static int
beside(struct moe_buf *b, struct moe_source *s, const struct quant_plan *p, bool json,
    uint64_t *total, struct moe_err *e)
{
    const char *name;
    int rc = 0;

    file(b, json, "config.json", p->config.len);
    *total += p->config.len;
    for (size_t i = 0; rc == 0 && (name = moe_source_aux_name(s, i)) != NULL; i++) {
        uint64_t bytes;

        if (strcmp(name, "config.json") == 0)
            continue;
        if ((rc = moe_source_aux_size(s, name, &bytes, e)) == 0)
            file(b, json, name, bytes);
        *total += bytes;
    }
    return rc;
}

static int
files(struct moe_buf *b, struct moe_source *s, const struct quant_plan *p, const char *dst,
    bool json, struct moe_err *e)
{
    struct moe_sink_size size;
    uint64_t total;
    int rc = moe_sink_size(&p->sink, &size, e);

    if (rc != 0)
        return rc;
    total = size.total;
    for (size_t k = 0; k < size.files; k++) {
        char name[MOE_SINK_NAME];

        moe_sink_name(k, size.files, name);
        file(b, json, quant_plan_is_dir(dst) ? name : dst, size.bytes[k]);
    }
    if (size.index_bytes > 0)
        file(b, json, MOE_SINK_INDEX, size.index_bytes);
    if (quant_plan_is_dir(dst))
        rc = beside(b, s, p, json, &total, e);
    if (rc == 0 && !json)
        file(b, false, "in all", total);
    moe_sink_size_fini(&size);
    return rc;
}

int
quant_report_plan(struct moe_buf *b, struct moe_source *s, const struct quant_plan *p,
    const char *dst, bool json, struct moe_err *e)
{
    int rc;

    if (json) {
        for (size_t i = 0; i < p->n; i++)
            quant_report_item(b, s, p, &p->items[i], NULL);
    } else {
        table(b, p);
        fallbacks(b, p);
        moe_buf_byte(b, '\n');
    }
    if ((rc = files(b, s, p, dst, json, e)) != 0)
        return rc;
    if (json)
        quant_report_summary(b, p, NULL);
    return b->bad ? moe_err_set(e, MOE_ENOMEM, "plan: out of memory") : 0;
}
