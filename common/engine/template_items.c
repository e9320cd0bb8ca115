/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns going through values: their items, one item, slices, length.
 */
#include "common/base/utf8.h"
#include "common/engine/template_items.h"

int
moe_template_items_generator(struct moe_trun *r, struct moe_tlist *l, struct moe_tval *out)
{
    struct moe_tgen *g = moe_template_value_alloc(r, 1, sizeof(*g));

    if (g == NULL)
        return MOE_T_FAILED;
    *g = (struct moe_tgen){ l, false };
    *out = (struct moe_tval){ .kind = MOE_T_GENERATOR, .u.gen = g };
    return 0;
}

static int
chars(struct moe_trun *r, struct moe_tstr *s, struct moe_tlist *l)
{
    int rc = 0;

    for (size_t at = 0, k; rc == 0 && at < s->n; at += k) {
        struct moe_tval c;

        k = moe_utf8_len(s->p + at, s->n - at);
        k = k == 0 ? 1 : k;
        if ((rc = moe_template_value_sub(r, s, at, at + k, &c)) == 0)
            rc = moe_template_value_push(r, l, c);
    }
    return rc;
}

static int
pairs(struct moe_trun *r, const struct moe_tview *view, struct moe_tlist *l)
{
    const struct moe_tdict *d = view->d;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < d->n; i++) {
        struct moe_tval v = view->what[0] == 'k' ? d->k[i] : d->v[i];

        if (view->what[0] == 'i') {
            if ((rc = moe_template_value_list(r, MOE_T_TUPLE, 2, &v)) != 0)
                return rc;
            v.u.l->v[0] = d->k[i];
            v.u.l->v[1] = d->v[i];
            v.u.l->n = 2;
        }
        rc = moe_template_value_push(r, l, v);
    }
    return rc;
}

static int
numbers(struct moe_trun *r, const struct moe_trange *g, struct moe_tlist *l)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < g->n; i++)
        rc = moe_template_value_push(r, l,
            moe_template_value_int(g->start + (int64_t)i * g->step));
    return rc;
}

int
moe_template_items_all(struct moe_trun *r, struct moe_tval v, const struct moe_tlist **out)
{
    struct moe_tval l;
    int rc;

    if (v.kind == MOE_T_LIST || v.kind == MOE_T_TUPLE) {
        *out = v.u.l;
        return 0;
    }
    if ((rc = moe_template_value_list(r, MOE_T_LIST, 0, &l)) != 0)
        return rc;
    *out = l.u.l;
    switch (v.kind) {
    case MOE_T_UNDEFINED:
        return 0;
    case MOE_T_STR:
        return chars(r, v.u.s, l.u.l);
    case MOE_T_DICT:
        return pairs(r, &(struct moe_tview){ v.u.d, "keys" }, l.u.l);
    case MOE_T_VIEW:
        return pairs(r, v.u.view, l.u.l);
    case MOE_T_RANGE:
        return numbers(r, v.u.r, l.u.l);
    case MOE_T_GENERATOR:
        if (!v.u.gen->used)
            *out = v.u.gen->l;
        v.u.gen->used = true;
        return 0;
    default:
        return moe_template_value_fail(r, "'%s' object is not iterable",
            moe_template_value_type(&v));
    }
}

int
moe_template_items_len(struct moe_trun *r, struct moe_tval v, bool *has, size_t *n)
{
    (void)r;
    *has = true;
    switch (v.kind) {
    case MOE_T_UNDEFINED:
        *n = 0;
        break;
    case MOE_T_STR:
        *n = moe_template_value_chars(v.u.s);
        break;
    case MOE_T_LIST:
    case MOE_T_TUPLE:
        *n = v.u.l->n;
        break;
    case MOE_T_DICT:
        *n = v.u.d->n;
        break;
    case MOE_T_VIEW:
        *n = v.u.view->d->n;
        break;
    case MOE_T_RANGE:
        *n = v.u.r->n;
        break;
    default:
        *has = false;
        *n = 0;
        break;
    }
    return 0;
}

static bool
is_sequence(const struct moe_tval *v)
{
    return v->kind == MOE_T_STR || v->kind == MOE_T_LIST || v->kind == MOE_T_TUPLE ||
        v->kind == MOE_T_RANGE;
}

/* Item i, which exists. */
static int
item(struct moe_trun *r, struct moe_tval v, size_t i, struct moe_tval *out)
{
    if (v.kind == MOE_T_STR) {
        size_t from = moe_template_value_offset(v.u.s, i);
        size_t to = from + moe_utf8_len(v.u.s->p + from, v.u.s->n - from);
        int rc = moe_template_value_step(r, moe_template_value_chars(v.u.s) == v.u.s->n ? 1
            : 1 + from / 16);

        return rc != 0 ? rc : moe_template_value_sub(r, v.u.s, from, to, out);
    }
    *out = v.kind == MOE_T_RANGE
        ? moe_template_value_int(v.u.r->start + (int64_t)i * v.u.r->step) : v.u.l->v[i];
    return 0;
}

