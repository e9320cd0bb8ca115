/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns evaluation of expressions: one function a kind of node, in a table.
 */
#include <string.h>

#include "common/engine/template_compare.h"
#include "common/engine/template_dict.h"
#include "common/engine/template_eval.h"
#include "common/engine/template_items.h"
#include "common/engine/template_print.h"

typedef int calc_fn(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tval *out);

/* ---- Names and constants ------------------------------------------------------------- */

int
moe_template_calc_name(struct moe_trun *r, const struct moe_tscope *s, const char *name,
    struct moe_tval *out)
{
    const struct moe_tval *v;
    const struct moe_tfunction *f;

    for (; s != NULL; s = s->parent)
        for (size_t i = 0; i < s->n; i++)
            if (strcmp(s->var[i].name, name) == 0) {
                *out = s->var[i].v;
                return 0;
            }
    if ((v = moe_template_dict_named(r->vars.u.d, name)) != NULL) {
        *out = *v;
        return 0;
    }
    if ((f = moe_template_global(name)) != NULL) {
        *out = (struct moe_tval){ .kind = MOE_T_FUNCTION, .u.fn = f };
        return 0;
    }
    return moe_template_value_undefined(r, out, "'%s' is undefined", name);
}

static int
constant(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tval *out)
{
    (void)r;
    (void)s;
    *out = n->value;
    return 0;
}

static int
name(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s, struct moe_tval *out)
{
    return moe_template_calc_name(r, s, n->name, out);
}

static int
input(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s, struct moe_tval *out)
{
    (void)n;
    return moe_template_calc_name(r, s, MOE_TEMPLATE_INPUT, out);
}

static int
sequence(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tval *out)
{
    int rc = moe_template_value_list(r, n->type == MOE_N_LIST ? MOE_T_LIST : MOE_T_TUPLE, 0, out);

    for (const struct moe_tnode *i = n->list; rc == 0 && i != NULL; i = i->next) {
        struct moe_tval v;

        if ((rc = moe_template_calc(r, i, s, &v)) == 0)
            rc = moe_template_value_push(r, out->u.l, v);
    }
    return rc;
}

static int
dict(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s, struct moe_tval *out)
{
    int rc = moe_template_dict_new(r, out);

    for (const struct moe_tnode *i = n->list; rc == 0 && i != NULL; i = i->next) {
        struct moe_tval k, v;

        if ((rc = moe_template_calc(r, i->a, s, &k)) == 0 &&
            (rc = moe_template_calc(r, i->b, s, &v)) == 0)
            rc = moe_template_dict_set(r, out->u.d, k, v);
    }
    return rc;
}

/* ---- Logic ----------------------------------------------------------------------- */

static int
cond(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s, struct moe_tval *out)
{
    struct moe_tval test;
    int rc = moe_template_calc(r, n->b, s, &test);

    if (rc != 0)
        return rc;
    if (moe_template_value_truth(&test))
        return moe_template_calc(r, n->a, s, out);
    if (n->c != NULL)
        return moe_template_calc(r, n->c, s, out);
    return moe_template_value_undefined(r, out,
        "the inline if-expression evaluated to false and no else section was defined.");
}

/* and, or: the operand that decides is the value. */
static int
decide(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s, struct moe_tval *out)
{
    int rc = moe_template_calc(r, n->a, s, out);

    if (rc != 0 || moe_template_value_truth(out) == (n->type == MOE_N_OR))
        return rc;
    return moe_template_calc(r, n->b, s, out);
}

static int
negate(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s, struct moe_tval *out)
{
    struct moe_tval v;
    int rc = moe_template_calc(r, n->a, s, &v);

    *out = moe_template_value_bool(rc == 0 && !moe_template_value_truth(&v));
    return rc;
}

static int
compare_one(struct moe_trun *r, int op, struct moe_tval a, struct moe_tval b, bool *yes)
{
    static const char *const signs[] = { "==", "!=", "<", "<=", ">", ">=" };
    int d, rc;

    switch (op) {
    case MOE_TC_EQ:
    case MOE_TC_NE:
        rc = moe_template_compare_equal(r, a, b, yes);
        *yes = *yes == (op == MOE_TC_EQ);
        return rc;
    case MOE_TC_IN:
    case MOE_TC_NOTIN:
        rc = moe_template_compare_contains(r, b, a, yes);
        *yes = *yes == (op == MOE_TC_IN);
        return rc;
    default:
        break;
    }
    if ((rc = moe_template_compare_order(r, a, b, signs[op], &d)) != 0)
        return rc;
    *yes = d != 2 && ((op == MOE_TC_LT && d < 0) || (op == MOE_TC_LE && d <= 0) ||
        (op == MOE_TC_GT && d > 0) || (op == MOE_TC_GE && d >= 0));
    return 0;
}

