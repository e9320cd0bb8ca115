/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the values of flat conjunctions that are no containers: constants,
 * numbers, strings; and what numbers and counts of several schemas add up to.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/schema_parts.h"
#include "common/engine/spell.h"

size_t
moe_schema_value_most(const struct moe_schema_list *flat, const char *key, size_t fallback)
{
    bool any = false;
    size_t n = 0;

    for (size_t i = 0; i < flat->n; i++) {
        const json_t *v = json_object_get(flat->s[i], key);
        double x = json_number_value(v);
        size_t k = x >= 1e15 ? (size_t)1000000000000000 : x > 0 ? (size_t)x : 0;

        if (v != NULL && k >= n)
            n = k;
        any = any || v != NULL;
    }
    return any ? n : fallback;
}

size_t
moe_schema_value_least(const struct moe_schema_list *flat, const char *key, size_t fallback)
{
    size_t n = SIZE_MAX;

    for (size_t i = 0; i < flat->n; i++) {
        const json_t *v = json_object_get(flat->s[i], key);
        double x = json_number_value(v);
        size_t k = x >= 1e15 ? (size_t)1000000000000000 : x > 0 ? (size_t)x : 0;

        if (v != NULL && k < n)
            n = k;
    }
    return n == SIZE_MAX ? fallback : n;
}

/* ---- Numbers --------------------------------------------------------------------- */

int
moe_schema_value_decimal(struct moe_schema_build *b, const json_t *v, struct moe_decimal *out)
{
    char text[64];
    int n = 0;

    if (json_is_integer(v)) {
        n = snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(v));
    } else {
        /* The fewest digits that read back the same: what the file had. */
        for (int digits = 15; digits <= 17; digits++) {
            n = snprintf(text, sizeof(text), "%.*e", digits - 1, json_number_value(v));
            if (strtod(text, NULL) == json_number_value(v))
                break;
        }
    }
    return moe_numberset_decimal(text, (size_t)n, out, b->e);
}

static int
add_bounds(struct moe_schema_build *b, const json_t *s, struct moe_numberset *set)
{
    static const struct { const char *key; enum moe_bound kind; } bounds[] = {
        { "minimum", MOE_BOUND_MIN }, { "exclusiveMinimum", MOE_BOUND_ABOVE },
        { "maximum", MOE_BOUND_MAX }, { "exclusiveMaximum", MOE_BOUND_BELOW } };
    static const char *const multiples[] = { "multipleOf", MOE_SCHEMA_NO_MULTIPLE };
    struct moe_decimal d;
    const json_t *v;
    int rc = 0;

    for (int i = 0; rc == 0 && i < 4; i++) {
        if ((v = json_object_get(s, bounds[i].key)) != NULL
            && (rc = moe_schema_value_decimal(b, v, &d)) == 0)
            rc = moe_numberset_bound(set, bounds[i].kind, &d, b->e);
    }
    for (int i = 0; rc == 0 && i < 2; i++) {
        if ((v = json_object_get(s, multiples[i])) == NULL)
            continue;
        if ((rc = moe_schema_value_decimal(b, v, &d)) == 0)
            rc = moe_numberset_multiple(set, &d, i == 0, b->e);
    }
    return rc;
}

/* Numbers of the flat conjunction; only is NULL or the one that may be. */
static int
numbers(struct moe_schema_build *b, const struct moe_schema_list *flat, unsigned types,
    const json_t *only, uint32_t from, uint32_t to)
{
    static const struct moe_decimal one = { .point = 1, .n = 1, .d = { 1 } };
    struct moe_numberset *set = moe_arena_get(&b->arena, sizeof(*set));
    struct moe_decimal d;
    int rc = 0;

    if (set == NULL)
        return moe_err_set(b->e, MOE_ENOMEM, "out of memory");
    set->n_bounds = set->n_multiples = 0;
    for (size_t i = 0; rc == 0 && i < flat->n; i++)
        rc = add_bounds(b, flat->s[i], set);
    if (rc == 0 && only != NULL && (rc = moe_schema_value_decimal(b, only, &d)) == 0
        && (rc = moe_numberset_bound(set, MOE_BOUND_MIN, &d, b->e)) == 0)
        rc = moe_numberset_bound(set, MOE_BOUND_MAX, &d, b->e);
    if (rc == 0 && only == NULL && (types & MOE_SCHEMA_FRACTION) == 0)
        rc = moe_numberset_multiple(set, &one, true, b->e);
    if (rc == 0 && only == NULL && (types & MOE_SCHEMA_INT) == 0)
        rc = moe_numberset_multiple(set, &one, false, b->e);
    return rc != 0 || (rc = moe_schema_spend(b, only == NULL ? 2000 : 500)) != 0 ? rc
        : moe_numberset_add(b->g, from, set, to, b->e);
}

/* ---- Strings --------------------------------------------------------------------- */

int
moe_schema_value_strings(struct moe_schema_build *b, const struct moe_schema_list *flat,
    struct moe_stringset *s)
{
    struct moe_stringset_word *w = NULL;
    size_t n = 0, k = 0;
    int rc;

