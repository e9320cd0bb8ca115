/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns comparing: ==, <, in and sorting.
 */
#include <string.h>

#include "common/engine/template_compare.h"
#include "common/engine/template_dict.h"
#include "common/engine/template_items.h"
#include "common/engine/template_number.h"

static bool
is_sequence(const struct moe_tval *v)
{
    return v->kind == MOE_T_LIST || v->kind == MOE_T_TUPLE;
}

static int
text_order(const struct moe_tstr *a, const struct moe_tstr *b)
{
    size_t n = a->n < b->n ? a->n : b->n;
    int d = n == 0 ? 0 : memcmp(a->p, b->p, n);     /* UTF-8 sorts as code points do */

    if (d != 0)
        return d < 0 ? -1 : 1;
    return a->n < b->n ? -1 : a->n > b->n;
}

/* ---- Equality ---------------------------------------------------------------------- */

static int
equal_lists(struct moe_trun *r, const struct moe_tlist *a, const struct moe_tlist *b, bool *out)
{
    int rc = 0;

    *out = a->n == b->n;
    for (size_t i = 0; rc == 0 && *out && i < a->n; i++)
        rc = moe_template_compare_equal(r, a->v[i], b->v[i], out);
    return rc;
}

static int
equal_dicts(struct moe_trun *r, const struct moe_tdict *a, const struct moe_tdict *b, bool *out)
{
    int rc = 0;

    *out = a->n == b->n;
    for (size_t i = 0; rc == 0 && *out && i < a->n; i++) {
        const struct moe_tval *v;

        rc = moe_template_dict_get(r, b, a->k[i], &v);
        *out = v != NULL;
        if (rc == 0 && v != NULL)
            rc = moe_template_compare_equal(r, a->v[i], *v, out);
    }
    return rc;
}

static bool
equal_ranges(const struct moe_trange *a, const struct moe_trange *b)
{
    return a->n == b->n && (a->n == 0 ||
        (a->start == b->start && (a->n == 1 || a->step == b->step)));
}

/* Values of one kind that is neither a number nor a container. */
static bool
same_object(const struct moe_tval *a, const struct moe_tval *b)
{
    switch (a->kind) {
    case MOE_T_MISSING:
    case MOE_T_UNDEFINED:
    case MOE_T_NONE:
        return true;
    case MOE_T_STR:
        return text_order(a->u.s, b->u.s) == 0;
    case MOE_T_RANGE:
        return equal_ranges(a->u.r, b->u.r);
    default:
        return a->u.l == b->u.l;    /* any of the pointers */
    }
}

int
moe_template_compare_equal(struct moe_trun *r, struct moe_tval a, struct moe_tval b, bool *out)
{
    int rc = 0;

    *out = false;
    if (moe_template_value_is_number(&a) && moe_template_value_is_number(&b)) {
        *out = moe_template_number_order(a, b) == 0;
        return 0;
    }
    if (a.kind != b.kind)
        return 0;
    if (!is_sequence(&a) && a.kind != MOE_T_DICT) {
        *out = same_object(&a, &b);
        return 0;
    }
    if ((rc = moe_template_value_step(r, 1)) != 0 || (rc = moe_template_value_deeper(r)) != 0)
        return rc;
    rc = a.kind == MOE_T_DICT ? equal_dicts(r, a.u.d, b.u.d, out)
        : equal_lists(r, a.u.l, b.u.l, out);
    r->depth--;
    return rc;
}

/* ---- Order ----------------------------------------------------------------------- */

static int
order_lists(struct moe_trun *r, const struct moe_tlist *a, const struct moe_tlist *b,
    const char *op, int *out)
{
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        bool same;
        int rc = moe_template_compare_equal(r, a->v[i], b->v[i], &same);

        if (rc != 0)
            return rc;
        if (!same)
            return moe_template_compare_order(r, a->v[i], b->v[i], op, out);
    }
    *out = a->n < b->n ? -1 : a->n > b->n;
    return 0;
}

