/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a compiled template: scopes, expressions, statements, calls. Shared by
 * template_eval.c (statements), template_calc.c (expressions), template_call.c
 * (what can be called) and template_access.c (attributes and items).
 */
#ifndef MOE_ENGINE_TEMPLATE_EVAL_H
#define MOE_ENGINE_TEMPLATE_EVAL_H

#include "common/engine/template_function.h"
#include "common/engine/template_node.h"
#include "common/engine/template_number.h"

struct moe_tvar { const char *name; struct moe_tval v; };

/* Names that are set; a macro keeps the scope it was made in. */
struct moe_tscope {
    struct moe_tscope *parent;
    struct moe_tvar *var;
    size_t n, cap;
};

struct moe_tmacro {
    const struct moe_tnode *n;
    struct moe_tscope *scope;
};

struct moe_tloop {
    const struct moe_tnode *n;
    struct moe_tscope *scope;       /* around the loop */
    const struct moe_tlist *items;
    size_t at;
    int level;                      /* of recursion, from 0 */
    struct moe_tval changed;        /* what changed() saw last */
};

enum moe_tflow { MOE_FLOW_ON, MOE_FLOW_BREAK, MOE_FLOW_CONTINUE };

/* ---- template_eval.c ---- */

/* A new scope inside of parent; NULL after an error. */
struct moe_tscope *moe_template_eval_scope(struct moe_trun *r, struct moe_tscope *parent);
/* Set a name in exactly this scope. */
int moe_template_eval_set(struct moe_trun *r, struct moe_tscope *s, const char *name,
    struct moe_tval v);
/* Set a target: a name, a tuple that is unpacked, a namespace's member. */
int moe_template_eval_assign(struct moe_trun *r, struct moe_tscope *s,
    const struct moe_tnode *target, struct moe_tval v);
int moe_template_eval(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tbuf *out, enum moe_tflow *flow);
/*
 * A for loop over v, for loop(v) too; *any tells whether some turn came to its
 * end without break or continue, which is when "else" does not run.
 */
int moe_template_eval_loop(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tval v, int level, struct moe_tbuf *out, bool *any);

/* ---- template_calc.c ---- */

int moe_template_calc(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tval *out);
/* The value of a call with one more keyword argument "caller" (MOE_T_MISSING: none). */
int moe_template_calc_call(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tval caller, struct moe_tval *out);
int moe_template_calc_name(struct moe_trun *r, const struct moe_tscope *s, const char *name,
    struct moe_tval *out);
/* The name under which a filter block's text stands in its scope. */
#define MOE_TEMPLATE_INPUT " input"

/* ---- template_binary.c ---- */

int moe_template_binary(struct moe_trun *r, enum moe_tnumber_op op, struct moe_tval a,
    struct moe_tval b, struct moe_tval *out);

/* ---- template_call.c ---- */

int moe_template_call(struct moe_trun *r, struct moe_tval f, const struct moe_targs *args,
    struct moe_tval *out);

/* ---- template_access.c ---- */

int moe_template_access_attr(struct moe_trun *r, struct moe_tval v, const char *name,
    struct moe_tval *out);
int moe_template_access_item(struct moe_trun *r, struct moe_tval v, struct moe_tval key,
    struct moe_tval *out);

#endif
