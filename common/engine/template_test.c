/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the tests that "is" applies: a table of rows.
 */
#include <string.h>

#include "common/engine/template_case.h"
#include "common/engine/template_compare.h"
#include "common/engine/template_function.h"
#include "common/engine/template_number.h"
#include "common/engine/template_print.h"

#define TEST(name) \
    name(struct moe_trun *r, struct moe_tval *a, const struct moe_targs *args, struct moe_tval *out)

static int
answer(struct moe_tval *out, bool yes)
{
    *out = moe_template_value_bool(yes);
    return 0;
}

/* ---- Kinds ----------------------------------------------------------------------- */

static int
TEST(is_defined)
{
    (void)r;
    (void)args;
    return answer(out, a[0].kind != MOE_T_UNDEFINED);
}

static int
TEST(is_undefined)
{
    (void)r;
    (void)args;
    return answer(out, a[0].kind == MOE_T_UNDEFINED);
}

static int
TEST(is_none)
{
    (void)r;
    (void)args;
    return answer(out, a[0].kind == MOE_T_NONE);
}

static int
TEST(is_boolean)
{
    (void)r;
    (void)args;
    return answer(out, a[0].kind == MOE_T_BOOL);
}

static int
TEST(is_true)
{
    (void)r;
    (void)args;
    return answer(out, a[0].kind == MOE_T_BOOL && a[0].u.b);
}

static int
TEST(is_false)
{
    (void)r;
    (void)args;
    return answer(out, a[0].kind == MOE_T_BOOL && !a[0].u.b);
}

static int
TEST(is_integer)
{
    (void)r;
    (void)args;
    return answer(out, a[0].kind == MOE_T_INT || a[0].kind == MOE_T_BIG);
}

static int
TEST(is_float)
{
    (void)r;
    (void)args;
    return answer(out, a[0].kind == MOE_T_FLOAT);
}

static int
TEST(is_number)
{
    (void)r;
    (void)args;
    return answer(out, moe_template_value_is_number(&a[0]));
}

static int
TEST(is_string)
{
    (void)r;
    (void)args;
    return answer(out, a[0].kind == MOE_T_STR);
}

static int
TEST(is_mapping)
{
    (void)r;
    (void)args;
    return answer(out, a[0].kind == MOE_T_DICT);
}

static int
TEST(is_iterable)
{
    enum moe_tkind k = a[0].kind;

    (void)r;
    (void)args;
    return answer(out, k == MOE_T_UNDEFINED || (k >= MOE_T_STR && k <= MOE_T_GENERATOR));
}

/* What has a length and items. */
static int
TEST(is_sequence)
{
    enum moe_tkind k = a[0].kind;

    (void)r;
    (void)args;
    return answer(out, k == MOE_T_UNDEFINED || (k >= MOE_T_STR && k <= MOE_T_RANGE));
}

static int
TEST(is_callable)
{
    enum moe_tkind k = a[0].kind;

    (void)r;
    (void)args;
    return answer(out, k == MOE_T_MACRO || k == MOE_T_METHOD || k == MOE_T_FUNCTION ||
        k == MOE_T_LOOP || k == MOE_T_JOINER || k == MOE_T_UNDEFINED);
}

static int
TEST(is_escaped)
{
    (void)r;
    (void)a;
    (void)args;
    return answer(out, false);
}

/* ---- Text and names ------------------------------------------------------------------ */

static int
cased(struct moe_trun *r, struct moe_tval v, bool upper, struct moe_tval *out)
{
    struct moe_tval text;
    int rc = moe_template_print_text(r, v, &text);

    return rc != 0 ? rc : answer(out, moe_template_case_is(text.u.s, upper));
}

static int
TEST(is_lower)
{
    (void)args;
    return cased(r, a[0], false, out);
}

static int
TEST(is_upper)
{
    (void)args;
    return cased(r, a[0], true, out);
}

/* Whether there is a filter or test of that name. */
static int
known(struct moe_trun *r, const struct moe_tval *v, bool filter, struct moe_tval *out)
{
    char name[64] = "";

    if (v->kind == MOE_T_LIST || v->kind == MOE_T_DICT)
        return moe_template_value_fail(r, "unhashable type: '%s'", moe_template_value_type(v));
    if (v->kind == MOE_T_STR && v->u.s->n < sizeof(name))
        memcpy(name, v->u.s->p, v->u.s->n);
    return answer(out, filter ? moe_template_filter(name) != NULL
        : moe_template_test(name) != NULL);
}

static int
TEST(is_filter)
{
    (void)args;
    return known(r, &a[0], true, out);
}

static int
TEST(is_test)
{
    (void)args;
    return known(r, &a[0], false, out);
}

/* ---- Numbers --------------------------------------------------------------------- */

static int
remainder_is(struct moe_trun *r, struct moe_tval v, struct moe_tval by, int64_t want,
    struct moe_tval *out)
{
    struct moe_tval m;
    int rc;

