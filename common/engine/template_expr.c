/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns parsing of expressions down to operators, in Jinja's order of binding
 * from the loosest (a if b else c) to the tightest (-a). What operators stand
 * between is template_primary.c's.
 */
#include <stdio.h>
#include <string.h>

#include "common/engine/template_node.h"
#include "common/engine/template_number.h"

/* ---- Tokens and nodes ---------------------------------------------------------------- */

struct moe_tnode *
moe_template_expr_node(struct moe_tparser *ps, enum moe_tnode_type type)
{
    struct moe_tnode *n = moe_template_value_alloc(ps->r, 1, sizeof(*n));

    if (n != NULL)
        *n = (struct moe_tnode){ .type = type, .line = ps->tok->line };
    return n;
}

void *
moe_template_expr_fail(struct moe_tparser *ps, const char *what)
{
    static const char *const names[] = { "the end of the template", "text", "the begin of a block",
        "the end of a block", "the begin of a print", "the end of a print" };

    ps->r->line = ps->tok->line;
    if (ps->r->rc == 0 && ps->tok->type <= MOE_TT_PRINT_END)
        (void)moe_template_value_fail(ps->r, "%s, got %s", what, names[ps->tok->type]);
    else if (ps->r->rc == 0)
        (void)moe_template_value_fail(ps->r, "%s, got '%s'", what, ps->tok->p);
    return NULL;
}

bool
moe_template_expr_is(const struct moe_tparser *ps, enum moe_ttype type, const char *text)
{
    return ps->tok->type == type && (text == NULL || strcmp(ps->tok->p, text) == 0);
}

bool
moe_template_expr_skip(struct moe_tparser *ps, enum moe_ttype type, const char *text)
{
    if (!moe_template_expr_is(ps, type, text))
        return false;
    ps->tok++;
    return true;
}

bool
moe_template_expr_expect(struct moe_tparser *ps, enum moe_ttype type, const char *text)
{
    char what[64];
    int n;

    if (moe_template_expr_skip(ps, type, text))
        return true;
    n = snprintf(what, sizeof(what), "expected '%s'",
        text != NULL ? text : type == MOE_TT_NAME ? "name" : "the end of the tag");
    if (n > 0)
        (void)moe_template_expr_fail(ps, what);
    return false;
}

const char *
moe_template_expr_name(struct moe_tparser *ps)
{
    const char *p = ps->tok->p;

    return moe_template_expr_expect(ps, MOE_TT_NAME, NULL) ? p : NULL;
}

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

/* A node with one or two operands; NULL when one of them failed. */
struct moe_tnode *
moe_template_expr_make(struct moe_tparser *ps, enum moe_tnode_type type, struct moe_tnode *a,
    struct moe_tnode *b)
{
    struct moe_tnode *n = a == NULL ? NULL : moe_template_expr_node(ps, type);

    if (n != NULL) {
        n->line = a->line;
        n->a = a;
        n->b = b;
    }
    return n;
}

/* Where a tuple without brackets ends. */
static bool
tuple_end(const struct moe_tparser *ps, const char *stop)
{
    return ps->tok->type == MOE_TT_PRINT_END || ps->tok->type == MOE_TT_BLOCK_END ||
        is_op(ps, ")") || (stop != NULL && is_name(ps, stop));
}

/*
 * One or more items with commas between. simple: names only (targets).
 * bracketed: "()" is a tuple as well.
 */
struct moe_tnode *
moe_template_expr_items(struct moe_tparser *ps, bool simple, bool with_cond, bool members,
    bool bracketed, const char *stop)
{
    struct moe_tnode *n = moe_template_expr_node(ps, MOE_N_TUPLE), **tail;
    bool is_tuple = false;

    if (n == NULL)
        return NULL;
    tail = &n->list;
    while (!tuple_end(ps, stop)) {
        *tail = simple ? moe_template_primary(ps, members) : moe_template_expr(ps, with_cond);
        if (*tail == NULL)
            return NULL;
        tail = &(*tail)->next;
        if (!skip_op(ps, ","))
            break;
        is_tuple = true;
    }
    if (!is_tuple && n->list != NULL)
        return n->list;
    if (!is_tuple && !bracketed)
        return moe_template_expr_fail(ps, "expected an expression");
    return n;
}