    *s = (struct moe_stringset){ .min = moe_schema_value_most(flat, "minLength", 0),
        .max = moe_schema_value_least(flat, "maxLength", SIZE_MAX), .any = b->any };
    for (size_t i = 0; i < flat->n; i++)
        n += json_array_size(json_object_get(flat->s[i], MOE_SCHEMA_WITHOUT));
    if (n > 0 && (w = moe_arena_get(&b->arena, n * sizeof(*w))) == NULL)
        return moe_err_set(b->e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < flat->n; i++) {
        const json_t *p = json_object_get(flat->s[i], "pattern");
        const json_t *no = json_object_get(flat->s[i], MOE_SCHEMA_WITHOUT);

        if (p != NULL && s->n_need == MOE_STRINGSET_MAX_PATTERNS)
            return moe_err_set(b->e, MOE_ELIMIT, "more than %d patterns at once",
                MOE_STRINGSET_MAX_PATTERNS);
        if (p != NULL && (rc = moe_schema_regex(b, json_string_value(p), json_string_length(p),
            &s->need[s->n_need++])) != 0)
            return rc;
        for (size_t j = 0; j < json_array_size(no); j++) {
            const json_t *v = json_array_get(no, j);

            if (w != NULL && json_is_string(v))
                w[k++] = (struct moe_stringset_word){ json_string_value(v),
                    json_string_length(v) };
        }
    }
    s->without = w;
    s->n_without = k;
    return 0;
}

static uint32_t
lead(void *ctx, uint32_t told)
{
    (void)told;
    return *(const uint32_t *)ctx;
}

static int
strings(struct moe_schema_build *b, const struct moe_schema_list *flat, uint32_t from,
    uint32_t to)
{
    struct moe_stringset s;
    int rc = moe_schema_value_strings(b, flat, &s);

    if (rc == 0 && s.n_need == 0 && s.n_without == 0 && s.min == 0 && s.max == SIZE_MAX) {
        uint32_t at = moe_grammar_text(b->g, from, "\"", 1);

        moe_grammar_call(b->g, at, b->any, at);
        moe_grammar_bytes(b->g, at, '"', '"', to);
        return 0;
    }
    if (rc == 0 && s.max < s.min)
        return 0;
    if (rc == 0)
        rc = moe_schema_spend(b, 2000);
    return rc != 0 ? rc : moe_stringset_add(b->g, from, &s, lead, &to, b->e);
}

/* ---- Constants ------------------------------------------------------------------- */

/* A value in full, containers as our own texts space them. Its depth is the file's. */
static int
constant(struct moe_schema_build *b, const json_t *v, uint32_t from, uint32_t to)
{
    static const struct moe_schema_list free_list = { NULL, 0 };
    const char *key;
    json_t *member;
    size_t n, i = 0;
    uint32_t at;
    int rc = moe_schema_spend(b, 20);

    if (rc != 0)
        return rc;
    switch (json_typeof(v)) {
    case JSON_NULL: at = moe_grammar_text(b->g, from, "null", 4); break;
    case JSON_TRUE: at = moe_grammar_text(b->g, from, "true", 4); break;
    case JSON_FALSE: at = moe_grammar_text(b->g, from, "false", 5); break;
    case JSON_STRING:
        at = moe_spell_string(b->g, from, json_string_value(v), json_string_length(v));
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        at = moe_grammar_text(b->g, from, json_is_array(v) ? "[" : "{", 1);
        for (; i < json_array_size(v); i++) {
            uint32_t next = moe_grammar_state(b->g), after = moe_grammar_state(b->g);

            if (i > 0)
                at = moe_grammar_text(b->g, at, ",", 1);
            moe_grammar_call(b->g, at, b->blank, next);
            if ((rc = constant(b, json_array_get(v, i), next, after)) != 0)
                return rc;
            at = after;
        }
        json_object_keylen_foreach ((json_t *)(uintptr_t)v, key, n, member) {
            uint32_t name = moe_grammar_state(b->g), value = moe_grammar_state(b->g);
            uint32_t after = moe_grammar_state(b->g);

            if (i++ > 0)
                at = moe_grammar_text(b->g, at, ",", 1);
            moe_grammar_call(b->g, at, b->blank, name);
            at = moe_grammar_text(b->g, moe_spell_string(b->g, name, key, n), ":", 1);
            moe_grammar_call(b->g, at, b->blank, value);
            if ((rc = constant(b, member, value, after)) != 0)
                return rc;
            at = after;
        }
        from = moe_grammar_state(b->g);
        moe_grammar_call(b->g, at, b->blank, from);
        at = moe_grammar_text(b->g, from, json_is_array(v) ? "]" : "}", 1);
        break;
    case JSON_INTEGER:
    case JSON_REAL:
        return numbers(b, &free_list, MOE_SCHEMA_ALL, v, from, to);
    default: return 0;
    }
    moe_grammar_jump(b->g, at, to);
    return 0;
}

