/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns parsing of what stands between operators: constants, names, brackets, and
 * the attributes, items, calls, filters and tests behind them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/template_function.h"
#include "common/engine/template_node.h"
#include "common/engine/template_number.h"

static bool
is_op(const struct moe_tparser *ps, const char *text)
{
    return moe_template_expr_is(ps, MOE_TT_OP, text);
}

static bool
skip_op(struct moe_tparser *ps, const char *text)
{
    return moe_template_expr_skip(ps, MOE_TT_OP, text);
}

static bool
is_name(const struct moe_tparser *ps, const char *text)
{
    return moe_template_expr_is(ps, MOE_TT_NAME, text);
}

static bool
skip_name(struct moe_tparser *ps, const char *text)
{
    return moe_template_expr_skip(ps, MOE_TT_NAME, text);
}

/* ---- Primaries ------------------------------------------------------------------- */

static struct moe_tnode *
constant(struct moe_tparser *ps, struct moe_tval v)
{
    struct moe_tnode *n = moe_template_expr_node(ps, MOE_N_CONST);

    if (n != NULL) {
        n->value = v;
        if (v.kind == MOE_T_STR)
            (void)moe_template_value_chars(v.u.s);  /* counted once: the tree is shared */
    }
    return n;
}

static struct moe_tnode *
number(struct moe_tparser *ps)
{
    const struct moe_ttoken *t = ps->tok;
    struct moe_tval v = { 0 };
    char text[64];
    size_t n = 0;
    int base = 10;
    bool ok;

    if (t->type == MOE_TT_FLOAT) {
        for (size_t i = 0; i < t->n && n + 1 < sizeof(text); i++)
            if (t->p[i] != '_')
                text[n++] = t->p[i];
        text[n] = '\0';
        if (n + 1 == sizeof(text))
            return moe_template_expr_fail(ps, "a number is too long");
        ps->tok++;
        return constant(ps, moe_template_value_float(strtod(text, NULL)));
    }
    if (t->n > 2 && t->p[0] == '0' && (t->p[1] | 0x20) >= 'a') {
        base = (t->p[1] | 0x20) == 'x' ? 16 : (t->p[1] | 0x20) == 'o' ? 8 : 2;
        n = t->p[2] == '_' ? 3 : 2;
    }
    if (moe_template_number_parse(ps->r, t->p + n, t->n - n, base, &ok, &v) != 0)
        return NULL;
    if (!ok)
        return moe_template_expr_fail(ps, "no number");
    ps->tok++;
    return constant(ps, v);
}

/* Strings that stand side by side are one. */
static struct moe_tnode *
string(struct moe_tparser *ps)
{
    struct moe_tbuf b;
    struct moe_tval v;

    moe_template_value_begin(ps->r, &b);
    for (; ps->tok->type == MOE_TT_STRING; ps->tok++)
        if (moe_template_value_add(&b, ps->tok->p, ps->tok->n, false) != 0)
            return NULL;
    return moe_template_value_done(&b, &v) != 0 ? NULL : constant(ps, v);
}

static struct moe_tnode *
name(struct moe_tparser *ps, bool members)
{
    static const struct { const char *name; enum moe_tkind kind; bool b; } words[] = {
        { "true", MOE_T_BOOL, true }, { "True", MOE_T_BOOL, true },
        { "false", MOE_T_BOOL, false }, { "False", MOE_T_BOOL, false },
        { "none", MOE_T_NONE, false }, { "None", MOE_T_NONE, false },
    };
    const char *text = ps->tok->p;
    struct moe_tnode *n;

    ps->tok++;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(text, words[i].name) == 0)
            return constant(ps, words[i].kind == MOE_T_BOOL
                ? moe_template_value_bool(words[i].b) : moe_template_value_none());
    n = moe_template_expr_node(ps, MOE_N_NAME);
    if (n == NULL)
        return NULL;
    n->name = text;
    if (ps->macro != NULL) {
        ps->macro->uses_caller |= strcmp(text, "caller") == 0;
        ps->macro->uses_varargs |= strcmp(text, "varargs") == 0;
        ps->macro->uses_kwargs |= strcmp(text, "kwargs") == 0;
    }
    if (members && skip_op(ps, ".")) {
        n->type = MOE_N_MEMBER;
        if ((n->name2 = moe_template_expr_name(ps)) == NULL)
            return NULL;
    }
    return n;
}

static struct moe_tnode *
list(struct moe_tparser *ps)
{
    struct moe_tnode *n = moe_template_expr_node(ps, MOE_N_LIST), **tail;

    if (n == NULL)
        return NULL;
    tail = &n->list;
    while (!is_op(ps, "]")) {
        if (n->list != NULL && !moe_template_expr_expect(ps, MOE_TT_OP, ","))
            return NULL;
        if (is_op(ps, "]"))
            break;
        if ((*tail = moe_template_expr(ps, true)) == NULL)
            return NULL;
        tail = &(*tail)->next;
    }
    ps->tok++;
    return n;
}

