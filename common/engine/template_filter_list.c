/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns filters over lists: their ends, choosing, mapping, rows. Those that are lazy
 * in Jinja give a value that can be gone through once.
 */
#include <string.h>

#include "common/engine/template_eval.h"
#include "common/engine/template_filter.h"
#include "common/engine/template_items.h"
#include "common/engine/template_print.h"
#include "common/engine/template_string.h"

#define FILTER(name) \
    name(struct moe_trun *r, struct moe_tval *a, const struct moe_targs *args, struct moe_tval *out)

static int
new_list(struct moe_trun *r, struct moe_tval *out)
{
    return moe_template_value_list(r, MOE_T_LIST, 0, out);
}

/* ---- Attributes by path ----------------------------------------------------------------- */

/* Part [p, end) of a path: digits are a place. */
static int
step(struct moe_trun *r, const char *p, const char *end, struct moe_tval *v)
{
    struct moe_tval key;
    bool digits = p < end, ok;
    int rc;

    for (const char *q = p; q < end; q++)
        digits = digits && *q >= '0' && *q <= '9';
    rc = digits ? moe_template_number_parse(r, p, (size_t)(end - p), 10, &ok, &key)
        : moe_template_value_str(r, p, (size_t)(end - p), false, &key);
    return rc != 0 ? rc : moe_template_access_item(r, *v, key, v);
}

/* One more step, and what takes the place of an undefined result. */
static int
follow(struct moe_trun *r, const char *p, const char *end, const struct moe_tval *otherwise,
    struct moe_tval *v)
{
    int rc = step(r, p, end, v);

    if (rc == 0 && v->kind == MOE_T_UNDEFINED && otherwise != NULL &&
        moe_template_filter_given(otherwise))
        *v = *otherwise;
    return rc;
}

int
moe_template_filter_list_attribute(struct moe_trun *r, struct moe_tval item,
    const struct moe_tval *attribute, const struct moe_tval *otherwise, struct moe_tval *out)
{
    const char *p, *end, *dot;
    struct moe_tval text;
    int rc;

    *out = item;
    if (attribute == NULL || !moe_template_filter_given(attribute))
        return 0;
    if ((rc = moe_template_print_text(r, *attribute, &text)) != 0)
        return rc;
    p = text.u.s->p;
    for (end = p + text.u.s->n; rc == 0; p = dot + 1) {
        dot = memchr(p, '.', (size_t)(end - p));
        rc = follow(r, p, dot == NULL ? end : dot, otherwise, out);
        if (dot == NULL)
            break;
    }
    return rc;
}

/* ---- Length and ends ------------------------------------------------------------------ */

static int
FILTER(do_length)
{
    bool has;
    size_t n;

    (void)args;
    (void)moe_template_items_len(r, a[0], &has, &n);
    if (!has)
        return moe_template_value_fail(r, "object of type '%s' has no len()",
            moe_template_value_type(&a[0]));
    *out = moe_template_value_int((int64_t)n);
    return 0;
}

static int
FILTER(do_first)
{
    const struct moe_tlist *l;
    bool has;
    int rc = 0;

    (void)args;
    if (a[0].kind == MOE_T_STR || a[0].kind == MOE_T_RANGE) {
        if ((rc = moe_template_items_at(r, a[0], 0, &has, out)) != 0 || has)
            return rc;
    } else {
        if ((rc = moe_template_items_all(r, a[0], &l)) != 0)
            return rc;
        if (l->n > 0) {
            *out = l->v[0];
            return 0;
        }
    }
    return moe_template_value_undefined(r, out, "No first item, sequence was empty.");
}

static int
FILTER(do_last)
{
    const struct moe_tlist *l;
    bool has;
    int rc;

    (void)args;
    if (a[0].kind == MOE_T_STR || a[0].kind == MOE_T_RANGE) {
        if ((rc = moe_template_items_at(r, a[0], -1, &has, out)) != 0 || has)
            return rc;
    } else {
        if (a[0].kind == MOE_T_GENERATOR)
            return moe_template_value_fail(r, "'generator' object is not reversible");
        if ((rc = moe_template_items_all(r, a[0], &l)) != 0)
            return rc;
        if (l->n > 0) {
            *out = l->v[l->n - 1];
            return 0;
        }
    }
    return moe_template_value_undefined(r, out, "No last item, sequence was empty.");
}

static int
FILTER(do_list)
{
    const struct moe_tlist *l;
    int rc;

    (void)args;
    if ((rc = moe_template_items_all(r, a[0], &l)) != 0 || (rc = new_list(r, out)) != 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < l->n; i++)
        rc = moe_template_value_push(r, out->u.l, l->v[i]);
    return rc;
}