int
moe_template_compare_order(struct moe_trun *r, struct moe_tval a, struct moe_tval b,
    const char *op, int *out)
{
    int rc;

    if (moe_template_value_is_number(&a) && moe_template_value_is_number(&b)) {
        *out = moe_template_number_order(a, b);
        return moe_template_value_step(r, 1);
    }
    if (a.kind == MOE_T_STR && b.kind == MOE_T_STR) {
        *out = text_order(a.u.s, b.u.s);
        return moe_template_value_step(r, 1);
    }
    if (a.kind == b.kind && is_sequence(&a)) {
        if ((rc = moe_template_value_deeper(r)) != 0)
            return rc;
        rc = order_lists(r, a.u.l, b.u.l, op, out);
        r->depth--;
        return rc;
    }
    if (a.kind == MOE_T_UNDEFINED || b.kind == MOE_T_UNDEFINED) {
        const struct moe_tstr *why = a.kind == MOE_T_UNDEFINED ? a.u.why : b.u.why;

        return moe_template_value_fail(r, "%.*s", (int)why->n, why->p);
    }
    return moe_template_value_fail(r, "'%s' not supported between instances of '%s' and '%s'", op,
        moe_template_value_type(&a), moe_template_value_type(&b));
}

/* ---- Membership -------------------------------------------------------------------- */

int
moe_template_compare_contains(struct moe_trun *r, struct moe_tval in, struct moe_tval v,
    bool *out)
{
    const struct moe_tval *found;
    const struct moe_tlist *l;
    int rc;

    *out = false;
    if (in.kind == MOE_T_STR) {
        if (v.kind != MOE_T_STR)
            return moe_template_value_fail(r,
                "'in <string>' requires string as left operand, not %s",
                moe_template_value_type(&v));
        *out = v.u.s->n == 0 || memmem(in.u.s->p, in.u.s->n, v.u.s->p, v.u.s->n) != NULL;
        return moe_template_value_step(r, 1 + in.u.s->n / 64);
    }
    if (in.kind == MOE_T_DICT) {
        rc = moe_template_dict_get(r, in.u.d, v, &found);
        *out = found != NULL;
        return rc;
    }
    if (in.kind == MOE_T_NONE || moe_template_value_is_number(&in))
        return moe_template_value_fail(r, "argument of type '%s' is not iterable",
            moe_template_value_type(&in));
    if ((rc = moe_template_items_all(r, in, &l)) != 0)
        return rc;
    for (size_t i = 0; rc == 0 && !*out && i < l->n; i++)
        if ((rc = moe_template_value_step(r, 1)) == 0)
            rc = moe_template_compare_equal(r, l->v[i], v, out);
    return rc;
}

/* ---- Sorting --------------------------------------------------------------------- */

/* Merge the sorted runs [a, b) and [b, c) of place into to. */
static int
merge(struct moe_trun *r, const struct moe_tval *key, const size_t *place, size_t *to, size_t a,
    size_t b, size_t c, bool reverse)
{
    size_t i = a, j = b, k = a;

    while (i < b && j < c) {
        int d = 0, rc = moe_template_compare_order(r, key[place[j]], key[place[i]], "<", &d);

        if (rc != 0)
            return rc;
        /* The right one goes first only when it must: the order of equals stays. */
        if (reverse ? d == 1 : d == -1)
            to[k++] = place[j++];
        else
            to[k++] = place[i++];
    }
    memcpy(to + k, place + i, (b - i) * sizeof(*to));
    memcpy(to + k + (b - i), place + j, (c - j) * sizeof(*to));
    return 0;
}

int
moe_template_compare_sort(struct moe_trun *r, const struct moe_tval *key, size_t *place,
    size_t n, bool reverse)
{
    size_t *other = moe_template_value_alloc(r, n, sizeof(*other)), *from = place, *swap;
    int rc = 0;

    if (other == NULL)
        return MOE_T_FAILED;
    for (size_t i = 0; i < n; i++)
        place[i] = i;
    for (size_t w = 1; rc == 0 && w < n; w *= 2) {
        for (size_t a = 0; rc == 0 && a < n; a += 2 * w) {
            size_t b = a + w < n ? a + w : n, c = a + 2 * w < n ? a + 2 * w : n;

            rc = merge(r, key, from, other, a, b, c, reverse);
        }
        swap = from;
        from = other;
        other = swap;
    }
    if (rc == 0 && from != place)
        memcpy(place, from, n * sizeof(*place));
    return rc;
}
