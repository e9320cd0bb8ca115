/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of a compiled template, and what the parser's files share. Everything is in
 * the memory of the template and constant once it is compiled.
 */
#ifndef MOE_ENGINE_TEMPLATE_NODE_H
#define MOE_ENGINE_TEMPLATE_NODE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/engine/template_lex.h"
#include "common/engine/template_value.h"

enum moe_tnode_type {
    /* Statements; `next` is the statement after. */
    MOE_N_TEXT,         /* value */
    MOE_N_PRINT,        /* a */
    MOE_N_FOR,          /* a target, b iterable, c condition, body, other; flag: recursive */
    MOE_N_IF,           /* a condition, body, other */
    MOE_N_SET,          /* a target, b value */
    MOE_N_SET_BLOCK,    /* a target, b filters over an empty MOE_N_INPUT or NULL, body */
    MOE_N_WITH,         /* list of targets, each with its value in a; body */
    MOE_N_MACRO,        /* name, list of parameters (name, default in a), body; flags below */
    MOE_N_CALL_BLOCK,   /* a call, b an MOE_N_MACRO without name */
    MOE_N_FILTER_BLOCK, /* b filters over MOE_N_INPUT, body */
    MOE_N_BLOCK,        /* body in a scope of its own; flag: sees only the outermost scope */
    MOE_N_BREAK, MOE_N_CONTINUE,
    /* Expressions; `next` is the next of a list. */
    MOE_N_CONST,        /* value */
    MOE_N_NAME,         /* name */
    MOE_N_MEMBER,       /* name of a namespace, name2: target of set only */
    MOE_N_TUPLE, MOE_N_LIST,    /* list */
    MOE_N_DICT,         /* list of keys, each with its value in a MOE_N_PAIR: a key, b value */
    MOE_N_PAIR,
    MOE_N_COND,         /* a if b else c (or NULL) */
    MOE_N_OR, MOE_N_AND, MOE_N_NOT,
    MOE_N_COMPARE,      /* a, list of operands (MOE_N_OPERAND: op, a) */
    MOE_N_OPERAND,
    MOE_N_BINARY,       /* op: enum moe_tnumber_op; a, b */
    MOE_N_CONCAT,       /* list */
    MOE_N_NEG, MOE_N_POS,
    MOE_N_GETATTR,      /* a, name */
    MOE_N_GETITEM,      /* a, b */
    MOE_N_SLICE,        /* a, b, c: bounds or NULL */
    MOE_N_CALL,         /* a, list of arguments */
    MOE_N_FILTER,       /* a, name, fn, list of arguments */
    MOE_N_TEST,         /* a, name, fn, list of arguments */
    MOE_N_INPUT,        /* what a filter block is applied to */
    /* Arguments of special form. */
    MOE_N_KEYWORD,      /* name, a */
    MOE_N_STAR, MOE_N_STAR2     /* a */
};

enum moe_tcompare {
    MOE_TC_EQ, MOE_TC_NE, MOE_TC_LT, MOE_TC_LE, MOE_TC_GT, MOE_TC_GE, MOE_TC_IN, MOE_TC_NOTIN
};

struct moe_tnode {
    enum moe_tnode_type type;
    int op, line;
    bool flag;
    bool uses_caller, uses_varargs, uses_kwargs;    /* MOE_N_MACRO */
    const char *name, *name2;
    struct moe_tval value;
    const struct moe_tfunction *fn;     /* NULL: unknown, an error when it is reached */
    struct moe_tnode *a, *b, *c, *list, *body, *other, *next;
};

/* A compiled template. */
struct moe_template {
    struct moe_trun run;        /* its memory holds the tree */
    struct moe_tnode *body;
};

struct moe_tparser {
    struct moe_template *t;
    struct moe_trun *r;         /* &t->run */
    const struct moe_ttoken *tok;
    const struct moe_tnode *unknown;    /* filter or test that there is none of */
    bool soft;                  /* it is an error only when it is reached */
    int loops;                  /* loops that break and continue may leave */
    struct moe_tnode *macro;    /* that is being read */
    const char *blocks[256];
    size_t n_blocks;
};

/* ---- Tokens and expressions (template_expr.c) ---- */

struct moe_tnode *moe_template_expr_node(struct moe_tparser *ps, enum moe_tnode_type type);

/* An error at the current token; NULL. */
void *moe_template_expr_fail(struct moe_tparser *ps, const char *what);

bool moe_template_expr_is(const struct moe_tparser *ps, enum moe_ttype type, const char *text);
/* Go past the token if it is that. */
bool moe_template_expr_skip(struct moe_tparser *ps, enum moe_ttype type, const char *text);
/* The same, or an error. */
bool moe_template_expr_expect(struct moe_tparser *ps, enum moe_ttype type, const char *text);
/* The text of a name token, past it; NULL is an error. */
const char *moe_template_expr_name(struct moe_tparser *ps);

/* All from here return NULL after an error. */

/* A node with one or two operands; NULL also when a is. */
struct moe_tnode *moe_template_expr_make(struct moe_tparser *ps, enum moe_tnode_type type,
    struct moe_tnode *a, struct moe_tnode *b);
struct moe_tnode *moe_template_expr(struct moe_tparser *ps, bool with_cond);
/* Expressions with commas become a tuple; stop is a name that ends them, or NULL. */
struct moe_tnode *moe_template_expr_tuple(struct moe_tparser *ps, bool with_cond,
    const char *stop);
/* A name, a tuple of them, or with members a namespace's member. */
struct moe_tnode *moe_template_expr_target(struct moe_tparser *ps, bool with_tuple, bool members,
    const char *stop);
/*
 * One or more items with commas between. simple: primaries only. bracketed: no
 * item at all is a tuple as well.
 */
struct moe_tnode *moe_template_expr_items(struct moe_tparser *ps, bool simple, bool with_cond,
    bool members, bool bracketed, const char *stop);

/* ---- What stands between operators (template_primary.c) ---- */

/* A constant, a name, something in brackets. members: name.name is a namespace's member. */
struct moe_tnode *moe_template_primary(struct moe_tparser *ps, bool members);
/* .name, [item] and (arguments) that follow n. */
struct moe_tnode *moe_template_primary_postfix(struct moe_tparser *ps, struct moe_tnode *n);
/* Filters, tests and calls that follow n. */
struct moe_tnode *moe_template_primary_filtered(struct moe_tparser *ps, struct moe_tnode *n);
/* Filters, each behind a "|", over node; inline_first: the first has none before it. */
struct moe_tnode *moe_template_primary_filters(struct moe_tparser *ps, struct moe_tnode *node,
    bool inline_first);

/* ---- Statements (template_parse.c) ---- */

/* Compile n bytes of source. Errors: MOE_EFORMAT "name:line: what", MOE_ELIMIT, MOE_ENOMEM. */
int moe_template_parse(const char *src, size_t n, const char *name, struct moe_template **out,
    struct moe_err *e);
void moe_template_parse_free(struct moe_template *t);

#endif