static int
FILTER(do_reverse)
{
    struct moe_tval back[3] = { { .kind = MOE_T_NONE }, { .kind = MOE_T_NONE },
        { .kind = MOE_T_INT, .u.i = -1 } };
    const struct moe_tlist *l;
    struct moe_tval list;
    int rc;

    (void)args;
    if (a[0].kind == MOE_T_STR)
        return moe_template_items_slice(r, a[0], back, out);
    if ((rc = moe_template_items_all(r, a[0], &l)) != 0 || (rc = new_list(r, &list)) != 0)
        return rc;
    for (size_t i = l->n; rc == 0 && i > 0; i--)
        rc = moe_template_value_push(r, list.u.l, l->v[i - 1]);
    return rc != 0 ? rc : moe_template_items_generator(r, list.u.l, out);
}

static int
FILTER(do_items)
{
    struct moe_tview view = { a[0].kind == MOE_T_DICT ? a[0].u.d : NULL, "items" };
    struct moe_tval v = { .kind = MOE_T_VIEW, .u.view = &view }, empty;
    const struct moe_tlist *l;
    int rc;

    (void)args;
    if (a[0].kind == MOE_T_UNDEFINED) {
        rc = new_list(r, &empty);
        return rc != 0 ? rc : moe_template_items_generator(r, empty.u.l, out);
    }
    if (a[0].kind != MOE_T_DICT)
        return moe_template_value_fail(r, "Can only get item pairs from a mapping.");
    rc = moe_template_items_all(r, v, &l);
    return rc != 0 ? rc
        : moe_template_items_generator(r, (struct moe_tlist *)(uintptr_t)l, out);
}

static int
FILTER(do_join)
{
    struct moe_tval sep, texts, v;
    const struct moe_tlist *l;
    int rc;

    (void)args;
    if (a[1].kind == MOE_T_MISSING)
        rc = moe_template_value_str(r, "", 0, false, &sep);
    else
        rc = moe_template_print_text(r, a[1], &sep);
    if (rc != 0 || (rc = moe_template_items_all(r, a[0], &l)) != 0 ||
        (rc = new_list(r, &texts)) != 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < l->n; i++)
        if ((rc = moe_template_filter_list_attribute(r, l->v[i], &a[2], NULL, &v)) == 0 &&
            (rc = moe_template_print_text(r, v, &v)) == 0)
            rc = moe_template_value_push(r, texts.u.l, v);
    return rc != 0 ? rc : moe_template_string_join(r, sep.u.s, texts.u.l, out);
}

/* ---- Choosing and mapping ---------------------------------------------------------------- */

/* Arguments after the first `skip` ones. */
static struct moe_targs
rest_of(const struct moe_targs *args, size_t skip)
{
    struct moe_targs rest = *args;

    rest.pos += skip;
    rest.n -= skip;
    return rest;
}

/* The function that argument i names. */
static int
named(struct moe_trun *r, const struct moe_tval *v, bool filter, const struct moe_tfunction **f)
{
    char name[64] = "";

    if (v->kind == MOE_T_STR && v->u.s->n < sizeof(name))
        memcpy(name, v->u.s->p, v->u.s->n);
    *f = filter ? moe_template_filter(name) : moe_template_test(name);
    return *f != NULL ? 0 : moe_template_value_fail(r, "No %s named '%s'.",
        filter ? "filter" : "test", name);
}

/* select, reject and the same by attribute. */
static int
choose(struct moe_trun *r, const struct moe_tval *a, const struct moe_targs *args,
    bool by_attribute, bool want, struct moe_tval *out)
{
    const struct moe_tfunction *test = NULL;
    const struct moe_tlist *l;
    struct moe_tval list, v, yes;
    struct moe_targs rest = { 0 };
    size_t off = by_attribute;
    int rc;

    if (by_attribute && args->n == 0)
        return moe_template_value_fail(r, "Missing parameter for attribute name");
    if (args->n > off) {
        if ((rc = named(r, &args->pos[off], false, &test)) != 0)
            return rc;
        rest = rest_of(args, off + 1);
    }
    if ((rc = new_list(r, &list)) != 0)
        return rc;
    if (!moe_template_value_truth(&a[0]))
        return moe_template_items_generator(r, list.u.l, out);
    if ((rc = moe_template_items_all(r, a[0], &l)) != 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < l->n; i++) {
        v = l->v[i];
        if (by_attribute)
            rc = moe_template_filter_list_attribute(r, v, &args->pos[0], NULL, &v);
        if (rc != 0)
            break;
        yes = v;
        if (test != NULL && (rc = moe_template_function_call(r, test, &v, &rest, &yes)) != 0)
            break;
        if (moe_template_value_truth(&yes) == want)
            rc = moe_template_value_push(r, list.u.l, l->v[i]);
    }
    return rc != 0 ? rc : moe_template_items_generator(r, list.u.l, out);
}

static int FILTER(do_select) { return choose(r, a, args, false, true, out); }
static int FILTER(do_reject) { return choose(r, a, args, false, false, out); }
static int FILTER(do_selectattr) { return choose(r, a, args, true, true, out); }
static int FILTER(do_rejectattr) { return choose(r, a, args, true, false, out); }

