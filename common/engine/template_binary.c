/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns operators over values that need not be numbers: joining and repeating of
 * strings and lists, formatting with %.
 */
#include "common/engine/chat.h"
#include "common/engine/template_eval.h"
#include "common/engine/template_format.h"

static const char *const SIGNS[] = { "+", "-", "*", "/", "//", "%", "** or pow()" };

static int
join_lists(struct moe_trun *r, const struct moe_tval *a, const struct moe_tval *b,
    struct moe_tval *out)
{
    int rc = moe_template_value_list(r, a->kind, a->u.l->n + b->u.l->n, out);

    for (size_t i = 0; rc == 0 && i < a->u.l->n; i++)
        rc = moe_template_value_push(r, out->u.l, a->u.l->v[i]);
    for (size_t i = 0; rc == 0 && i < b->u.l->n; i++)
        rc = moe_template_value_push(r, out->u.l, b->u.l->v[i]);
    return rc;
}

static int
add(struct moe_trun *r, const struct moe_tval *a, const struct moe_tval *b, bool *done,
    struct moe_tval *out)
{
    struct moe_tbuf text;
    int rc;

    *done = true;
    if (a->kind == MOE_T_STR || a->kind == MOE_T_LIST || a->kind == MOE_T_TUPLE) {
        if (a->kind != b->kind)
            return moe_template_value_fail(r, "can only concatenate %s (not \"%s\") to %s",
                moe_template_value_type(a), moe_template_value_type(b),
                moe_template_value_type(a));
        if (a->kind != MOE_T_STR)
            return join_lists(r, a, b, out);
        moe_template_value_begin(r, &text);
        if ((rc = moe_template_value_add_str(&text, a->u.s)) == 0)
            rc = moe_template_value_add_str(&text, b->u.s);
        return rc != 0 ? rc : moe_template_value_done(&text, out);
    }
    *done = false;
    return 0;
}

static int
repeat(struct moe_trun *r, const struct moe_tval *v, int64_t times, struct moe_tval *out)
{
    struct moe_tbuf text;
    int rc;

    if (times < 0)
        times = 0;
    if (v->kind == MOE_T_STR) {
        if (v->u.s->n > 0 && (uint64_t)times > MOE_CHAT_MAX_OUTPUT / v->u.s->n)
            return moe_template_value_limit(r, "a text grows too long");
        moe_template_value_begin(r, &text);
        rc = 0;
        for (int64_t i = 0; rc == 0 && v->u.s->n > 0 && i < times; i++)
            if ((rc = moe_template_value_step(r, 1)) == 0)
                rc = moe_template_value_add_str(&text, v->u.s);
        return rc != 0 ? rc : moe_template_value_done(&text, out);
    }
    rc = moe_template_value_list(r, v->kind, 0, out);
    for (int64_t i = 0; rc == 0 && v->u.l->n > 0 && i < times; i++)
        for (size_t k = 0; rc == 0 && k < v->u.l->n; k++)
            rc = moe_template_value_push(r, out->u.l, v->u.l->v[k]);
    return rc;
}

static bool
is_sequence(const struct moe_tval *v)
{
    return v->kind == MOE_T_STR || v->kind == MOE_T_LIST || v->kind == MOE_T_TUPLE;
}

static bool
is_count(const struct moe_tval *v)
{
    return v->kind == MOE_T_INT || v->kind == MOE_T_BOOL;
}

static int64_t
times(const struct moe_tval *v)
{
    return v->kind == MOE_T_BOOL ? v->u.b : v->u.i;
}

int
moe_template_binary(struct moe_trun *r, enum moe_tnumber_op op, struct moe_tval a,
    struct moe_tval b, struct moe_tval *out)
{
    bool done = false;
    int rc;

    if (moe_template_value_is_number(&a) && moe_template_value_is_number(&b))
        return moe_template_number_binary(r, op, a, b, out);
    if (op == MOE_TN_MOD && a.kind == MOE_T_STR)
        return moe_template_format_percent(r, a.u.s, b, out);
    if (a.kind == MOE_T_UNDEFINED || b.kind == MOE_T_UNDEFINED) {
        const struct moe_tstr *why = a.kind == MOE_T_UNDEFINED ? a.u.why : b.u.why;

        return moe_template_value_fail(r, "%.*s", (int)why->n, why->p);
    }
    if (op == MOE_TN_ADD && ((rc = add(r, &a, &b, &done, out)) != 0 || done))
        return rc;
    if (op == MOE_TN_MUL && is_sequence(&a) && is_count(&b))
        return repeat(r, &a, times(&b), out);
    if (op == MOE_TN_MUL && is_count(&a) && is_sequence(&b))
        return repeat(r, &b, times(&a), out);
    return moe_template_value_fail(r, "unsupported operand type(s) for %s: '%s' and '%s'",
        SIGNS[op], moe_template_value_type(&a), moe_template_value_type(&b));
}
