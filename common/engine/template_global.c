/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the functions that every template can call.
 */
#include <string.h>

#include "common/engine/template_dict.h"
#include "common/engine/template_format.h"
#include "common/engine/template_function.h"
#include "common/engine/template_items.h"
#include "common/engine/template_print.h"

#define GLOBAL(name) \
    name(struct moe_trun *r, struct moe_tval *a, const struct moe_targs *args, struct moe_tval *out)

/* Items of a range, as in Jinja's sandbox. */
enum { MAX_RANGE = 100000 };

static int
GLOBAL(range)
{
    struct moe_trange *g = moe_template_value_alloc(r, 1, sizeof(*g));
    int64_t v[3] = { 0, 0, 1 };
    uint64_t span, step;

    (void)a;
    if (g == NULL)
        return MOE_T_FAILED;
    if (args->n < 1 || args->n > 3 || args->n_kw > 0)
        return moe_template_value_fail(r, "range() takes 1 to 3 arguments");
    for (size_t i = 0; i < args->n; i++) {
        const struct moe_tval *x = &args->pos[i];

        if (x->kind != MOE_T_INT && x->kind != MOE_T_BOOL)
            return moe_template_value_fail(r, "'%s' object cannot be interpreted as an integer",
                moe_template_value_type(x));
        v[args->n == 1 ? 1 : i] = x->kind == MOE_T_INT ? x->u.i : x->u.b;
    }
    if (v[2] == 0)
        return moe_template_value_fail(r, "range() arg 3 must not be zero");
    span = v[2] > 0 ? (v[1] > v[0] ? (uint64_t)v[1] - (uint64_t)v[0] : 0)
        : (v[0] > v[1] ? (uint64_t)v[0] - (uint64_t)v[1] : 0);
    step = v[2] > 0 ? (uint64_t)v[2] : 0 - (uint64_t)v[2];
    span = span == 0 ? 0 : (span - 1) / step + 1;
    if (span > MAX_RANGE)
        return moe_template_value_fail(r, "Range too big. The sandbox blocks ranges larger than"
            " MAX_RANGE (%d).", MAX_RANGE);
    *g = (struct moe_trange){ v[0], v[1], v[2], (size_t)span };
    *out = (struct moe_tval){ .kind = MOE_T_RANGE, .u.r = g };
    return 0;
}

/* dict(mapping or pairs, key=value ...), and namespace() of the same. */
static int
fill(struct moe_trun *r, const struct moe_targs *args, struct moe_tval *out)
{
    const struct moe_tlist *pairs, *pair;
    struct moe_tval k;
    int rc = moe_template_dict_new(r, out);

    if (rc != 0)
        return rc;
    if (args->n > 1)
        return moe_template_value_fail(r, "at most 1 positional argument is expected");
    if (args->n == 1 && args->pos[0].kind == MOE_T_DICT) {
        const struct moe_tdict *d = args->pos[0].u.d;

        for (size_t i = 0; rc == 0 && i < d->n; i++)
            rc = moe_template_dict_set(r, out->u.d, d->k[i], d->v[i]);
    } else if (args->n == 1) {
        rc = moe_template_items_all(r, args->pos[0], &pairs);
        for (size_t i = 0; rc == 0 && i < pairs->n; i++) {
            if ((rc = moe_template_items_all(r, pairs->v[i], &pair)) != 0)
                break;
            if (pair->n != 2)
                return moe_template_value_fail(r, "a pair is expected, not %zu items", pair->n);
            rc = moe_template_dict_set(r, out->u.d, pair->v[0], pair->v[1]);
        }
    }
    for (size_t i = 0; rc == 0 && i < args->n_kw; i++) {
        rc = moe_template_value_str(r, args->kw[i].name, strlen(args->kw[i].name), false, &k);
        if (rc == 0)
            rc = moe_template_dict_set(r, out->u.d, k, args->kw[i].v);
    }
    return rc;
}

static int
GLOBAL(dict)
{
    (void)a;
    return fill(r, args, out);
}

static int
GLOBAL(namespace)
{
    int rc = fill(r, args, out);

    (void)a;
    if (rc == 0)
        out->kind = MOE_T_NAMESPACE;
    return rc;
}

static int
GLOBAL(cycler)
{
    struct moe_tcycler *c = moe_template_value_alloc(r, 1, sizeof(*c));
    struct moe_tval l;
    int rc = c == NULL ? MOE_T_FAILED : moe_template_value_list(r, MOE_T_LIST, 0, &l);

    (void)a;
    if (rc != 0)
        return rc;
    if (args->n == 0)
        return moe_template_value_fail(r, "at least one item has to be provided");
    for (size_t i = 0; rc == 0 && i < args->n; i++)
        rc = moe_template_value_push(r, l.u.l, args->pos[i]);
    *c = (struct moe_tcycler){ .l = l.u.l };
    *out = (struct moe_tval){ .kind = MOE_T_CYCLER, .u.cycler = c };
    return rc;
}

static int
GLOBAL(joiner)
{
    struct moe_tcycler *c = moe_template_value_alloc(r, 1, sizeof(*c));
    struct moe_tval sep;
    int rc = c == NULL ? MOE_T_FAILED : a[0].kind == MOE_T_MISSING
        ? moe_template_value_str(r, ", ", 2, false, &sep) : moe_template_print_text(r, a[0], &sep);

    (void)args;
    if (rc != 0)
        return rc;
    *c = (struct moe_tcycler){ .sep = sep.u.s };
    *out = (struct moe_tval){ .kind = MOE_T_JOINER, .u.cycler = c };
    return 0;
}

/* The template's own words are the whole error. */
static int
GLOBAL(raise_exception)
{
    struct moe_tval text;
    int rc = moe_template_print_text(r, a[0], &text);

    (void)args;
    (void)out;
    if (rc == 0 && r->rc == 0)
        r->rc = rc = moe_err_set(r->e, MOE_EFORMAT, "%.*s",
            (int)(text.u.s->n < 2 * MOE_ERR_TEXT ? text.u.s->n : 2 * MOE_ERR_TEXT), text.u.s->p);
    return rc;
}

static int
GLOBAL(strftime_now)
{
    (void)args;
    if (a[0].kind != MOE_T_STR)
        return moe_template_value_fail(r, "strftime() argument must be str, not %s",
            moe_template_value_type(&a[0]));
    return moe_template_format_time(r, a[0].u.s, out);
}

static int
GLOBAL(lipsum)
{
    (void)a;
    (void)args;
    (void)out;
    return moe_template_value_fail(r, "lipsum() is not supported");
}

static const struct moe_tfunction GLOBALS[] = {
    { "range", 0, "*", range }, { "dict", 0, "*", dict }, { "namespace", 0, "*", namespace },
    { "cycler", 0, "*", cycler }, { "joiner", 0, "sep", joiner },
    { "raise_exception", 1, "message", raise_exception },
    { "strftime_now", 1, "format", strftime_now }, { "lipsum", 0, "*", lipsum },
};

const struct moe_tfunction *
moe_template_global(const char *name)
{
    for (size_t i = 0; i < sizeof(GLOBALS) / sizeof(*GLOBALS); i++)
        if (strcmp(name, GLOBALS[i].name) == 0)
            return &GLOBALS[i];
    return NULL;
}