/* ---- Operators -------------------------------------------------------------------- */

static struct moe_tnode *
unary(struct moe_tparser *ps, bool with_filter)
{
    struct moe_tnode *n;

    if (moe_template_value_deeper(ps->r) != 0)
        return NULL;
    if (skip_op(ps, "-"))
        n = moe_template_expr_make(ps, MOE_N_NEG, unary(ps, false), NULL);
    else if (skip_op(ps, "+"))
        n = moe_template_expr_make(ps, MOE_N_POS, unary(ps, false), NULL);
    else
        n = moe_template_primary(ps, false);
    n = moe_template_primary_postfix(ps, n);
    if (with_filter)
        n = moe_template_primary_filtered(ps, n);
    ps->r->depth--;
    return n;
}

struct level { const char *text; int op; };

static const struct level POW[] = { { "**", MOE_TN_POW }, { NULL, 0 } };
static const struct level PRODUCT[] = { { "*", MOE_TN_MUL }, { "/", MOE_TN_DIV },
    { "//", MOE_TN_FLOORDIV }, { "%", MOE_TN_MOD }, { NULL, 0 } };
static const struct level SUM[] = { { "+", MOE_TN_ADD }, { "-", MOE_TN_SUB }, { NULL, 0 } };

static const struct level *
operator(const struct moe_tparser *ps, const struct level *of)
{
    for (; of->text != NULL; of++)
        if (is_op(ps, of->text))
            return of;
    return NULL;
}

static struct moe_tnode *
pow_expr(struct moe_tparser *ps)
{
    struct moe_tnode *n = unary(ps, true);
    const struct level *l;

    while (n != NULL && (l = operator(ps, POW)) != NULL) {
        ps->tok++;
        n = moe_template_expr_make(ps, MOE_N_BINARY, n, unary(ps, true));
        if (n != NULL)
            n->op = l->op;
        if (n != NULL && n->b == NULL)
            return NULL;
    }
    return n;
}

/* Operators of one level, from the left, over operands that next() reads. */
static struct moe_tnode *
left(struct moe_tparser *ps, const struct level *of,
    struct moe_tnode *(*next)(struct moe_tparser *))
{
    struct moe_tnode *n = next(ps);
    const struct level *l;

    while (n != NULL && (l = operator(ps, of)) != NULL) {
        ps->tok++;
        n = moe_template_expr_make(ps, MOE_N_BINARY, n, next(ps));
        if (n == NULL || n->b == NULL)
            return NULL;
        n->op = l->op;
    }
    return n;
}

static struct moe_tnode *
product(struct moe_tparser *ps)
{
    return left(ps, PRODUCT, pow_expr);
}

static struct moe_tnode *
concat(struct moe_tparser *ps)
{
    struct moe_tnode *first = product(ps), *n, **tail;

    if (first == NULL || !is_op(ps, "~"))
        return first;
    if ((n = moe_template_expr_node(ps, MOE_N_CONCAT)) == NULL)
        return NULL;
    n->list = first;
    for (tail = &first->next; skip_op(ps, "~"); tail = &(*tail)->next)
        if ((*tail = product(ps)) == NULL)
            return NULL;
    return n;
}

static struct moe_tnode *
sum(struct moe_tparser *ps)
{
    return left(ps, SUM, concat);
}

/* The comparison at the current token, gone past, or -1. */
static int
comparison(struct moe_tparser *ps)
{
    static const char *const ops[] = { "==", "!=", "<", "<=", ">", ">=" };

    for (int i = 0; i < 6; i++)
        if (skip_op(ps, ops[i]))
            return MOE_TC_EQ + i;
    if (skip_name(ps, "in"))
        return MOE_TC_IN;
    if (is_name(ps, "not") && ps->tok[1].type == MOE_TT_NAME &&
        strcmp(ps->tok[1].p, "in") == 0) {
        ps->tok += 2;
        return MOE_TC_NOTIN;
    }
    return -1;
}