static bool
same(const json_t *x, const json_t *y)
{
    if (json_is_number(x) && json_is_number(y))
        return json_number_value(x) == json_number_value(y)
            && (json_is_real(x) || json_is_real(y) || json_integer_value(x)
            == json_integer_value(y));
    return json_equal(x, y);
}

/* Whether v is the constant, or one of the list, of a schema that has such. */
static bool
is_listed(const json_t *s, const json_t *v)
{
    const json_t *only = json_object_get(s, "const"), *list = json_object_get(s, "enum");
    const json_t *no = json_object_get(s, MOE_SCHEMA_WITHOUT);
    bool found = list == NULL;

    for (size_t i = 0; !found && i < json_array_size(list); i++)
        found = same(json_array_get(list, i), v);
    for (size_t i = 0; found && i < json_array_size(no); i++)
        found = !same(json_array_get(no, i), v);
    return found && (only == NULL || same(only, v));
}

/* A container that is listed is not looked into: other keywords must not ask for it. */
static int
check_plain(struct moe_schema_build *b, const struct moe_schema_list *flat)
{
    static const char *const keys[] = { "properties", "required", "patternProperties",
        "additionalProperties", "propertyNames", "minProperties", "maxProperties", "prefixItems",
        "items", "contains", "minItems", "maxItems" };

    for (size_t i = 0; i < flat->n; i++) {
        for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++) {
            if (json_object_get(flat->s[i], keys[k]) != NULL)
                return moe_err_set(b->e, MOE_EUNSUP, "%s beside a constant array or object",
                    keys[k]);
        }
    }
    return 0;
}

static int
listed(struct moe_schema_build *b, const struct moe_schema_list *flat, unsigned types,
    const json_t *v, uint32_t from, uint32_t to)
{
    struct moe_stringset s;
    bool yes = true;
    int rc = moe_schema_spend(b, flat->n + 10);

    if (rc != 0 || (moe_schema_flat_type(v) & types) == 0)
        return rc;
    for (size_t i = 0; yes && i < flat->n; i++)
        yes = is_listed(flat->s[i], v);
    if (!yes)
        return 0;
    if (json_is_number(v))
        return numbers(b, flat, types, v, from, to);
    if (json_is_string(v)) {
        if ((rc = moe_schema_value_strings(b, flat, &s)) != 0
            || (rc = moe_stringset_has(&s, json_string_value(v), json_string_length(v), &yes,
            b->e)) != 0 || !yes)
            return rc;
    }
    if ((json_is_array(v) || json_is_object(v)) && (rc = check_plain(b, flat)) != 0)
        return rc;
    return constant(b, v, from, to);
}

/* Whether null, true or false is among what may not be. */
static bool
is_without(const struct moe_schema_list *flat, json_type type)
{
    for (size_t i = 0; i < flat->n; i++) {
        const json_t *no = json_object_get(flat->s[i], MOE_SCHEMA_WITHOUT);

        for (size_t k = 0; k < json_array_size(no); k++) {
            if (json_typeof(json_array_get(no, k)) == type)
                return true;
        }
    }
    return false;
}

static void
word(struct moe_schema_build *b, const struct moe_schema_list *flat, json_type type,
    const char *text, uint32_t from, uint32_t to)
{
    if (!is_without(flat, type))
        moe_grammar_jump(b->g, moe_grammar_text(b->g, from, text, strlen(text)), to);
}

int
moe_schema_value(struct moe_schema_build *b, const struct moe_schema_list *flat, unsigned types,
    uint32_t from, uint32_t to)
{
    int rc = 0;

    for (size_t i = 0; i < flat->n; i++) {
        const json_t *only = json_object_get(flat->s[i], "const");
        const json_t *list = json_object_get(flat->s[i], "enum");

        if (only != NULL)
            return listed(b, flat, types, only, from, to);
        for (size_t k = 0; rc == 0 && k < json_array_size(list); k++)
            rc = listed(b, flat, types, json_array_get(list, k), from, to);
        if (list != NULL)
            return rc;
    }
    if ((types & MOE_SCHEMA_NULL) != 0)
        word(b, flat, JSON_NULL, "null", from, to);
    if ((types & MOE_SCHEMA_BOOL) != 0) {
        word(b, flat, JSON_TRUE, "true", from, to);
        word(b, flat, JSON_FALSE, "false", from, to);
    }
    if ((types & (MOE_SCHEMA_INT | MOE_SCHEMA_FRACTION)) != 0)
        rc = numbers(b, flat, types, NULL, from, to);
    if (rc == 0 && (types & MOE_SCHEMA_STRING) != 0)
        rc = strings(b, flat, from, to);
    if (rc == 0 && (types & MOE_SCHEMA_ARRAY) != 0)
        rc = moe_schema_array(b, flat, from, to);
    if (rc == 0 && (types & MOE_SCHEMA_OBJECT) != 0)
        rc = moe_schema_object(b, flat, from, to);
    return rc;
}