int
moe_template_items_at(struct moe_trun *r, struct moe_tval v, int64_t i, bool *has,
    struct moe_tval *out)
{
    size_t n;

    (void)moe_template_items_len(r, v, has, &n);
    *has = *has && is_sequence(&v);
    if (*has && i < 0)
        i += (int64_t)n;
    *has = *has && i >= 0 && (uint64_t)i < n;
    return *has ? item(r, v, (size_t)i, out) : 0;
}

/* A bound of a slice, cut to the sequence as Python does. */
static int64_t
bound(const struct moe_tval *v, int64_t n, int64_t step, bool start)
{
    int64_t lo = step < 0 ? -1 : 0, hi = step < 0 ? n - 1 : n, i;

    if (v->kind != MOE_T_INT && v->kind != MOE_T_BOOL)
        return (step < 0) == start ? hi : lo;
    i = v->kind == MOE_T_BOOL ? v->u.b : v->u.i;
    if (i < 0)
        i = i < -n ? -1 : i + n;
    return i < lo ? lo : i > hi ? hi : i;
}

static int
slice_range(struct moe_trun *r, const struct moe_trange *g, int64_t from, int64_t step, size_t n,
    struct moe_tval *out)
{
    struct moe_trange *s = moe_template_value_alloc(r, 1, sizeof(*s));

    if (s == NULL)
        return MOE_T_FAILED;
    /* What is out of the range may wrap, it is printed at most. */
    s->start = (int64_t)((uint64_t)g->start + (uint64_t)from * (uint64_t)g->step);
    s->step = (int64_t)((uint64_t)g->step * (uint64_t)step);
    s->n = n;
    s->stop = (int64_t)((uint64_t)s->start + n * (uint64_t)s->step);
    *out = (struct moe_tval){ .kind = MOE_T_RANGE, .u.r = s };
    return 0;
}

int
moe_template_items_slice(struct moe_trun *r, struct moe_tval v, const struct moe_tval b[3],
    struct moe_tval *out)
{
    int64_t n, from, to, step = 1;
    size_t len, count;
    bool has;
    int rc;

    (void)moe_template_items_len(r, v, &has, &len);
    for (int i = 0; i < 3; i++)
        if (b[i].kind != MOE_T_NONE && b[i].kind != MOE_T_INT && b[i].kind != MOE_T_BOOL)
            return moe_template_value_fail(r,
                "slice indices must be integers or None or have an __index__ method");
    if (b[2].kind != MOE_T_NONE)
        step = b[2].kind == MOE_T_BOOL ? b[2].u.b : b[2].u.i;
    if (step == 0)
        return moe_template_value_fail(r, "slice step cannot be zero");
    if (step == INT64_MIN)
        step++;
    n = (int64_t)len;
    from = bound(&b[0], n, step, true);
    to = bound(&b[1], n, step, false);
    if (step > 0 ? from >= to : from <= to)
        count = 0;
    else
        count = step > 0 ? (size_t)((to - from - 1) / step) + 1
            : (size_t)((from - to - 1) / -step) + 1;
    if (v.kind == MOE_T_RANGE)
        return slice_range(r, v.u.r, from, step, count, out);
    if (v.kind == MOE_T_STR && (step == 1 || count == 0)) {
        size_t a = count == 0 ? 0 : moe_template_value_offset(v.u.s, (size_t)from);
        size_t z = count == 0 ? 0 : moe_template_value_offset(v.u.s, (size_t)to);

        return (rc = moe_template_value_step(r, 1 + z / 64)) != 0 ? rc
            : moe_template_value_sub(r, v.u.s, a, z, out);
    }
    if (v.kind == MOE_T_STR) {
        const struct moe_tlist *all;
        struct moe_tbuf text;

        if ((rc = moe_template_items_all(r, v, &all)) != 0)
            return rc;
        moe_template_value_begin(r, &text);
        for (size_t i = 0; rc == 0 && i < count; i++)
            rc = moe_template_value_add_str(&text, all->v[from + (int64_t)i * step].u.s);
        return rc != 0 ? rc : moe_template_value_done(&text, out);
    }
    if ((rc = moe_template_value_list(r, v.kind, count, out)) != 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = moe_template_value_push(r, out->u.l, v.u.l->v[from + (int64_t)i * step]);
    return rc;
}
