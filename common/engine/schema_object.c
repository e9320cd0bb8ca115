/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns objects: the properties that schemas name, in their order, each there or
 * not, and others between them.
 */
#include <string.h>

#include "common/engine/schema_parts.h"
#include "common/engine/spell.h"

#define MAX_NAMES 4096

struct property { const char *p; size_t n; bool required; uint32_t rule; };

struct object {
    struct moe_schema_build *b;
    const struct moe_schema_list *flat;
    struct property *name;
    size_t n_names;
    json_t *index;              /* names to their places */
    struct moe_stringset keys;  /* what other names may be */
    const json_t **of_pattern;  /* [n_tell] schema of a pattern ... */
    const json_t **owner;       /* ... and whose it is */
    bool closed;                /* there are no other names */
    uint32_t other, end;        /* rule of another member and its last state */
    size_t min, max, counted;
};

static int
no_memory(struct moe_schema_build *b)
{
    return moe_err_set(b->e, MOE_ENOMEM, "out of memory");
}

/* ---- Names ----------------------------------------------------------------------- */

/* No more names than this can be found. */
static size_t
most_names(const struct moe_schema_list *flat)
{
    size_t n = 0;

    for (size_t i = 0; i < flat->n; i++) {
        const json_t *names = json_object_get(flat->s[i], "propertyNames");

        n += json_object_size(json_object_get(flat->s[i], "properties"))
            + json_array_size(json_object_get(flat->s[i], "required"))
            + json_array_size(json_object_get(names, "enum")) + 1;
    }
    return n;
}

static int
add_name(struct object *o, const char *p, size_t n, bool required)
{
    json_t *known = json_object_getn(o->index, p, n);

    if (known != NULL) {
        o->name[json_integer_value(known)].required |= required;
        return 0;
    }
    if (o->n_names == MAX_NAMES)
        return moe_err_set(o->b->e, MOE_ELIMIT, "an object of more than %d names", MAX_NAMES);
    if (json_object_setn_new(o->index, p, n, json_integer((json_int_t)o->n_names)) != 0)
        return no_memory(o->b);
    o->name[o->n_names++] = (struct property){ p, n, required, 0 };
    return moe_schema_spend(o->b, 10);
}

static int
find_names(struct object *o)
{
    const char *key;
    json_t *v;
    size_t n;
    int rc = 0;

    for (size_t i = 0; i < o->flat->n; i++) {
        json_object_keylen_foreach (json_object_get(o->flat->s[i], "properties"), key, n, v) {
            if ((rc = add_name(o, key, n, false)) != 0)
                return rc;
        }
    }
    for (size_t i = 0; i < o->flat->n; i++) {
        const json_t *required = json_object_get(o->flat->s[i], "required");

        for (size_t k = 0; rc == 0 && k < json_array_size(required); k++) {
            v = json_array_get(required, k);
            rc = add_name(o, json_string_value(v), json_string_length(v), true);
        }
    }
    return rc;
}

/* What names must be, from propertyNames: patterns, lengths, a list. */
static int
find_keys(struct object *o, struct moe_schema_list *about)
{
    static const char *const known[] = { "pattern", "minLength", "maxLength", "type", "enum",
        "const", "title", "description", "$comment", "format" };
    const char *key;
    json_t *v;
    int rc;

    about->s = moe_arena_get(&o->b->arena, (o->flat->n + 1) * sizeof(*about->s));
    about->n = 0;
    if (about->s == NULL)
        return no_memory(o->b);
    for (size_t i = 0; i < o->flat->n; i++) {
        const json_t *names = json_object_get(o->flat->s[i], "propertyNames");

        if (names == NULL || json_is_true(names))
            continue;
        o->closed = o->closed || json_is_false(names);
        json_object_foreach ((json_t *)(uintptr_t)names, key, v) {
            bool ok = false;

            for (size_t k = 0; k < sizeof(known) / sizeof(*known); k++)
                ok = ok || strcmp(known[k], key) == 0;
            if (!ok)
                return moe_err_set(o->b->e, MOE_EUNSUP, "propertyNames: %.60s is not supported",
                    key);
        }
        about->s[about->n++] = names;
        v = json_object_get(names, "enum");
        o->closed = o->closed || v != NULL || json_object_get(names, "const") != NULL
            || (moe_schema_flat_types(names) & MOE_SCHEMA_STRING) == 0;
        for (size_t k = 0; k <= json_array_size(v); k++) {
            const json_t *one = k < json_array_size(v) ? json_array_get(v, k)
                : json_object_get(names, "const");

            if (json_is_string(one) && (rc = add_name(o, json_string_value(one),
                json_string_length(one), false)) != 0)
                return rc;
        }
    }
    return moe_schema_value_strings(o->b, about, &o->keys);
}