    if (!moe_template_value_is_number(&v) || !moe_template_value_is_number(&by))
        return moe_template_value_fail(r, "a number is expected, not %s",
            moe_template_value_type(moe_template_value_is_number(&v) ? &by : &v));
    if ((rc = moe_template_number_binary(r, MOE_TN_MOD, v, by, &m)) != 0)
        return rc;
    return answer(out, moe_template_number_order(m, moe_template_value_int(want)) == 0);
}

static int
TEST(is_odd)
{
    (void)args;
    return remainder_is(r, a[0], moe_template_value_int(2), 1, out);
}

static int
TEST(is_even)
{
    (void)args;
    return remainder_is(r, a[0], moe_template_value_int(2), 0, out);
}

static int
TEST(is_divisible)
{
    (void)args;
    return remainder_is(r, a[0], a[1], 0, out);
}

/* ---- Comparison -------------------------------------------------------------------- */

static int
TEST(is_eq)
{
    bool yes = false;
    int rc = moe_template_compare_equal(r, a[0], a[1], &yes);

    (void)args;
    return rc != 0 ? rc : answer(out, yes);
}

static int
TEST(is_ne)
{
    bool yes = false;
    int rc = moe_template_compare_equal(r, a[0], a[1], &yes);

    (void)args;
    return rc != 0 ? rc : answer(out, !yes);
}

static int
TEST(is_lt)
{
    int d = 0, rc = moe_template_compare_order(r, a[0], a[1], "<", &d);

    (void)args;
    return rc != 0 ? rc : answer(out, d == -1);
}

static int
TEST(is_le)
{
    int d = 0, rc = moe_template_compare_order(r, a[0], a[1], "<=", &d);

    (void)args;
    return rc != 0 ? rc : answer(out, d == -1 || d == 0);
}

static int
TEST(is_gt)
{
    int d = 0, rc = moe_template_compare_order(r, a[0], a[1], ">", &d);

    (void)args;
    return rc != 0 ? rc : answer(out, d == 1);
}

static int
TEST(is_ge)
{
    int d = 0, rc = moe_template_compare_order(r, a[0], a[1], ">=", &d);

    (void)args;
    return rc != 0 ? rc : answer(out, d == 1 || d == 0);
}

static int
TEST(is_in)
{
    bool yes = false;
    int rc = moe_template_compare_contains(r, a[1], a[0], &yes);

    (void)args;
    return rc != 0 ? rc : answer(out, yes);
}

/* One object: the same container, or an equal scalar of the same kind. */
static int
TEST(is_same)
{
    bool yes = false;
    int rc = 0;

    (void)args;
    if (a[0].kind == a[1].kind && a[0].kind < MOE_T_LIST)
        rc = moe_template_compare_equal(r, a[0], a[1], &yes);
    else
        yes = a[0].kind == a[1].kind && a[0].u.l == a[1].u.l;
    return rc != 0 ? rc : answer(out, yes);
}

/* ---- The table -------------------------------------------------------------------- */

static const struct moe_tfunction TESTS[] = {
    { "defined", 1, "value", is_defined }, { "undefined", 1, "value", is_undefined },
    { "none", 1, "value", is_none }, { "boolean", 1, "value", is_boolean },
    { "true", 1, "value", is_true }, { "false", 1, "value", is_false },
    { "integer", 1, "value", is_integer }, { "float", 1, "value", is_float },
    { "number", 1, "value", is_number }, { "string", 1, "value", is_string },
    { "mapping", 1, "value", is_mapping }, { "iterable", 1, "value", is_iterable },
    { "sequence", 1, "value", is_sequence }, { "callable", 1, "value", is_callable },
    { "escaped", 1, "value", is_escaped }, { "lower", 1, "value", is_lower },
    { "upper", 1, "value", is_upper }, { "filter", 1, "value", is_filter },
    { "test", 1, "value", is_test }, { "odd", 1, "value", is_odd },
    { "even", 1, "value", is_even }, { "divisibleby", 2, "value num", is_divisible },
    { "sameas", 2, "value other", is_same }, { "in", 2, "value seq", is_in },
    { "==", 2, "a b", is_eq }, { "eq", 2, "a b", is_eq }, { "equalto", 2, "a b", is_eq },
    { "!=", 2, "a b", is_ne }, { "ne", 2, "a b", is_ne }, { ">", 2, "a b", is_gt },
    { "gt", 2, "a b", is_gt }, { "greaterthan", 2, "a b", is_gt }, { ">=", 2, "a b", is_ge },
    { "ge", 2, "a b", is_ge }, { "<", 2, "a b", is_lt }, { "lt", 2, "a b", is_lt },
    { "lessthan", 2, "a b", is_lt }, { "<=", 2, "a b", is_le }, { "le", 2, "a b", is_le },
};

const struct moe_tfunction *
moe_template_test(const char *name)
{
    for (size_t i = 0; i < sizeof(TESTS) / sizeof(*TESTS); i++)
        if (strcmp(name, TESTS[i].name) == 0)
            return &TESTS[i];
    return NULL;
}
