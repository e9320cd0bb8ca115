/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns filters that compare the items of a list by keys: sorting, grouping, the
 * least and the greatest, and the sum.
 */
#include <string.h>

#include "common/engine/template_case.h"
#include "common/engine/template_compare.h"
#include "common/engine/template_dict.h"
#include "common/engine/template_eval.h"
#include "common/engine/template_filter.h"
#include "common/engine/template_items.h"
#include "common/engine/template_string.h"

#define FILTER(name) \
    name(struct moe_trun *r, struct moe_tval *a, const struct moe_targs *args, struct moe_tval *out)

static int
new_list(struct moe_trun *r, struct moe_tval *out)
{
    return moe_template_value_list(r, MOE_T_LIST, 0, out);
}

/* The keys by which items are compared, one an item. */
static int
keys(struct moe_trun *r, const struct moe_tlist *l, const struct moe_tval *attribute,
    const struct moe_tval *otherwise, bool cased, struct moe_tval **out)
{
    struct moe_tval *k = moe_template_value_alloc(r, l->n, sizeof(*k));
    int rc = k == NULL ? MOE_T_FAILED : 0;

    for (size_t i = 0; rc == 0 && i < l->n; i++)
        if ((rc = moe_template_filter_list_attribute(r, l->v[i], attribute, otherwise,
            &k[i])) == 0 && !cased)
            rc = moe_template_case_ignore(r, k[i], &k[i]);
    *out = k;
    return rc;
}

/*
 * With an attribute keys are lists, since a string may name several with commas
 * between; without one they are the items.
 */
static int
many_keys(struct moe_trun *r, const struct moe_tlist *l, const struct moe_tval *attribute,
    bool cased, struct moe_tval **out)
{
    const struct moe_tstr comma = { .p = ",", .n = 1 };
    struct moe_tlist single = { (struct moe_tval *)(uintptr_t)attribute, 1, 1 }, *list = &single;
    struct moe_tval parts, *one;
    int rc = 0;

    if (!moe_template_filter_given(attribute))
        return keys(r, l, attribute, NULL, cased, out);
    if (attribute->kind == MOE_T_STR) {
        if ((rc = moe_template_string_split(r, attribute->u.s, &comma, -1, false, &parts)) != 0)
            return rc;
        list = parts.u.l;
    }
    if ((*out = moe_template_value_alloc(r, l->n, sizeof(**out))) == NULL)
        return MOE_T_FAILED;
    for (size_t i = 0; rc == 0 && i < l->n; i++)
        rc = new_list(r, &(*out)[i]);
    for (size_t k = 0; rc == 0 && k < list->n; k++) {
        rc = keys(r, l, &list->v[k], NULL, cased, &one);
        for (size_t i = 0; rc == 0 && i < l->n; i++)
            rc = moe_template_value_push(r, (*out)[i].u.l, one[i]);
    }
    return rc;
}

/* The items of l in the order of their keys. */
static int
sorted(struct moe_trun *r, const struct moe_tlist *l, const struct moe_tval *key, bool reverse,
    struct moe_tval *out)
{
    size_t *place = moe_template_value_alloc(r, l->n, sizeof(*place));
    int rc = place == NULL ? MOE_T_FAILED : moe_template_compare_sort(r, key, place, l->n, reverse);

    if (rc == 0)
        rc = new_list(r, out);
    for (size_t i = 0; rc == 0 && i < l->n; i++)
        rc = moe_template_value_push(r, out->u.l, l->v[place[i]]);
    return rc;
}

static int
FILTER(do_sort)
{
    const struct moe_tlist *l;
    struct moe_tval *key;
    int rc;

    (void)args;
    if ((rc = moe_template_items_all(r, a[0], &l)) != 0 ||
        (rc = many_keys(r, l, &a[3], moe_template_value_truth(&a[2]), &key)) != 0)
        return rc;
    return sorted(r, l, key, moe_template_value_truth(&a[1]), out);
}

static int
FILTER(do_dictsort)
{
    bool by_value = moe_template_value_is_text(&a[2], "value");
    struct moe_tview view = { a[0].kind == MOE_T_DICT ? a[0].u.d : NULL, "items" };
    struct moe_tval v = { .kind = MOE_T_VIEW, .u.view = &view }, *key;
    struct moe_tval place = moe_template_value_int(by_value);
    const struct moe_tlist *l;
    int rc;

    (void)args;
    if (a[0].kind != MOE_T_DICT)
        return moe_template_value_fail(r, "'%s object' has no attribute 'items'",
            moe_template_value_type(&a[0]));
    if (moe_template_filter_given(&a[2]) && !by_value && !moe_template_value_is_text(&a[2], "key"))
        return moe_template_value_fail(r, "You can only sort by either \"key\" or \"value\"");
    if ((rc = moe_template_items_all(r, v, &l)) != 0 ||
        (rc = keys(r, l, &place, NULL, moe_template_value_truth(&a[1]), &key)) != 0)
        return rc;
    return sorted(r, l, key, moe_template_value_truth(&a[3]), out);
}