static int
FILTER(do_map)
{
    const struct moe_tfunction *filter = NULL;
    const struct moe_tval *attribute = NULL, *otherwise = NULL;
    const struct moe_tlist *l;
    struct moe_targs rest = { 0 };
    struct moe_tval list, v;
    int rc;

    for (size_t i = 0; args->n == 0 && i < args->n_kw; i++) {
        if (strcmp(args->kw[i].name, "attribute") == 0)
            attribute = &args->kw[i].v;
        else if (strcmp(args->kw[i].name, "default") == 0)
            otherwise = &args->kw[i].v;
        else
            return moe_template_value_fail(r, "Unexpected keyword argument '%s'",
                args->kw[i].name);
    }
    if (attribute == NULL) {
        if (args->n == 0)
            return moe_template_value_fail(r, "map requires a filter argument");
        if ((rc = named(r, &args->pos[0], true, &filter)) != 0)
            return rc;
        rest = rest_of(args, 1);
    }
    /* What is empty or none gives nothing. */
    if ((rc = new_list(r, &list)) != 0)
        return rc;
    if (!moe_template_value_truth(&a[0]))
        return moe_template_items_generator(r, list.u.l, out);
    if ((rc = moe_template_items_all(r, a[0], &l)) != 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < l->n; i++) {
        rc = filter != NULL ? moe_template_function_call(r, filter, &l->v[i], &rest, &v)
            : moe_template_filter_list_attribute(r, l->v[i], attribute, otherwise, &v);
        if (rc == 0)
            rc = moe_template_value_push(r, list.u.l, v);
    }
    return rc != 0 ? rc : moe_template_items_generator(r, list.u.l, out);
}

/* ---- Rows and columns ------------------------------------------------------------------ */

static int
FILTER(do_batch)
{
    const struct moe_tlist *l;
    struct moe_tval list, row = { 0 };
    int64_t n;
    int rc;

    (void)args;
    if ((rc = moe_template_filter_int(r, &a[1], 1, &n)) != 0 ||
        (rc = moe_template_items_all(r, a[0], &l)) != 0 || (rc = new_list(r, &list)) != 0)
        return rc;
    n = n < 1 ? 1 : n;
    for (size_t i = 0; rc == 0 && i < l->n; i++) {
        if (i % (uint64_t)n == 0 && ((rc = new_list(r, &row)) != 0 ||
            (rc = moe_template_value_push(r, list.u.l, row)) != 0))
            break;
        rc = moe_template_value_push(r, row.u.l, l->v[i]);
    }
    while (rc == 0 && l->n > 0 && moe_template_filter_given(&a[2]) && row.u.l->n < (uint64_t)n)
        rc = moe_template_value_push(r, row.u.l, a[2]);
    return rc != 0 ? rc : moe_template_items_generator(r, list.u.l, out);
}

static int
FILTER(do_slice)
{
    const struct moe_tlist *l;
    struct moe_tval list, row;
    size_t at = 0;
    int64_t n;
    int rc;

    (void)args;
    if ((rc = moe_template_filter_int(r, &a[1], 1, &n)) != 0 ||
        (rc = moe_template_items_all(r, a[0], &l)) != 0 || (rc = new_list(r, &list)) != 0)
        return rc;
    if (n < 1)
        return moe_template_value_fail(r, "integer division or modulo by zero");
    for (int64_t i = 0; rc == 0 && i < n; i++) {
        size_t over = l->n % (uint64_t)n, much = l->n / (uint64_t)n + ((uint64_t)i < over);

        if ((rc = new_list(r, &row)) != 0 ||
            (rc = moe_template_value_push(r, list.u.l, row)) != 0)
            break;
        for (size_t k = 0; rc == 0 && k < much; k++)
            rc = moe_template_value_push(r, row.u.l, l->v[at++]);
        if (rc == 0 && moe_template_filter_given(&a[2]) && over > 0 && (uint64_t)i >= over)
            rc = moe_template_value_push(r, row.u.l, a[2]);
    }
    return rc != 0 ? rc : moe_template_items_generator(r, list.u.l, out);
}

/* ---- The table -------------------------------------------------------------------- */

const struct moe_tfunction moe_template_filter_list[] = {
    { "length", 1, "value", do_length }, { "count", 1, "value", do_length },
    { "first", 1, "seq", do_first }, { "last", 1, "seq", do_last },
    { "list", 1, "value", do_list }, { "reverse", 1, "value", do_reverse },
    { "items", 1, "value", do_items }, { "join", 1, "value d attribute", do_join },
    { "select", 1, "*", do_select }, { "reject", 1, "*", do_reject },
    { "selectattr", 1, "*", do_selectattr }, { "rejectattr", 1, "*", do_rejectattr },
    { "map", 1, "*", do_map }, { "batch", 2, "value linecount fill_with", do_batch },
    { "slice", 2, "value slices fill_with", do_slice }, { NULL, 0, NULL, NULL },
};