static struct moe_tnode *
compare(struct moe_tparser *ps)
{
    struct moe_tnode *first = sum(ps), *n = NULL, **tail = NULL;
    int op;

    while (first != NULL && (op = comparison(ps)) >= 0) {
        if (n == NULL) {
            if ((n = moe_template_expr_make(ps, MOE_N_COMPARE, first, NULL)) == NULL)
                return NULL;
            tail = &n->list;
        }
        if ((*tail = moe_template_expr_node(ps, MOE_N_OPERAND)) == NULL ||
            ((*tail)->a = sum(ps)) == NULL)
            return NULL;
        (*tail)->op = op;
        tail = &(*tail)->next;
    }
    return n == NULL ? first : n;
}

static struct moe_tnode *
negation(struct moe_tparser *ps)
{
    struct moe_tnode *n;

    if (!skip_name(ps, "not"))
        return compare(ps);
    if (moe_template_value_deeper(ps->r) != 0)
        return NULL;
    n = moe_template_expr_make(ps, MOE_N_NOT, negation(ps), NULL);
    ps->r->depth--;
    return n;
}

static struct moe_tnode *
conjunction(struct moe_tparser *ps)
{
    struct moe_tnode *n = negation(ps);

    while (n != NULL && skip_name(ps, "and")) {
        n = moe_template_expr_make(ps, MOE_N_AND, n, negation(ps));
        if (n != NULL && n->b == NULL)
            return NULL;
    }
    return n;
}

static struct moe_tnode *
disjunction(struct moe_tparser *ps)
{
    struct moe_tnode *n = conjunction(ps);

    while (n != NULL && skip_name(ps, "or")) {
        n = moe_template_expr_make(ps, MOE_N_OR, n, conjunction(ps));
        if (n != NULL && n->b == NULL)
            return NULL;
    }
    return n;
}

static struct moe_tnode *
conditional(struct moe_tparser *ps)
{
    const struct moe_tnode *unknown = ps->unknown;
    struct moe_tnode *n;

    ps->unknown = NULL;
    n = disjunction(ps);
    while (n != NULL && skip_name(ps, "if")) {
        n = moe_template_expr_make(ps, MOE_N_COND, n, disjunction(ps));
        if (n == NULL || n->b == NULL)
            return NULL;
        if (skip_name(ps, "else") && (n->c = moe_template_expr(ps, true)) == NULL)
            return NULL;
        ps->unknown = NULL;     /* a part that may never be reached */
    }
    if (unknown != NULL)
        ps->unknown = unknown;
    return n;
}

struct moe_tnode *
moe_template_expr(struct moe_tparser *ps, bool with_cond)
{
    struct moe_tnode *n;

    if (moe_template_value_deeper(ps->r) != 0)
        return NULL;
    n = with_cond ? conditional(ps) : disjunction(ps);
    ps->r->depth--;
    return n;
}

struct moe_tnode *
moe_template_expr_tuple(struct moe_tparser *ps, bool with_cond, const char *stop)
{
    return moe_template_expr_items(ps, false, with_cond, false, false, stop);
}

/* Only names, their tuples and, where allowed, members can be set. */
static bool
settable(const struct moe_tnode *n, int depth)
{
    if (n->type == MOE_N_NAME || n->type == MOE_N_MEMBER)
        return true;
    if (n->type != MOE_N_TUPLE || depth == 0)
        return false;
    for (n = n->list; n != NULL; n = n->next)
        if (!settable(n, depth - 1))
            return false;
    return true;
}

struct moe_tnode *
moe_template_expr_target(struct moe_tparser *ps, bool with_tuple, bool members, const char *stop)
{
    struct moe_tnode *n = with_tuple
        ? moe_template_expr_items(ps, true, false, members, false, stop)
        : moe_template_primary(ps, members);

    if (n != NULL && !settable(n, 16))
        return moe_template_expr_fail(ps, "cannot be set");
    return n;
}