static int
compare(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tval *out)
{
    struct moe_tval a, b;
    bool yes = true;
    int rc = moe_template_calc(r, n->a, s, &a);

    for (const struct moe_tnode *i = n->list; rc == 0 && yes && i != NULL; i = i->next) {
        if ((rc = moe_template_calc(r, i->a, s, &b)) == 0)
            rc = compare_one(r, i->op, a, b, &yes);
        a = b;
    }
    *out = moe_template_value_bool(yes);
    return rc;
}

/* ---- Operators -------------------------------------------------------------------- */

static int
binary(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s, struct moe_tval *out)
{
    struct moe_tval a, b;
    int rc;

    if ((rc = moe_template_calc(r, n->a, s, &a)) != 0 ||
        (rc = moe_template_calc(r, n->b, s, &b)) != 0)
        return rc;
    return moe_template_binary(r, (enum moe_tnumber_op)n->op, a, b, out);
}

static int
sign(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s, struct moe_tval *out)
{
    struct moe_tval v;
    int rc = moe_template_calc(r, n->a, s, &v);

    if (rc != 0)
        return rc;
    if (v.kind == MOE_T_UNDEFINED)
        return moe_template_value_fail(r, "%.*s", (int)v.u.why->n, v.u.why->p);
    if (!moe_template_value_is_number(&v))
        return moe_template_value_fail(r, "bad operand type for unary %c: '%s'",
            n->type == MOE_N_NEG ? '-' : '+', moe_template_value_type(&v));
    if (n->type == MOE_N_NEG)
        return moe_template_number_negate(r, v, out);
    *out = v.kind == MOE_T_BOOL ? moe_template_value_int(v.u.b) : v;
    return 0;
}

static int
concat(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s, struct moe_tval *out)
{
    struct moe_tbuf text;
    int rc = 0;

    moe_template_value_begin(r, &text);
    for (const struct moe_tnode *i = n->list; rc == 0 && i != NULL; i = i->next) {
        struct moe_tval v;

        if ((rc = moe_template_calc(r, i, s, &v)) == 0)
            rc = moe_template_print_str(&text, v);
    }
    return rc != 0 ? rc : moe_template_value_done(&text, out);
}

/* ---- Access ---------------------------------------------------------------------- */

static int
get_attr(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tval *out)
{
    struct moe_tval v;
    int rc = moe_template_calc(r, n->a, s, &v);

    return rc != 0 ? rc : moe_template_access_attr(r, v, n->name, out);
}

static int
slice(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s, struct moe_tval of,
    struct moe_tval *out)
{
    const struct moe_tnode *part[3] = { n->a, n->b, n->c };
    struct moe_tval bound[3];

    for (int i = 0; i < 3; i++) {
        int rc;

        bound[i] = moe_template_value_none();
        if (part[i] != NULL && (rc = moe_template_calc(r, part[i], s, &bound[i])) != 0)
            return rc;
    }
    if (of.kind == MOE_T_UNDEFINED)
        return moe_template_value_fail(r, "%.*s", (int)of.u.why->n, of.u.why->p);
    if (of.kind != MOE_T_STR && of.kind != MOE_T_LIST && of.kind != MOE_T_TUPLE &&
        of.kind != MOE_T_RANGE)
        return moe_template_value_fail(r, "'%s' object is not subscriptable",
            moe_template_value_type(&of));
    return moe_template_items_slice(r, of, bound, out);
}

static int
get_item(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tval *out)
{
    struct moe_tval v, key;
    int rc = moe_template_calc(r, n->a, s, &v);

    if (rc != 0)
        return rc;
    if (n->b->type == MOE_N_SLICE)
        return slice(r, n->b, s, v, out);
    rc = moe_template_calc(r, n->b, s, &key);
    return rc != 0 ? rc : moe_template_access_item(r, v, key, out);
}

static int
lone_slice(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tval *out)
{
    (void)n;
    (void)s;
    (void)out;
    return moe_template_value_fail(r, "several slices at once are not supported");
}

/* ---- Calls ----------------------------------------------------------------------- */

/* The items of *v or the keyword arguments of **v. */
static int
spread(struct moe_trun *r, bool keywords, struct moe_tval v, struct moe_tlist *pos,
    struct moe_tkeyword **kw, size_t *n_kw)
{
    const struct moe_tlist *items;
    struct moe_tkeyword *all;
    int rc = 0;

    if (!keywords) {
        if ((rc = moe_template_items_all(r, v, &items)) != 0)
            return rc;
        for (size_t i = 0; rc == 0 && i < items->n; i++)
            rc = moe_template_value_push(r, pos, items->v[i]);
        return rc;
    }
    if (v.kind != MOE_T_DICT)
        return moe_template_value_fail(r, "argument after ** must be a mapping, not %s",
            moe_template_value_type(&v));
    if ((all = moe_template_value_alloc(r, *n_kw + v.u.d->n, sizeof(*all))) == NULL)
        return MOE_T_FAILED;
    if (*n_kw > 0)
        memcpy(all, *kw, *n_kw * sizeof(*all));
    for (size_t i = 0; i < v.u.d->n; i++) {
        const struct moe_tval *k = &v.u.d->k[i];
        char *text;

        if (k->kind != MOE_T_STR)
            return moe_template_value_fail(r, "keywords must be strings");
        if ((text = moe_template_value_alloc(r, k->u.s->n + 1, 1)) == NULL)
            return MOE_T_FAILED;
        memcpy(text, k->u.s->p, k->u.s->n);
        text[k->u.s->n] = '\0';
        all[(*n_kw)++] = (struct moe_tkeyword){ text, v.u.d->v[i] };
    }
    *kw = all;
    return 0;
}