/* Of equal ones the first. */
static int
FILTER(do_unique)
{
    const struct moe_tlist *l;
    const struct moe_tval *seen;
    struct moe_tval *key, list, have;
    int rc;

    (void)args;
    if ((rc = moe_template_items_all(r, a[0], &l)) != 0 ||
        (rc = keys(r, l, &a[2], NULL, moe_template_value_truth(&a[1]), &key)) != 0 ||
        (rc = new_list(r, &list)) != 0 || (rc = moe_template_dict_new(r, &have)) != 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < l->n; i++) {
        if ((rc = moe_template_dict_get(r, have.u.d, key[i], &seen)) != 0 || seen != NULL)
            continue;
        if ((rc = moe_template_dict_set(r, have.u.d, key[i], key[i])) == 0)
            rc = moe_template_value_push(r, list.u.l, l->v[i]);
    }
    return rc != 0 ? rc : moe_template_items_generator(r, list.u.l, out);
}

static int
extreme(struct moe_trun *r, struct moe_tval *a, int want, struct moe_tval *out)
{
    const struct moe_tlist *l;
    struct moe_tval *key;
    size_t best = 0;
    int rc, d;

    if ((rc = moe_template_items_all(r, a[0], &l)) != 0 ||
        (rc = keys(r, l, &a[2], NULL, moe_template_value_truth(&a[1]), &key)) != 0)
        return rc;
    if (l->n == 0)
        return moe_template_value_undefined(r, out, "No aggregated item, sequence was empty.");
    for (size_t i = 1; rc == 0 && i < l->n; i++)
        if ((rc = moe_template_compare_order(r, key[i], key[best], want < 0 ? "<" : ">", &d)) == 0
            && d == want)
            best = i;
    *out = l->v[best];
    return rc;
}

static int FILTER(do_min) { (void)args; return extreme(r, a, -1, out); }
static int FILTER(do_max) { (void)args; return extreme(r, a, 1, out); }

static int
FILTER(do_sum)
{
    const struct moe_tlist *l;
    struct moe_tval v;
    int rc = moe_template_items_all(r, a[0], &l);

    (void)args;
    *out = a[2].kind == MOE_T_MISSING ? moe_template_value_int(0) : a[2];
    for (size_t i = 0; rc == 0 && i < l->n; i++)
        if ((rc = moe_template_filter_list_attribute(r, l->v[i], &a[1], NULL, &v)) == 0)
            rc = moe_template_binary(r, MOE_TN_ADD, *out, v, out);
    return rc;
}

/* (key, items) for each key in order. */
static int
FILTER(do_groupby)
{
    const struct moe_tlist *l;
    struct moe_tval *key, *raw, order, group = { 0 };
    size_t *place;
    bool same = false;
    int rc;

    (void)args;
    if ((rc = moe_template_items_all(r, a[0], &l)) != 0 ||
        (rc = keys(r, l, &a[1], &a[2], moe_template_value_truth(&a[3]), &key)) != 0 ||
        (rc = keys(r, l, &a[1], &a[2], true, &raw)) != 0)
        return rc;
    if ((place = moe_template_value_alloc(r, l->n, sizeof(*place))) == NULL)
        return MOE_T_FAILED;
    if ((rc = moe_template_compare_sort(r, key, place, l->n, false)) != 0 ||
        (rc = new_list(r, out)) != 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < l->n; i++) {
        if (i > 0 && (rc = moe_template_compare_equal(r, key[place[i]], key[place[i - 1]],
            &same)) != 0)
            break;
        if (i == 0 || !same) {
            if ((rc = new_list(r, &group)) != 0 ||
                (rc = moe_template_value_list(r, MOE_T_TUPLE, 2, &order)) != 0 ||
                (rc = moe_template_value_push(r, order.u.l, raw[place[i]])) != 0 ||
                (rc = moe_template_value_push(r, order.u.l, group)) != 0 ||
                (rc = moe_template_value_push(r, out->u.l, order)) != 0)
                break;
        }
        rc = moe_template_value_push(r, group.u.l, l->v[place[i]]);
    }
    return rc;
}

/* ---- The table -------------------------------------------------------------------- */

const struct moe_tfunction moe_template_filter_sort[] = {
    { "sort", 1, "value reverse case_sensitive attribute", do_sort },
    { "dictsort", 1, "value case_sensitive by reverse", do_dictsort },
    { "unique", 1, "value case_sensitive attribute", do_unique },
    { "min", 1, "value case_sensitive attribute", do_min },
    { "max", 1, "value case_sensitive attribute", do_max },
    { "sum", 1, "iterable attribute start", do_sum },
    { "groupby", 2, "value attribute default case_sensitive", do_groupby },
    { NULL, 0, NULL, NULL },
};