/* Whether propertyNames lets a name be. */
static int
is_allowed(struct object *o, const struct moe_schema_list *about, const struct property *p,
    bool *yes)
{
    int rc = moe_stringset_has(&o->keys, p->p, p->n, yes, o->b->e);
    json_t *name = json_stringn(p->p, p->n);

    for (size_t i = 0; *yes && i < about->n; i++) {
        const json_t *list = json_object_get(about->s[i], "enum");
        const json_t *only = json_object_get(about->s[i], "const");
        bool found = list == NULL;

        for (size_t k = 0; !found && k < json_array_size(list); k++)
            found = json_equal(json_array_get(list, k), name);
        *yes = found && (only == NULL || json_equal(only, name))
            && (moe_schema_flat_types(about->s[i]) & MOE_SCHEMA_STRING) != 0;
    }
    for (size_t i = 0; *yes && i < o->flat->n; i++)
        *yes = !json_is_false(json_object_get(o->flat->s[i], "propertyNames"));
    json_decref(name);
    return rc;
}

/* ---- Values ---------------------------------------------------------------------- */

static int
find_patterns(struct object *o)
{
    size_t n = 0;
    const char *key;
    json_t *v;
    size_t len;
    int rc;

    for (size_t i = 0; i < o->flat->n; i++)
        n += json_object_size(json_object_get(o->flat->s[i], "patternProperties"));
    if (n + o->keys.n_need > MOE_STRINGSET_MAX_PATTERNS)
        return moe_err_set(o->b->e, MOE_ELIMIT, "more than %d patterns of names at once",
            MOE_STRINGSET_MAX_PATTERNS);
    o->of_pattern = moe_arena_get(&o->b->arena, (n + 1) * sizeof(*o->of_pattern));
    o->owner = moe_arena_get(&o->b->arena, (n + 1) * sizeof(*o->owner));
    if (o->of_pattern == NULL || o->owner == NULL)
        return no_memory(o->b);
    for (size_t i = 0; i < o->flat->n; i++) {
        json_object_keylen_foreach (json_object_get(o->flat->s[i], "patternProperties"), key, len,
            v) {
            size_t k = o->keys.n_tell;

            if ((rc = moe_schema_regex(o->b, key, len, &o->keys.tell[k])) != 0)
                return rc;
            o->of_pattern[k] = v;
            o->owner[k] = o->flat->s[i];
            o->keys.n_tell++;
        }
    }
    return 0;
}

/* The rule of a value, by the name (NULL: of no known name) and the patterns it matches. */
static int
value_rule(struct object *o, const struct property *p, uint32_t told, uint32_t *rule)
{
    const json_t **s = moe_arena_get(&o->b->arena, (o->flat->n + o->keys.n_tell + 1) * sizeof(*s));
    size_t n = 0;

    if (s == NULL)
        return no_memory(o->b);
    for (size_t i = 0; i < o->flat->n; i++) {
        const json_t *others = json_object_get(o->flat->s[i], "additionalProperties");
        const json_t *own = p == NULL ? NULL : json_object_getn(json_object_get(o->flat->s[i],
            "properties"), p->p, p->n);
        bool any = own != NULL;

        if (own != NULL)
            s[n++] = own;
        for (size_t k = 0; k < o->keys.n_tell; k++) {
            if ((told >> k & 1) == 0 || o->owner[k] != o->flat->s[i])
                continue;
            s[n++] = o->of_pattern[k];
            any = true;
        }
        if (!any && others != NULL)
            s[n++] = others;
    }
    return moe_schema_rule(o->b, s, n, rule);
}

static int
name_rules(struct object *o, const struct moe_schema_list *about)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < o->n_names; i++) {
        struct property *p = &o->name[i];
        uint32_t told = 0;
        bool yes = true;

        if ((rc = is_allowed(o, about, p, &yes)) != 0)
            return rc;
        if (!yes) {
            p->rule = MOE_GRAMMAR_NONE;
            continue;
        }
        for (size_t k = 0; rc == 0 && k < o->keys.n_tell; k++) {
            if ((rc = moe_pattern_test(o->keys.tell[k], p->p, p->n, &yes, o->b->e)) == 0 && yes)
                told |= 1u << k;
        }
        if (rc == 0 && (rc = moe_schema_spend(o->b, 20)) == 0)
            rc = value_rule(o, p, told, &p->rule);
    }
    return rc;
}

/* ---- Members --------------------------------------------------------------------- */

/* Behind a name: a colon and a value. */
static void
value(struct object *o, uint32_t from, uint32_t rule, uint32_t to)
{
    struct moe_grammar *g = o->b->g;
    uint32_t at = moe_grammar_text(g, from, ":", 1), next = moe_grammar_state(g);

    moe_grammar_call(g, at, o->b->blank, next);
    moe_grammar_call(g, next, rule, to);
}

/* Another name is complete: its value depends on the patterns that it matches. */
static uint32_t
lead(void *ctx, uint32_t told)
{
    struct object *o = ctx;
    uint32_t from = moe_grammar_state(o->b->g), rule;

    if (value_rule(o, NULL, told, &rule) != 0)
        (void)moe_grammar_fail(o->b->g, o->b->e);
    else
        value(o, from, rule, o->end);
    return from;
}