static struct moe_tnode *
dict(struct moe_tparser *ps)
{
    struct moe_tnode *n = moe_template_expr_node(ps, MOE_N_DICT), **tail;

    if (n == NULL)
        return NULL;
    tail = &n->list;
    while (!is_op(ps, "}")) {
        if (n->list != NULL && !moe_template_expr_expect(ps, MOE_TT_OP, ","))
            return NULL;
        if (is_op(ps, "}"))
            break;
        if ((*tail = moe_template_expr_node(ps, MOE_N_PAIR)) == NULL ||
            ((*tail)->a = moe_template_expr(ps, true)) == NULL ||
            !moe_template_expr_expect(ps, MOE_TT_OP, ":") ||
            ((*tail)->b = moe_template_expr(ps, true)) == NULL)
            return NULL;
        tail = &(*tail)->next;
    }
    ps->tok++;
    return n;
}

struct moe_tnode *
moe_template_primary(struct moe_tparser *ps, bool members)
{
    struct moe_tnode *n;

    switch (ps->tok->type) {
    case MOE_TT_NAME:
        return name(ps, members);
    case MOE_TT_STRING:
        return string(ps);
    case MOE_TT_INT:
    case MOE_TT_FLOAT:
        return number(ps);
    default:
        break;
    }
    if (skip_op(ps, "(")) {
        n = moe_template_expr_items(ps, false, true, false, true, NULL);
        return n != NULL && moe_template_expr_expect(ps, MOE_TT_OP, ")") ? n : NULL;
    }
    if (skip_op(ps, "["))
        return list(ps);
    if (skip_op(ps, "{"))
        return dict(ps);
    return moe_template_expr_fail(ps, "expected an expression");
}

/* ---- After a primary ---------------------------------------------------------------- */

/* Arguments up to the closing bracket; the opening one has been read. */
static bool
arguments(struct moe_tparser *ps, struct moe_tnode **tail)
{
    bool keyword = false, first = true;

    for (; !is_op(ps, ")"); first = false) {
        enum moe_tnode_type type = MOE_N_CONST;
        const char *key = NULL;

        if (!first && !moe_template_expr_expect(ps, MOE_TT_OP, ","))
            return false;
        if (is_op(ps, ")"))
            break;
        if (skip_op(ps, "**"))
            type = MOE_N_STAR2;
        else if (skip_op(ps, "*"))
            type = MOE_N_STAR;
        else if (ps->tok->type == MOE_TT_NAME && ps->tok[1].type == MOE_TT_OP &&
            strcmp(ps->tok[1].p, "=") == 0) {
            type = MOE_N_KEYWORD;
            key = ps->tok->p;
            ps->tok += 2;
        } else if (keyword) {
            (void)moe_template_expr_fail(ps, "a positional argument after a keyword");
            return false;
        }
        keyword = keyword || type != MOE_N_CONST;
        if (type == MOE_N_CONST) {
            *tail = moe_template_expr(ps, true);
        } else if ((*tail = moe_template_expr_node(ps, type)) != NULL) {
            (*tail)->name = key;
            if (((*tail)->a = moe_template_expr(ps, true)) == NULL)
                return false;
        }
        if (*tail == NULL)
            return false;
        tail = &(*tail)->next;
    }
    ps->tok++;
    return true;
}

/* What stands between square brackets: an expression, a slice, or several of them. */
static struct moe_tnode *
subscribed(struct moe_tparser *ps)
{
    struct moe_tnode *n, *first = NULL, **part[2];

    if (!is_op(ps, ":") && (first = moe_template_expr(ps, true)) == NULL)
        return NULL;
    if (!is_op(ps, ":"))
        return first;
    if ((n = moe_template_expr_node(ps, MOE_N_SLICE)) == NULL)
        return NULL;
    n->a = first;
    part[0] = &n->b;
    part[1] = &n->c;
    for (int i = 0; i < 2 && skip_op(ps, ":"); i++)
        if (!is_op(ps, ":") && !is_op(ps, "]") && !is_op(ps, ",") &&
            (*part[i] = moe_template_expr(ps, true)) == NULL)
            return NULL;
    return n;
}

static struct moe_tnode *
subscript(struct moe_tparser *ps, struct moe_tnode *of)
{
    struct moe_tnode *n = moe_template_expr_make(ps, MOE_N_GETITEM, of, NULL), **tail;

    if (n == NULL || (n->b = subscribed(ps)) == NULL)
        return NULL;
    if (is_op(ps, ",")) {
        struct moe_tnode *first = n->b;

        if ((n->b = moe_template_expr_node(ps, MOE_N_TUPLE)) == NULL)
            return NULL;
        n->b->list = first;
        for (tail = &first->next; skip_op(ps, ",") && !is_op(ps, "]"); tail = &(*tail)->next)
            if ((*tail = subscribed(ps)) == NULL)
                return NULL;
    }
    return moe_template_expr_expect(ps, MOE_TT_OP, "]") ? n : NULL;
}

