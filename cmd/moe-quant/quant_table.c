/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the dry run's table and its list of files. The lines of a tensor are
 * quant_report.c's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_report.h"
#include "cmd/moe-quant/quant_table.h"
#include "common/base/num.h"

struct row { int role; char scheme[QUANT_SCHEME_NAME]; uint64_t tensors, in, out; };

/* ---- The table ---------------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return x->role != y->role ? (x->role < y->role ? -1 : 1) : strcmp(x->scheme, y->scheme);
}

/* Rows of (role, scheme), added up; a model has few. */
static int
table(struct moe_buf *b, const struct quant_plan *p, struct moe_err *e)
{
    struct row *rows = calloc(p->n + 1, sizeof(*rows));
    size_t n = 0;

    if (rows == NULL)
        return moe_err_set(e, MOE_ENOMEM, "plan: out of memory");
    for (size_t i = 0, k; i < p->n; i++) {
        const struct quant_plan_item *x = &p->items[i];
        char scheme[QUANT_SCHEME_NAME];

        (void)quant_scheme_name(&x->scheme, scheme);
        for (k = 0; k < n; k++) {
            if (rows[k].role == (int)x->role && strcmp(rows[k].scheme, scheme) == 0)
                break;
        }
        if (k == n) {
            rows[n].role = (int)x->role;
            memcpy(rows[n++].scheme, scheme, sizeof(scheme));
        }
        rows[k].tensors++;
        rows[k].in += x->len;
        rows[k].out += quant_plan_bytes(x);
    }
    qsort(rows, n, sizeof(*rows), compare);
    moe_buf_fmt(b, "%-12s %-18s %8s %12s %12s\n", "role", "scheme", "tensors", "now", "then");
    for (size_t k = 0; k < n; k++) {
        char in[32], out[32];

        moe_buf_fmt(b, "%-12s %-18s %8llu %12s %12s\n",
            moe_naming_role((enum moe_role)rows[k].role), rows[k].scheme,
            (unsigned long long)rows[k].tensors, moe_num_human(in, sizeof(in), rows[k].in),
            moe_num_human(out, sizeof(out), rows[k].out));
    }
    free(rows);
    return 0;
}

/* Where 128 did not divide: which layers of experts, and to what they fell. */
static void
fallbacks(struct moe_buf *b, const struct quant_plan *p)
{
    for (size_t i = 0, end; i < p->n; i = end) {
        const struct quant_plan_item *x = &p->items[i];
        int last = x->layer;

        end = i + 1;
        if (x->role != MOE_ROLE_EXPERT || !quant_plan_quantised(x) ||
            !quant_scheme_grouped(x->scheme.codec) || x->scheme.group == 0 ||
            x->scheme.group == 128 || p->opt.policy.group != QUANT_POLICY_AUTO)
            continue;
        for (; end < p->n; end++) {
            const struct quant_plan_item *y = &p->items[end];

            if (y->role == MOE_ROLE_EXPERT && quant_plan_quantised(y) &&
                !quant_scheme_same(&x->scheme, &y->scheme))
                break;
            if (y->role == MOE_ROLE_EXPERT && quant_plan_quantised(y))
                last = y->layer > last ? y->layer : last;
        }
        moe_buf_fmt(b, "layers %d to %d: groups of %llu, since 128 does not divide all their"
            " experts\n", x->layer, last, (unsigned long long)x->scheme.group);
    }
}

/* ---- Files -------------------------------------------------------------------- */

static void
file(struct moe_buf *b, bool json, const char *name, uint64_t bytes)
{
    struct moe_jsonw w = { b, false };

    if (!json) {
        moe_buf_fmt(b, "%14llu %s\n", (unsigned long long)bytes, name);
        return;
    }
    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "file");
    moe_jsonw_str(&w, name, strlen(name));
    moe_jsonw_key(&w, "bytes");
    moe_jsonw_uint(&w, bytes);
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
quant_table_plan(struct moe_buf *b, struct moe_source *s, const struct quant_plan *p,
    const char *dst, bool json, struct moe_err *e)
{
    int rc = 0;

    if (json) {
        for (size_t i = 0; i < p->n; i++)
            quant_report_line(b, s, &p->items[i], NULL);
    } else if ((rc = table(b, p, e)) == 0) {
        fallbacks(b, p);
        moe_buf_fmt(b, "%zu tensors: %zu written anew, %zu copied, %zu dropped\n\n",
            moe_source_n(s), quant_plan_count(p, s, QUANT_USE_WRITTEN),
            quant_plan_count(p, s, QUANT_USE_COPIED), quant_plan_count(p, s, QUANT_USE_DROPPED));
    }
    if (rc != 0 || (rc = files(b, s, p, dst, json, e)) != 0)
        return rc;
    if (json)
        quant_report_summary(b, s, p, NULL);
    return b->bad ? moe_err_set(e, MOE_ENOMEM, "plan: out of memory") : 0;
}
