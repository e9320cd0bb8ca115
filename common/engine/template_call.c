/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns calling: macros with Jinja's rules for arguments, methods, functions,
 * recursive loops, cyclers and joiners.
 */
#include <string.h>

#include "common/engine/chat.h"
#include "common/engine/template_compare.h"
#include "common/engine/template_dict.h"
#include "common/engine/template_eval.h"

/* ---- Macros ------------------------------------------------------------------------ */

/* The keyword argument with that name, marked as taken; NULL if there is none. */
static const struct moe_tval *
take(const struct moe_targs *args, bool *taken, const char *name)
{
    for (size_t i = 0; i < args->n_kw; i++)
        if (!taken[i] && strcmp(args->kw[i].name, name) == 0) {
            taken[i] = true;
            return &args->kw[i].v;
        }
    return NULL;
}

/* Set the parameters; those without an argument get their default. */
static int
parameters(struct moe_trun *r, const struct moe_tmacro *m, const struct moe_targs *args,
    bool *taken, struct moe_tscope *s)
{
    size_t i = 0;
    int rc = 0;

    for (const struct moe_tnode *p = m->n->list; rc == 0 && p != NULL; p = p->next, i++) {
        const struct moe_tval *given = i < args->n ? &args->pos[i] : take(args, taken, p->name);
        struct moe_tval v;

        if (given != NULL)
            v = *given;
        else if (p->a != NULL)
            rc = moe_template_calc(r, p->a, s, &v);
        else
            rc = moe_template_value_undefined(r, &v, "parameter '%s' was not provided", p->name);
        if (rc == 0)
            rc = moe_template_eval_set(r, s, p->name, v);
    }
    if (rc == 0 && args->n > i && !m->n->uses_varargs)
        return moe_template_value_fail(r, "macro '%s' takes not more than %zu argument(s)",
            m->n->name, i);
    return rc;
}

/* varargs: positional arguments that are left. */
static int
set_varargs(struct moe_trun *r, const struct moe_tmacro *m, const struct moe_targs *args,
    struct moe_tscope *s)
{
    struct moe_tval rest;
    size_t i = 0;
    int rc = moe_template_value_list(r, MOE_T_TUPLE, 0, &rest);

    for (const struct moe_tnode *p = m->n->list; p != NULL; p = p->next)
        i++;
    for (; rc == 0 && i < args->n; i++)
        rc = moe_template_value_push(r, rest.u.l, args->pos[i]);
    return rc != 0 ? rc : moe_template_eval_set(r, s, "varargs", rest);
}

/* kwargs: keyword arguments that are left; without its use there may be none. */
static int
set_kwargs(struct moe_trun *r, const struct moe_tmacro *m, const struct moe_targs *args,
    const bool *taken, struct moe_tscope *s)
{
    struct moe_tval rest;
    int rc = moe_template_dict_new(r, &rest);

    for (size_t i = 0; rc == 0 && i < args->n_kw; i++) {
        struct moe_tval k;

        if (taken[i])
            continue;
        if (!m->n->uses_kwargs)
            return moe_template_value_fail(r, "macro '%s' takes no keyword argument '%s'",
                m->n->name, args->kw[i].name);
        rc = moe_template_value_str(r, args->kw[i].name, strlen(args->kw[i].name), false, &k);
        if (rc == 0)
            rc = moe_template_dict_set(r, rest.u.d, k, args->kw[i].v);
    }
    return rc != 0 || !m->n->uses_kwargs ? rc : moe_template_eval_set(r, s, "kwargs", rest);
}

static int
call_macro(struct moe_trun *r, const struct moe_tmacro *m, const struct moe_targs *args,
    struct moe_tval *out)
{
    struct moe_tscope *s = moe_template_eval_scope(r, m->scope);
    bool *taken = s == NULL ? NULL : moe_template_value_alloc(r, args->n_kw + 1, sizeof(*taken));
    enum moe_tflow flow = MOE_FLOW_ON;
    struct moe_tbuf text;
    int rc;

    if (taken == NULL)
        return MOE_T_FAILED;
    memset(taken, 0, (args->n_kw + 1) * sizeof(*taken));
    if (r->calls == MOE_CHAT_MAX_DEPTH)
        return moe_template_value_limit(r, "macros call each other too deep");
    if ((rc = parameters(r, m, args, taken, s)) != 0)
        return rc;
    if (m->n->uses_caller) {
        const struct moe_tval *caller = take(args, taken, "caller");
        struct moe_tval none;

        if ((rc = moe_template_value_undefined(r, &none, "No caller defined")) != 0 ||
            (rc = moe_template_eval_set(r, s, "caller", caller != NULL ? *caller : none)) != 0)
            return rc;
    }
    if ((rc = set_kwargs(r, m, args, taken, s)) != 0 ||
        (m->n->uses_varargs && (rc = set_varargs(r, m, args, s)) != 0))
        return rc;
    moe_template_value_begin(r, &text);
    r->calls++;
    rc = moe_template_eval(r, m->n->body, s, &text, &flow);
    r->calls--;
    return rc != 0 ? rc : moe_template_value_done(&text, out);
}

/* ---- Others ---------------------------------------------------------------------- */

/* loop(v) of a recursive loop. */
static int
call_loop(struct moe_trun *r, const struct moe_tloop *l, const struct moe_targs *args,
    struct moe_tval *out)
{
    struct moe_tbuf text;
    bool any;
    int rc;

    if (!l->n->flag)
        return moe_template_value_fail(r,
            "The loop must have the 'recursive' marker to be called recursively.");
    if (args->n != 1 || args->n_kw != 0)
        return moe_template_value_fail(r, "loop() takes one argument");
    if (r->calls == MOE_CHAT_MAX_DEPTH)
        return moe_template_value_limit(r, "a loop calls itself too deep");
    moe_template_value_begin(r, &text);
    r->calls++;
    rc = moe_template_eval_loop(r, l->n, l->scope, args->pos[0], l->level + 1, &text, &any);
    r->calls--;
    return rc != 0 ? rc : moe_template_value_done(&text, out);
}

/* The separator, but nothing the first time. */
static int
call_joiner(struct moe_trun *r, struct moe_tcycler *j, struct moe_tval *out)
{
    if (j->at++ == 0)
        return moe_template_value_str(r, "", 0, false, out);
    *out = (struct moe_tval){ .kind = MOE_T_STR, .u.s = j->sep };
    return 0;
}

int
moe_template_call(struct moe_trun *r, struct moe_tval f, const struct moe_targs *args,
    struct moe_tval *out)
{
    switch (f.kind) {
    case MOE_T_MACRO:
        return call_macro(r, f.u.macro, args, out);
    case MOE_T_METHOD:
        return moe_template_function_call(r, f.u.method->fn, &f.u.method->self, args, out);
    case MOE_T_FUNCTION:
        return moe_template_function_call(r, f.u.fn, NULL, args, out);
    case MOE_T_LOOP:
        return call_loop(r, f.u.loop, args, out);
    case MOE_T_JOINER:
        return call_joiner(r, f.u.cycler, out);
    case MOE_T_UNDEFINED:
        return moe_template_value_fail(r, "%.*s", (int)f.u.why->n, f.u.why->p);
    default:
        return moe_template_value_fail(r, "'%s' object is not callable",
            moe_template_value_type(&f));
    }
}