/* Evaluate arguments; one keyword of room is left for a caller. */
static int
arguments(struct moe_trun *r, const struct moe_tnode *list, struct moe_tscope *s,
    struct moe_targs *args)
{
    struct moe_tval pos;
    size_t n = 1;
    int rc = moe_template_value_list(r, MOE_T_LIST, 0, &pos);

    *args = (struct moe_targs){ 0 };
    for (const struct moe_tnode *i = list; i != NULL; i = i->next)
        n += i->type == MOE_N_KEYWORD;
    if (rc == 0 && (args->kw = moe_template_value_alloc(r, n, sizeof(*args->kw))) == NULL)
        return MOE_T_FAILED;
    for (const struct moe_tnode *i = list; rc == 0 && i != NULL; i = i->next) {
        bool plain = i->type != MOE_N_KEYWORD && i->type != MOE_N_STAR && i->type != MOE_N_STAR2;
        struct moe_tval v;

        if ((rc = moe_template_calc(r, plain ? i : i->a, s, &v)) != 0)
            return rc;
        if (plain)
            rc = moe_template_value_push(r, pos.u.l, v);
        else if (i->type == MOE_N_KEYWORD)
            args->kw[args->n_kw++] = (struct moe_tkeyword){ i->name, v };
        else
            rc = spread(r, i->type == MOE_N_STAR2, v, pos.u.l, &args->kw, &args->n_kw);
    }
    if (rc == 0) {
        args->pos = pos.u.l->v;
        args->n = pos.u.l->n;
    }
    return rc;
}

int
moe_template_calc_call(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tval caller, struct moe_tval *out)
{
    struct moe_tkeyword *kw;
    struct moe_targs args;
    struct moe_tval f;
    int rc;

    if ((rc = moe_template_calc(r, n->a, s, &f)) != 0 ||
        (rc = arguments(r, n->list, s, &args)) != 0)
        return rc;
    if (caller.kind != MOE_T_MISSING) {
        if ((kw = moe_template_value_alloc(r, args.n_kw + 1, sizeof(*kw))) == NULL)
            return MOE_T_FAILED;
        if (args.n_kw > 0)
            memcpy(kw, args.kw, args.n_kw * sizeof(*kw));
        kw[args.n_kw++] = (struct moe_tkeyword){ "caller", caller };
        args.kw = kw;
    }
    r->line = n->line;
    return moe_template_call(r, f, &args, out);
}

static int
call(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s, struct moe_tval *out)
{
    return moe_template_calc_call(r, n, s, (struct moe_tval){ .kind = MOE_T_MISSING }, out);
}

/* Filters and tests. */
static int
apply(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s, struct moe_tval *out)
{
    struct moe_targs args;
    struct moe_tval v;
    int rc = moe_template_calc(r, n->a, s, &v);

    if (rc == 0)
        rc = arguments(r, n->list, s, &args);
    if (rc != 0)
        return rc;
    r->line = n->line;
    if (n->fn == NULL)
        return moe_template_value_fail(r, "No %s named '%s' found.",
            n->type == MOE_N_FILTER ? "filter" : "test", n->name);
    return moe_template_function_call(r, n->fn, &v, &args, out);
}

/* ---- All ------------------------------------------------------------------------ */

static calc_fn *const CALC[] = {
    [MOE_N_CONST] = constant, [MOE_N_NAME] = name, [MOE_N_TUPLE] = sequence,
    [MOE_N_LIST] = sequence, [MOE_N_DICT] = dict, [MOE_N_COND] = cond, [MOE_N_OR] = decide,
    [MOE_N_AND] = decide, [MOE_N_NOT] = negate, [MOE_N_COMPARE] = compare,
    [MOE_N_BINARY] = binary, [MOE_N_CONCAT] = concat, [MOE_N_NEG] = sign, [MOE_N_POS] = sign,
    [MOE_N_GETATTR] = get_attr, [MOE_N_GETITEM] = get_item, [MOE_N_SLICE] = lone_slice,
    [MOE_N_CALL] = call, [MOE_N_FILTER] = apply, [MOE_N_TEST] = apply, [MOE_N_INPUT] = input,
};

int
moe_template_calc(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tval *out)
{
    int rc;

    *out = moe_template_value_none();
    if ((rc = moe_template_value_step(r, 1)) != 0 || (rc = moe_template_value_deeper(r)) != 0)
        return rc;
    r->line = n->line;
    rc = CALC[n->type](r, n, s, out);
    r->depth--;
    return rc;
}