static struct moe_tnode *
attribute(struct moe_tparser *ps, struct moe_tnode *of)
{
    struct moe_tnode *n;

    if (ps->tok->type == MOE_TT_NAME) {
        if ((n = moe_template_expr_make(ps, MOE_N_GETATTR, of, NULL)) != NULL)
            n->name = (ps->tok++)->p;
        return n;
    }
    if (ps->tok->type != MOE_TT_INT)
        return moe_template_expr_fail(ps, "expected a name or a number");
    n = number(ps);
    return n == NULL ? NULL : moe_template_expr_make(ps, MOE_N_GETITEM, of, n);
}

static struct moe_tnode *
call(struct moe_tparser *ps, struct moe_tnode *of)
{
    struct moe_tnode *n = moe_template_expr_make(ps, MOE_N_CALL, of, NULL);

    return n != NULL && arguments(ps, &n->list) ? n : NULL;
}

/* .name, [item] and (arguments), as many as follow. */
struct moe_tnode *
moe_template_primary_postfix(struct moe_tparser *ps, struct moe_tnode *n)
{
    while (n != NULL) {
        if (skip_op(ps, "."))
            n = attribute(ps, n);
        else if (skip_op(ps, "["))
            n = subscript(ps, n);
        else if (skip_op(ps, "("))
            n = call(ps, n);
        else
            break;
    }
    return n;
}

/* A dotted name of a filter or test. */
static const char *
dotted(struct moe_tparser *ps)
{
    const char *text = moe_template_expr_name(ps);

    while (text != NULL && skip_op(ps, ".")) {
        const char *more = moe_template_expr_name(ps);
        size_t n = strlen(text), m = more == NULL ? 0 : strlen(more);
        char *p = more == NULL ? NULL : moe_template_value_alloc(ps->r, n + m + 2, 1);

        if (p == NULL)
            return NULL;
        (void)snprintf(p, n + m + 2, "%s.%s", text, more);
        text = p;
    }
    return text;
}

struct moe_tnode *
moe_template_primary_filters(struct moe_tparser *ps, struct moe_tnode *n, bool inline_first)
{
    while (n != NULL && (inline_first || skip_op(ps, "|"))) {
        inline_first = false;
        if ((n = moe_template_expr_make(ps, MOE_N_FILTER, n, NULL)) == NULL ||
            (n->name = dotted(ps)) == NULL)
            return NULL;
        n->fn = moe_template_filter(n->name);
        if (n->fn == NULL && ps->unknown == NULL)
            ps->unknown = n;
        if (skip_op(ps, "(") && !arguments(ps, &n->list))
            return NULL;
    }
    return n;
}

/* After "is". */
static struct moe_tnode *
test(struct moe_tparser *ps, struct moe_tnode *of)
{
    bool negated = skip_name(ps, "not");
    struct moe_tnode *n = moe_template_expr_make(ps, MOE_N_TEST, of, NULL);

    if (n == NULL || (n->name = dotted(ps)) == NULL)
        return NULL;
    n->fn = moe_template_test(n->name);
    if (n->fn == NULL && ps->unknown == NULL)
        ps->unknown = n;
    if (skip_op(ps, "(")) {
        if (!arguments(ps, &n->list))
            return NULL;
    } else if (ps->tok->type == MOE_TT_STRING || ps->tok->type == MOE_TT_INT ||
        ps->tok->type == MOE_TT_FLOAT || is_op(ps, "[") || is_op(ps, "{") ||
        (ps->tok->type == MOE_TT_NAME && !is_name(ps, "else") && !is_name(ps, "or") &&
            !is_name(ps, "and"))) {
        if (is_name(ps, "is"))
            return moe_template_expr_fail(ps, "tests cannot be chained with is");
        if ((n->list = moe_template_primary_postfix(ps, moe_template_primary(ps, false))) == NULL)
            return NULL;
    }
    return negated ? moe_template_expr_make(ps, MOE_N_NOT, n, NULL) : n;
}

struct moe_tnode *
moe_template_primary_filtered(struct moe_tparser *ps, struct moe_tnode *n)
{
    while (n != NULL) {
        if (is_op(ps, "|"))
            n = moe_template_primary_filters(ps, n, false);
        else if (skip_name(ps, "is"))
            n = test(ps, n);
        else if (skip_op(ps, "("))
            n = call(ps, n);
        else
            break;
    }
    return n;
}