/* Whether nothing but named properties may be there at all. */
static bool
is_closed(const struct object *o)
{
    bool closed = o->closed;

    for (size_t i = 0; !closed && o->keys.n_tell == 0 && i < o->flat->n; i++)
        closed = json_is_false(json_object_get(o->flat->s[i], "additionalProperties"));
    return closed;
}

static int
other_rule(struct object *o)
{
    struct moe_stringset_word *w = moe_arena_get(&o->b->arena, (o->n_names + 1) * sizeof(*w));
    struct moe_grammar_rule r;
    int rc;

    if (w == NULL)
        return no_memory(o->b);
    for (size_t i = 0; i < o->n_names; i++)
        w[i] = (struct moe_stringset_word){ o->name[i].p, o->name[i].n };
    o->keys.without = w;
    o->keys.n_without = o->n_names;
    o->other = moe_grammar_rule(o->b->g);
    if ((rc = moe_schema_spend(o->b, 2000)) != 0)
        return rc;
    r = o->b->g->rule[o->other];
    o->end = r.end;
    return moe_stringset_add(o->b->g, r.start, &o->keys, lead, o, o->b->e);
}

/* From one place to another over a comma, if it is not the first, and blanks. */
static uint32_t
comma(struct object *o, bool first, uint32_t from)
{
    uint32_t at = first ? from : moe_grammar_text(o->b->g, from, ",", 1);
    uint32_t to = moe_grammar_state(o->b->g);

    moe_grammar_call(o->b->g, at, o->b->blank, to);
    return to;
}

/* Places by the next name that may come and the members so far. */
static int
members(struct object *o, uint32_t from, uint32_t to)
{
    struct moe_grammar *g = o->b->g;
    size_t row = o->counted + 1, n = (o->n_names + 1) * row;
    uint32_t *at, end = moe_grammar_state(g);
    int rc;

    if (n > MOE_SCHEMA_MAX_GRID)
        return moe_err_set(o->b->e, MOE_ELIMIT, "objects of more than %d places",
            MOE_SCHEMA_MAX_GRID);
    if ((at = moe_arena_get(&o->b->arena, n * sizeof(*at))) == NULL)
        return no_memory(o->b);
    if ((rc = moe_schema_spend(o->b, 10 * n)) != 0)
        return rc;
    for (size_t i = 0; i < n; i++)
        at[i] = moe_grammar_state(g);
    moe_grammar_bytes(g, from, '{', '{', at[0]);
    moe_grammar_bytes(g, end, '}', '}', to);
    for (size_t i = 0; i <= o->n_names; i++) {
        for (size_t c = 0; c < row; c++) {
            const struct property *p = &o->name[i];
            uint32_t here = at[i * row + c];
            size_t more = c < o->counted ? c + 1 : c;

            if (i < o->n_names && !p->required)
                moe_grammar_jump(g, here, at[(i + 1) * row + c]);
            if (i == o->n_names && c >= o->min)
                moe_grammar_call(g, here, o->b->blank, end);
            if (c >= o->max)
                continue;
            if (i < o->n_names && p->rule != MOE_GRAMMAR_NONE)
                value(o, moe_spell_string(g, comma(o, c == 0, here), p->p, p->n), p->rule,
                    at[(i + 1) * row + more]);
            if (!is_closed(o))
                moe_grammar_call(g, comma(o, c == 0, here), o->other, at[i * row + more]);
        }
    }
    return 0;
}

int
moe_schema_object(struct moe_schema_build *b, const struct moe_schema_list *flat, uint32_t from,
    uint32_t to)
{
    struct object o = { .b = b, .flat = flat, .index = json_object() };
    struct moe_schema_list about;
    int rc = 0;

    o.name = moe_arena_get(&b->arena, (most_names(flat) + 1) * sizeof(*o.name));
    if (o.index == NULL || o.name == NULL)
        rc = no_memory(b);
    o.min = moe_schema_value_most(flat, "minProperties", 0);
    o.max = moe_schema_value_least(flat, "maxProperties", SIZE_MAX);
    o.counted = o.max != SIZE_MAX ? o.max : o.min;
    o.counted = o.counted < 1 ? 1 : o.counted;
    if (rc == 0 && o.counted > MOE_SCHEMA_MAX_GRID)
        rc = moe_err_set(b->e, MOE_ELIMIT, "objects of more than %d places", MOE_SCHEMA_MAX_GRID);
    if (rc == 0 && (rc = find_names(&o)) == 0 && (rc = find_keys(&o, &about)) == 0
        && (rc = find_patterns(&o)) == 0 && (rc = name_rules(&o, &about)) == 0
        && (is_closed(&o) || (rc = other_rule(&o)) == 0))
        rc = members(&o, from, to);
    json_decref(o.index);
    return rc;
}
