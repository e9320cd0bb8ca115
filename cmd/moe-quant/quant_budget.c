/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the choice of formats for a size. A unit is what must agree: the routed
 * experts of a layer, its shared experts, its dense MLP, its attention. Each
 * starts at its smallest format; then whichever step takes away most error for
 * its bytes is taken, as long as it fits. The error of a unit is its squared
 * error over its squares, times its number of values, so that layers of
 * different magnitude count alike.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_budget.h"
#include "cmd/moe-quant/quant_encode.h"
#include "cmd/moe-quant/quant_walk.h"
#include "common/base/num.h"
#include "kernels/kernels.h"

enum { CHOICES = 4 };
#define SLACK 4096              /* bytes a configuration may grow by between policies */

/* From small to large; the last is to keep the matrix. */
static const struct { const char *format; uint64_t group; } choices[CHOICES] = {
    { "int4", 128 }, { "int4", 32 }, { "int8", 128 }, { NULL, 0 }
};

struct unit {
    enum moe_role role;
    int layer;
    double squares, errors[CHOICES];
    uint64_t values, bytes[CHOICES];
    int first, at;              /* the smallest that may be, the one chosen */
};

struct desk { unsigned char *data, *scale; float *y; };

struct run {
    struct quant_walk w;
    const struct quant_budget_options *opt;
    struct unit *units;
    size_t n;
    size_t *unit;               /* [items]; SIZE_MAX: kept */
    double (*errors)[CHOICES];  /* [items] */
    double *squares;
    struct desk *desks;
};

/* ---- Units -------------------------------------------------------------------- */

static bool
counts(const struct quant_plan_item *x)
{
    if (x->scheme.codec == NULL || x->layer < 0 || x->cols % 32 != 0)
        return false;
    if (x->role == MOE_ROLE_ATTN)   /* latent projections are small and everything hangs on them */
        return x->proj == MOE_PROJ_Q || x->proj == MOE_PROJ_K || x->proj == MOE_PROJ_V ||
            x->proj == MOE_PROJ_O;
    return x->role == MOE_ROLE_EXPERT || x->role == MOE_ROLE_SHARED || x->role == MOE_ROLE_DENSE;
}

/* Choice c for a matrix; the group is what divides. */
static struct quant_scheme
scheme_of(const struct run *r, int c, uint64_t group)
{
    struct quant_scheme s = { .codec = quant_scheme_find(choices[c].format), .scale = MOE_BF16,
        .search = r->opt->search, .both = r->opt->both };

    s.group = choices[c].group < group ? choices[c].group : group;
    return s;
}

static uint64_t
divisor(const struct quant_plan_item *x)
{
    return x->cols % 128 == 0 ? 128 : x->cols % 64 == 0 ? 64 : 32;
}

static uint64_t
plain_bytes(const struct quant_plan_item *x)
{
    return x->in.m.enc == MOE_ENC_PLAIN ? x->len : x->rows * x->cols * 2;
}

static int
make_units(struct run *r, struct moe_err *e)
{
    const struct quant_plan *p = &r->w.plan;
    size_t *last = malloc(MOE_ROLE_N * sizeof(*last));

    r->units = calloc(p->n + 1, sizeof(*r->units));
    r->unit = malloc((p->n + 1) * sizeof(*r->unit));
    r->errors = calloc(p->n + 1, sizeof(*r->errors));
    r->squares = calloc(p->n + 1, sizeof(*r->squares));
    if (last == NULL || r->units == NULL || r->unit == NULL || r->errors == NULL ||
        r->squares == NULL) {
        free(last);
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    }
    for (int k = 0; k < MOE_ROLE_N; k++)
        last[k] = SIZE_MAX;
    for (size_t i = 0; i < p->n; i++) {
        const struct quant_plan_item *x = &p->items[i];
        size_t u = last[x->role];

        r->unit[i] = SIZE_MAX;
        if (!counts(x))
            continue;
        if (u == SIZE_MAX || r->units[u].layer != x->layer) {
            for (u = 0; u < r->n; u++) {
                if (r->units[u].role == x->role && r->units[u].layer == x->layer)
                    break;
            }
            if (u == r->n)
                r->units[r->n++] = (struct unit){ .role = x->role, .layer = x->layer,
                    .first = x->role == MOE_ROLE_ATTN ? 2 : 0 };
            last[x->role] = u;
        }
        r->unit[i] = u;
        r->units[u].values += x->rows * x->cols;
        for (int c = 0; c < CHOICES; c++) {
            const struct quant_scheme s = choices[c].format != NULL ?
                scheme_of(r, c, divisor(x)) : (struct quant_scheme){ .codec = NULL };

            r->units[u].bytes[c] += s.codec == NULL ? plain_bytes(x) :
                quant_scheme_bytes(&s, x->rows, x->cols);
        }
    }
    free(last);
    return 0;
}

