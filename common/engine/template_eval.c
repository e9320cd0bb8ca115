/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns execution of statements and the scopes of names.
 */
#include <string.h>

#include "common/engine/template_dict.h"
#include "common/engine/template_eval.h"
#include "common/engine/template_items.h"
#include "common/engine/template_print.h"

typedef int run_fn(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tbuf *out, enum moe_tflow *flow);

/* ---- Scopes ---------------------------------------------------------------------- */

struct moe_tscope *
moe_template_eval_scope(struct moe_trun *r, struct moe_tscope *parent)
{
    struct moe_tscope *s = moe_template_value_alloc(r, 1, sizeof(*s));

    if (s != NULL)
        *s = (struct moe_tscope){ .parent = parent };
    return s;
}

int
moe_template_eval_set(struct moe_trun *r, struct moe_tscope *s, const char *name,
    struct moe_tval v)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->var[i].name, name) == 0) {
            s->var[i].v = v;
            return 0;
        }
    if (s->n == s->cap) {
        size_t cap = s->cap == 0 ? 4 : 2 * s->cap;
        struct moe_tvar *p = moe_template_value_alloc(r, cap, sizeof(*p));

        if (p == NULL)
            return MOE_T_FAILED;
        if (s->n > 0)
            memcpy(p, s->var, s->n * sizeof(*p));
        s->var = p;
        s->cap = cap;
    }
    s->var[s->n++] = (struct moe_tvar){ name, v };
    return 0;
}

static int
unpack(struct moe_trun *r, struct moe_tscope *s, const struct moe_tnode *target,
    struct moe_tval v)
{
    const struct moe_tlist *items;
    size_t want = 0, i = 0;
    int rc = moe_template_items_all(r, v, &items);

    if (rc != 0)
        return rc;
    for (const struct moe_tnode *t = target->list; t != NULL; t = t->next)
        want++;
    if (items->n < want)
        return moe_template_value_fail(r, "not enough values to unpack (expected %zu, got %zu)",
            want, items->n);
    if (items->n > want)
        return moe_template_value_fail(r, "too many values to unpack (expected %zu)", want);
    for (const struct moe_tnode *t = target->list; rc == 0 && t != NULL; t = t->next)
        rc = moe_template_eval_assign(r, s, t, items->v[i++]);
    return rc;
}

int
moe_template_eval_assign(struct moe_trun *r, struct moe_tscope *s,
    const struct moe_tnode *target, struct moe_tval v)
{
    struct moe_tval of, key;
    int rc;

    if (target->type == MOE_N_TUPLE)
        return unpack(r, s, target, v);
    if (target->type == MOE_N_NAME)
        return moe_template_eval_set(r, s, target->name, v);
    if ((rc = moe_template_calc_name(r, s, target->name, &of)) != 0)
        return rc;
    if (of.kind != MOE_T_NAMESPACE)
        return moe_template_value_fail(r, "cannot assign attribute on non-namespace object");
    rc = moe_template_value_str(r, target->name2, strlen(target->name2), false, &key);
    return rc != 0 ? rc : moe_template_dict_set(r, of.u.d, key, v);
}

/* ---- Simple statements -------------------------------------------------------------- */

static int
run_text(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tbuf *out, enum moe_tflow *flow)
{
    (void)r;
    (void)s;
    (void)flow;
    return moe_template_value_add_str(out, n->value.u.s);
}

static int
run_print(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tbuf *out, enum moe_tflow *flow)
{
    struct moe_tval v;
    int rc = moe_template_calc(r, n->a, s, &v);

    (void)flow;
    return rc != 0 ? rc : moe_template_print_str(out, v);
}

static int
run_if(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tbuf *out, enum moe_tflow *flow)
{
    struct moe_tval v;
    int rc = moe_template_calc(r, n->a, s, &v);

    if (rc != 0)
        return rc;
    return moe_template_eval(r, moe_template_value_truth(&v) ? n->body : n->other, s, out, flow);
}

static int
run_set(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tbuf *out, enum moe_tflow *flow)
{
    struct moe_tval v;
    int rc = moe_template_calc(r, n->b, s, &v);

    (void)out;
    (void)flow;
    return rc != 0 ? rc : moe_template_eval_assign(r, s, n->a, v);
}

static int
run_jump(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tbuf *out, enum moe_tflow *flow)
{
    (void)r;
    (void)s;
    (void)out;
    *flow = n->type == MOE_N_BREAK ? MOE_FLOW_BREAK : MOE_FLOW_CONTINUE;
    return 0;
}

/* ---- Bodies with a scope of their own -------------------------------------------------- */

/* The text of a body, after the filters that n->b may hold. */
static int
captured(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    enum moe_tflow *flow, struct moe_tval *v)
{
    struct moe_tscope *in = moe_template_eval_scope(r, s);
    struct moe_tbuf text;
    int rc;

    if (in == NULL)
        return MOE_T_FAILED;
    moe_template_value_begin(r, &text);
    if ((rc = moe_template_eval(r, n->body, in, &text, flow)) != 0 ||
        (rc = moe_template_value_done(&text, v)) != 0 || n->b == NULL)
        return rc;
    if ((in = moe_template_eval_scope(r, s)) == NULL)
        return MOE_T_FAILED;
    rc = moe_template_eval_set(r, in, MOE_TEMPLATE_INPUT, *v);
    return rc != 0 ? rc : moe_template_calc(r, n->b, in, v);
}

static int
run_set_block(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tbuf *out, enum moe_tflow *flow)
{
    struct moe_tval v;
    int rc = captured(r, n, s, flow, &v);

    (void)out;
    return rc != 0 ? rc : moe_template_eval_assign(r, s, n->a, v);
}

static int
run_filter_block(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tbuf *out, enum moe_tflow *flow)
{
    struct moe_tval v;
    int rc = captured(r, n, s, flow, &v);

    return rc != 0 ? rc : moe_template_print_str(out, v);
}

static int
run_with(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tbuf *out, enum moe_tflow *flow)
{
    struct moe_tscope *in = moe_template_eval_scope(r, s);
    int rc = in == NULL ? MOE_T_FAILED : 0;

    for (const struct moe_tnode *i = n->list; rc == 0 && i != NULL; i = i->next) {
        struct moe_tval v;

        /* Values are those outside, not of the names just set. */
        if ((rc = moe_template_calc(r, i->b, s, &v)) == 0)
            rc = moe_template_eval_assign(r, in, i->a, v);
    }
    return rc != 0 ? rc : moe_template_eval(r, n->body, in, out, flow);
}

static int
run_block(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tbuf *out, enum moe_tflow *flow)
{
    struct moe_tscope *in;

    while (n->flag && s->parent != NULL)
        s = s->parent;
    in = moe_template_eval_scope(r, s);
    return in == NULL ? MOE_T_FAILED : moe_template_eval(r, n->body, in, out, flow);
}

/* ---- Macros ---------------------------------------------------------------------- */

static int
make_macro(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tval *out)
{
    struct moe_tmacro *m = moe_template_value_alloc(r, 1, sizeof(*m));

    if (m == NULL)
        return MOE_T_FAILED;
    *m = (struct moe_tmacro){ n, s };
    *out = (struct moe_tval){ .kind = MOE_T_MACRO, .u.macro = m };
    return 0;
}

static int
run_macro(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tbuf *out, enum moe_tflow *flow)
{
    struct moe_tval v;
    int rc = make_macro(r, n, s, &v);

    (void)out;
    (void)flow;
    return rc != 0 ? rc : moe_template_eval_set(r, s, n->name, v);
}

static int
run_call_block(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tbuf *out, enum moe_tflow *flow)
{
    struct moe_tval caller, v;
    int rc;

    (void)flow;
    if ((rc = make_macro(r, n->b, s, &caller)) != 0 ||
        (rc = moe_template_calc_call(r, n->a, s, caller, &v)) != 0)
        return rc;
    return moe_template_print_str(out, v);
}

/* ---- Loops ----------------------------------------------------------------------- */