/* ---- Errors ------------------------------------------------------------------- */

static int
see(void *ctx, int worker, size_t i, uint64_t row, size_t n, float *x, struct moe_err *e)
{
    struct run *r = ctx;
    const struct quant_plan_item *t = &r->w.plan.items[i];
    struct desk *d = &r->desks[worker];
    float mm[2];

    (void)row;
    if (r->unit[i] == SIZE_MAX || x == NULL)
        return 0;
    if (moe_kernels()->range_f32(mm, x, n) > 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: values are NaN or infinite",
            moe_source_path(r->w.s), t->name);
    for (int c = r->units[r->unit[i]].first; choices[c].format != NULL; c++) {
        const struct quant_scheme s = scheme_of(r, c, divisor(t));
        struct quant_encode w = { .s = &s, .x = x, .rows = n / t->cols, .cols = t->cols,
            .data = d->data, .scale = d->scale, .y = d->y };
        double err[3] = { 0, 0, 0 };

        quant_encode_run(&w);
        moe_kernels()->err_f32(err, x, d->y, n);
        r->errors[i][c] += err[1];
        if (c == r->units[r->unit[i]].first)
            r->squares[i] += err[0];
    }
    return 0;
}

static int
measure(struct run *r, struct moe_err *e)
{
    size_t threads = (size_t)moe_pool_size(r->opt->pool), most = quant_walk_most(&r->w);
    struct moe_progress progress;
    int rc = 0;

    if ((r->desks = calloc(threads, sizeof(*r->desks))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < threads; i++) {
        r->desks[i] = (struct desk){ malloc(most + 8), malloc(most / 16 + 8),
            malloc((most + 1) * sizeof(float)) };
        if (r->desks[i].data == NULL || r->desks[i].scale == NULL || r->desks[i].y == NULL)
            return moe_err_set(e, MOE_ENOMEM, "out of memory");
    }
    moe_progress_start(&progress, "measuring", moe_source_bytes(r->w.s), r->opt->quiet);
    rc = quant_walk_run(&r->w, r->opt->pool, &progress, see, r, e);
    moe_progress_end(&progress);
    for (size_t i = 0; rc == 0 && i < r->w.plan.n; i++) {
        if (r->unit[i] == SIZE_MAX)
            continue;
        r->units[r->unit[i]].squares += r->squares[i];
        for (int c = 0; c < CHOICES; c++)
            r->units[r->unit[i]].errors[c] += r->errors[i][c];
    }
    return rc;
}

/* ---- The choice --------------------------------------------------------------- */

static double
error_of(const struct unit *u, int c)
{
    return u->squares > 0 ? u->errors[c] / u->squares * (double)u->values : 0;
}

/* The step with the best gain for its bytes that fits; false: there is none. */
static bool
step(struct run *r, uint64_t *left)
{
    double best = 0;
    size_t unit = SIZE_MAX;
    int to = 0;

    for (size_t i = 0; i < r->n; i++) {
        const struct unit *u = &r->units[i];

        for (int c = u->at + 1; c < CHOICES; c++) {
            double gain = error_of(u, u->at) - error_of(u, c);
            uint64_t cost = u->bytes[c] > u->bytes[u->at] ? u->bytes[c] - u->bytes[u->at] : 0;

            if (cost > *left || gain <= 0)
                continue;
            gain /= cost > 0 ? (double)cost : 1;
            if (gain > best) {
                best = gain;
                unit = i;
                to = c;
            }
        }
    }
    if (unit == SIZE_MAX)
        return false;
    *left -= r->units[unit].bytes[to] > r->units[unit].bytes[r->units[unit].at] ?
        r->units[unit].bytes[to] - r->units[unit].bytes[r->units[unit].at] : 0;
    r->units[unit].at = to;
    return true;
}

/* Bytes of what no unit has, and of headers and files beside the weights. */
static uint64_t
fixed_bytes(const struct run *r)
{
    const struct quant_plan *p = &r->w.plan;
    uint64_t sum = SLACK, bytes;
    const char *name;

    for (size_t i = 0; i < p->n; i++) {
        const struct quant_plan_item *x = &p->items[i];

        if (r->unit[i] == SIZE_MAX)
            sum += x->scheme.codec == NULL ? x->len : plain_bytes(x);
        /* An entry of a header: the name twice (an index), type, shape, offsets; three parts. */
        sum += (r->unit[i] == SIZE_MAX ? 1u : 3u) * (2 * strlen(x->name) + 200);
    }
    for (size_t i = 0; (name = moe_source_aux_name(r->w.s, i)) != NULL; i++) {
        struct moe_err e;

        if (moe_source_aux_size(r->w.s, name, &bytes, &e) == 0)
            sum += bytes;
    }
    return sum;
}

static int
choose(struct run *r, struct moe_err *e)
{
    uint64_t fixed = fixed_bytes(r), least = fixed, budget = r->opt->bytes, values = 0, left;

    for (size_t i = 0; i < r->n; i++) {
        r->units[i].at = r->units[i].first;
        least += r->units[i].bytes[r->units[i].at];
        values += r->units[i].values;
    }
    if (budget == 0)            /* bits a weight of what can be chosen */
        budget = fixed + (uint64_t)(r->opt->bpw / 8 * (double)values);
    if (least > budget) {
        char a[32], b[32];

        return moe_err_set(e, MOE_ELIMIT, "%s: the smallest it can be is about %s, over %s",
            moe_source_path(r->w.s), moe_num_human(a, sizeof(a), least),
            moe_num_human(b, sizeof(b), budget));
    }
    left = budget - least;
    while (step(r, &left))
        ;
    return 0;
}

/* ---- The file ----------------------------------------------------------------- */

static void
rule(const struct run *r, int role, int c, struct moe_buf *out)
{
    bool first = true;

    for (size_t i = 0; i < r->n; i++) {
        const struct unit *u = &r->units[i];

        if ((int)u->role != role || u->at != c)
            continue;
        if (first)
            moe_buf_fmt(out, "  - match: 're:(.*\\.)?layers\\.(%d", u->layer);
        else
            moe_buf_fmt(out, "|%d", u->layer);
        first = false;
    }
    if (first)
        return;
    moe_buf_fmt(out, ")\\..*%s'\n    role: %s\n    format: %s\n",
        role == MOE_ROLE_ATTN ? "\\.(q|k|v|o|out)_proj" : "", moe_naming_role((enum moe_role)role),
        choices[c].format != NULL ? choices[c].format : "keep");
    if (choices[c].format != NULL && choices[c].group != 128)
        moe_buf_fmt(out, "    group: %llu\n", (unsigned long long)choices[c].group);
}

static void
print(const struct run *r, struct moe_buf *out)
{
    uint64_t bytes = 0, values = 0;
    double errors = 0;

    for (size_t i = 0; i < r->n; i++) {
        bytes += r->units[i].bytes[r->units[i].at];
        values += r->units[i].values;
        errors += error_of(&r->units[i], r->units[i].at);
    }
    moe_buf_fmt(out, "# %.3f bits a weight over %llu weights, mean ratio of signal to error %.2f"
        " dB\nrules:\n", values > 0 ? 8 * (double)bytes / (double)values : 0,
        (unsigned long long)values, errors > 0 ? 10 * log10((double)values / errors) : INFINITY);
    for (int role = 0; role < MOE_ROLE_N; role++)
        for (int c = 0; c < CHOICES; c++)
            rule(r, role, c, out);
}

int
quant_budget_solve(const char *src, const struct quant_budget_options *opt, struct moe_buf *out,
    struct moe_err *e)
{
    struct run r = { .opt = opt };
    int rc;

    if ((rc = quant_walk_open(src, NULL, &r.w, e)) == 0 && (rc = make_units(&r, e)) == 0) {
        if (r.n == 0)
            rc = moe_err_set(e, MOE_EFORMAT, "%s: no layers to choose for", src);
        else if ((rc = measure(&r, e)) == 0 && (rc = choose(&r, e)) == 0)
            print(&r, out);
    }
    if (rc == 0 && out->bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (int i = 0; r.desks != NULL && i < moe_pool_size(opt->pool); i++) {
        free(r.desks[i].data);
        free(r.desks[i].scale);
        free(r.desks[i].y);
    }
    free(r.desks);
    free(r.units);
    free(r.unit);
    free(r.errors);
    free(r.squares);
    quant_walk_close(&r.w);
    return rc;
}