/* The items for which the loop's condition holds. */
static int
chosen(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    const struct moe_tlist **items)
{
    const struct moe_tlist *all = *items;
    struct moe_tval list, yes;
    int rc = moe_template_value_list(r, MOE_T_LIST, 0, &list);

    for (size_t i = 0; rc == 0 && i < all->n; i++) {
        struct moe_tscope *in = moe_template_eval_scope(r, s);

        if (in == NULL)
            return MOE_T_FAILED;
        if ((rc = moe_template_eval_assign(r, in, n->a, all->v[i])) == 0 &&
            (rc = moe_template_calc(r, n->c, in, &yes)) == 0 && moe_template_value_truth(&yes))
            rc = moe_template_value_push(r, list.u.l, all->v[i]);
    }
    *items = list.u.l;
    return rc;
}

int
moe_template_eval_loop(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tval v, int level, struct moe_tbuf *out, bool *any)
{
    struct moe_tloop *l = moe_template_value_alloc(r, 1, sizeof(*l));
    const struct moe_tlist *items;
    enum moe_tflow flow = MOE_FLOW_ON;
    int rc;

    if (l == NULL)
        return MOE_T_FAILED;
    if ((rc = moe_template_items_all(r, v, &items)) != 0 ||
        (n->c != NULL && (rc = chosen(r, n, s, &items)) != 0))
        return rc;
    *l = (struct moe_tloop){ .n = n, .scope = s, .items = items, .level = level,
        .changed = { .kind = MOE_T_MISSING } };
    *any = false;
    for (; rc == 0 && l->at < items->n && flow != MOE_FLOW_BREAK; l->at++) {
        struct moe_tscope *in = moe_template_eval_scope(r, s);

        if (in == NULL)
            return MOE_T_FAILED;
        flow = MOE_FLOW_ON;
        rc = moe_template_eval_set(r, in, "loop",
            (struct moe_tval){ .kind = MOE_T_LOOP, .u.loop = l });
        if (rc == 0)
            rc = moe_template_eval_assign(r, in, n->a, items->v[l->at]);
        if (rc == 0)
            rc = moe_template_eval(r, n->body, in, out, &flow);
        *any = *any || flow == MOE_FLOW_ON;
    }
    return rc;
}

static int
run_for(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tbuf *out, enum moe_tflow *flow)
{
    struct moe_tscope *in;
    struct moe_tval v;
    bool any;
    int rc;

    if ((rc = moe_template_calc(r, n->b, s, &v)) != 0 ||
        (rc = moe_template_eval_loop(r, n, s, v, 0, out, &any)) != 0 || any || n->other == NULL)
        return rc;
    in = moe_template_eval_scope(r, s);
    return in == NULL ? MOE_T_FAILED : moe_template_eval(r, n->other, in, out, flow);
}

/* ---- All ------------------------------------------------------------------------ */

static run_fn *const RUN[] = {
    [MOE_N_TEXT] = run_text, [MOE_N_PRINT] = run_print, [MOE_N_FOR] = run_for,
    [MOE_N_IF] = run_if, [MOE_N_SET] = run_set, [MOE_N_SET_BLOCK] = run_set_block,
    [MOE_N_WITH] = run_with, [MOE_N_MACRO] = run_macro, [MOE_N_CALL_BLOCK] = run_call_block,
    [MOE_N_FILTER_BLOCK] = run_filter_block, [MOE_N_BLOCK] = run_block,
    [MOE_N_BREAK] = run_jump, [MOE_N_CONTINUE] = run_jump,
};

int
moe_template_eval(struct moe_trun *r, const struct moe_tnode *n, struct moe_tscope *s,
    struct moe_tbuf *out, enum moe_tflow *flow)
{
    int rc = moe_template_value_deeper(r);

    if (rc != 0)
        return rc;
    for (; rc == 0 && *flow == MOE_FLOW_ON && n != NULL; n = n->next) {
        if ((rc = moe_template_value_step(r, 1)) != 0)
            break;
        r->line = n->line;
        rc = RUN[n->type](r, n, s, out, flow);
    }
    r->depth--;
    return rc;
}
