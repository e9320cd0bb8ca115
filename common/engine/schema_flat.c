/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the taking apart of conjunctions: references are followed, what combines
 * is joined, and each choice makes alternatives of all that is left. What is
 * done and what is still to do are lists that alternatives share.
 */
#include <string.h>

#include "common/engine/schema_parts.h"

/* A schema, or an array of schemas of which one holds. */
struct todo {
    const json_t *s;
    bool choice;
    const struct todo *parent, *next;   /* what brought it here */
};
struct done { const json_t *s; size_t n; const struct done *next; };

struct flatten {
    struct moe_schema_build *b;
    moe_schema_flat_fn *fn;
    void *ctx;
    size_t alternatives;
};

unsigned
moe_schema_flat_type(const json_t *v)
{
    double x = json_number_value(v);

    switch (json_typeof(v)) {
    case JSON_NULL: return MOE_SCHEMA_NULL;
    case JSON_TRUE: case JSON_FALSE: return MOE_SCHEMA_BOOL;
    case JSON_INTEGER: return MOE_SCHEMA_INT;
    case JSON_REAL:
        return x >= 1e18 || x <= -1e18 || x == (double)(long long)x ? MOE_SCHEMA_INT
            : MOE_SCHEMA_FRACTION;
    case JSON_STRING: return MOE_SCHEMA_STRING;
    case JSON_ARRAY: return MOE_SCHEMA_ARRAY;
    case JSON_OBJECT: return MOE_SCHEMA_OBJECT;
    }
    return 0;
}

static unsigned
type_by_name(const char *p)
{
    static const struct { const char *name; unsigned types; } names[] = {
        { "null", MOE_SCHEMA_NULL }, { "boolean", MOE_SCHEMA_BOOL }, { "integer", MOE_SCHEMA_INT },
        { "number", MOE_SCHEMA_INT | MOE_SCHEMA_FRACTION }, { "string", MOE_SCHEMA_STRING },
        { "array", MOE_SCHEMA_ARRAY }, { "object", MOE_SCHEMA_OBJECT },
        { "fraction", MOE_SCHEMA_FRACTION },    /* in schemas made here only */
    };

    for (size_t i = 0; p != NULL && i < sizeof(names) / sizeof(*names); i++) {
        if (strcmp(names[i].name, p) == 0)
            return names[i].types;
    }
    return 0;
}

unsigned
moe_schema_flat_types(const json_t *s)
{
    const json_t *type = json_object_get(s, "type"), *only = json_object_get(s, "const");
    const json_t *list = json_object_get(s, "enum");
    unsigned types = type == NULL ? MOE_SCHEMA_ALL : type_by_name(json_string_value(type)), some;

    for (size_t i = 0; i < json_array_size(type); i++)
        types |= type_by_name(json_string_value(json_array_get(type, i)));
    if (only != NULL)
        types &= moe_schema_flat_type(only);
    some = list == NULL ? MOE_SCHEMA_ALL : 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        some |= moe_schema_flat_type(json_array_get(list, i));
    return types & some;
}

static int
add_todo(struct moe_schema_build *b, const json_t *s, bool choice, const struct todo *parent,
    const struct todo **list)
{
    struct todo *t = moe_arena_get(&b->arena, sizeof(*t));
    int depth = 0;

    if (t == NULL)
        return moe_err_set(b->e, MOE_ENOMEM, "out of memory");
    for (const struct todo *up = parent; up != NULL; up = up->parent, depth++) {
        if (up->s == s)
            return moe_err_set(b->e, MOE_EFORMAT, "a schema that refers to itself");
    }
    if (depth > 2 * MOE_SCHEMA_MAX_DEPTH)
        return moe_err_set(b->e, MOE_ELIMIT, "references and choices more than %d deep",
            MOE_SCHEMA_MAX_DEPTH);
    *t = (struct todo){ s, choice, parent, *list };
    *list = t;
    return 0;
}

static int
make_choice(struct moe_schema_build *b, json_t *made, const struct todo *parent,
    const struct todo **list)
{
    const json_t *s;
    int rc = moe_schema_not_keep(b, made, &s);

    return rc != 0 ? rc : add_todo(b, s, true, parent, list);
}

/* Either the name is not there, or those that it needs are. */
static int
dependent(struct moe_schema_build *b, const json_t *names, const struct todo *parent,
    const struct todo **list)
{
    const char *key;
    json_t *needs;
    size_t n;
    int rc = 0;

    json_object_keylen_foreach ((json_t *)(uintptr_t)names, key, n, needs) {
        if (json_array_size(needs) > 0)
            rc = make_choice(b, json_pack("[{s:{s%:b}}, {s:O}]", "properties", key, n, 0,
                "required", needs), parent, list);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int
condition(struct moe_schema_build *b, const json_t *s, const struct todo *parent,
    const struct todo **list)
{
    const json_t *cond = json_object_get(s, "if"), *otherwise;
    json_t *yes = json_object_get(s, "then"), *no = json_object_get(s, "else");
    int rc;

    if (cond == NULL || (yes == NULL && no == NULL))
        return 0;
    if ((rc = moe_schema_not(b, cond, 0, &otherwise)) != 0)
        return rc;
    return make_choice(b, json_pack("[{s:[O,o]}, {s:[O,o]}]", "allOf", cond,
        yes == NULL ? json_true() : json_incref(yes), "allOf", otherwise,
        no == NULL ? json_true() : json_incref(no)), parent, list);
}

/* Whether no value can meet both, by their types or by a property that names the kind. */
static bool
apart(struct moe_schema_build *b, const json_t *x, const json_t *y)
{
    const json_t *required, *ref;

    for (int i = 0; i < 8 && (ref = json_object_get(x, "$ref")) != NULL; i++) {
        if (moe_schema_not_refer(b, ref, &x) != 0)
            return false;
    }
    for (int i = 0; i < 8 && (ref = json_object_get(y, "$ref")) != NULL; i++) {
        if (moe_schema_not_refer(b, ref, &y) != 0)
            return false;
    }
    if ((moe_schema_flat_types(x) & moe_schema_flat_types(y)) == 0)
        return true;
    if (moe_schema_flat_types(x) != MOE_SCHEMA_OBJECT ||
        moe_schema_flat_types(y) != MOE_SCHEMA_OBJECT)
        return false;
    required = json_object_get(x, "required");
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *k = json_string_value(json_array_get(required, i));
        const json_t *p = json_object_get(json_object_get(x, "properties"), k);
        const json_t *q = json_object_get(json_object_get(y, "properties"), k);
        const json_t *u = json_object_get(p, "const"), *v = json_object_get(q, "const");

        if (json_is_string(u) && json_is_string(v) && !json_equal(u, v))
            return true;
    }
    return false;
}

/* One of them and none of the others: the others' opposites, where they are not apart anyway. */
static int
one_of(struct moe_schema_build *b, const json_t *branches, const struct todo *parent,
    const struct todo **list)
{
    json_t *made = json_array();
    size_t n = json_array_size(branches);
    int rc = made == NULL ? moe_err_set(b->e, MOE_ENOMEM, "out of memory") : 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        json_t *all = json_pack("[O]", json_array_get(branches, i));
        json_t *branch = json_pack("{s:o}", "allOf", all);
        const json_t *opposite;

        if (json_array_append_new(made, branch) != 0)
            rc = moe_err_set(b->e, MOE_ENOMEM, "out of memory");
        for (size_t k = 0; rc == 0 && k < n; k++) {
            if ((rc = moe_schema_spend(b, 20)) != 0 || k == i
                || apart(b, json_array_get(branches, i), json_array_get(branches, k)))
                continue;
            rc = moe_schema_not(b, json_array_get(branches, k), 0, &opposite);
            if (rc == MOE_EUNSUP)
                rc = moe_err_at(b->e, "oneOf");
            if (rc == 0 && json_array_append(all, (json_t *)(uintptr_t)opposite) != 0)
                rc = moe_err_set(b->e, MOE_ENOMEM, "out of memory");
        }
    }
    if (rc != 0) {
        json_decref(made);
        return rc;
    }
    return make_choice(b, made, parent, list);
}

static int
unsupported(struct moe_schema_build *b, const json_t *s)
{
    static const char *const keys[] = { "maxContains", "unevaluatedItems", "$dynamicRef",
        "unevaluatedProperties", "dependentSchemas" };
    const json_t *most = json_object_get(s, "maxItems");

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        const json_t *v = json_object_get(s, keys[i]);

        if (v != NULL && !json_is_true(v))
            return moe_err_set(b->e, MOE_EUNSUP, "%s is not supported", keys[i]);
    }
    if (json_is_true(json_object_get(s, "uniqueItems"))
        && !(json_is_number(most) && json_number_value(most) <= 1))
        return moe_err_set(b->e, MOE_EUNSUP, "uniqueItems is not supported");
    return 0;
}

/* What a schema refers to, combines and leaves to choose. */
static int
unfold(struct moe_schema_build *b, const struct todo *t, const struct todo **list)
{
    const json_t *s = t->s;
    const json_t *ref = json_object_get(s, "$ref"), *all = json_object_get(s, "allOf");
    const json_t *any = json_object_get(s, "anyOf"), *one = json_object_get(s, "oneOf");
    const json_t *no = json_object_get(s, "not"), *to;
    int rc = unsupported(b, s);

    if (rc == 0)
        rc = condition(b, s, t, list);
    if (rc == 0)
        rc = dependent(b, json_object_get(s, "dependentRequired"), t, list);
    if (rc == 0 && one != NULL)
        rc = one_of(b, one, t, list);
    if (rc == 0 && any != NULL)
        rc = add_todo(b, any, true, t, list);
    if (rc == 0 && no != NULL && (rc = moe_schema_not(b, no, 0, &to)) == 0)
        rc = add_todo(b, to, false, t, list);
    for (size_t i = json_array_size(all); rc == 0 && i-- > 0;)
        rc = add_todo(b, json_array_get(all, i), false, t, list);
    if (rc == 0 && ref != NULL && (rc = moe_schema_not_refer(b, ref, &to)) == 0)
        rc = add_todo(b, to, false, t, list);
    return rc;
}

static int
deliver(struct flatten *f, const struct done *done, unsigned types)
{
    struct moe_schema_list flat = { NULL, 0 };

    if (++f->alternatives > MOE_SCHEMA_MAX_CHOICES)
        return moe_err_set(f->b->e, MOE_ELIMIT, "more than %d alternatives of one value",
            MOE_SCHEMA_MAX_CHOICES);
    flat.n = done == NULL ? 0 : done->n;
    if ((flat.s = moe_arena_get(&f->b->arena, (flat.n + 1) * sizeof(*flat.s))) == NULL)
        return moe_err_set(f->b->e, MOE_ENOMEM, "out of memory");
    for (size_t i = flat.n; i-- > 0; done = done->next)
        flat.s[i] = done->s;
    return f->fn(f->b, &flat, types, f->ctx);
}

/* Recursion is over choices that are still open, as deep as MOE_SCHEMA_MAX_DEPTH at most. */
static int
work_off(struct flatten *f, const struct todo *list, const struct done *done, unsigned types,
    int open)
{
    int rc;

    while (list != NULL && types != 0) {
        const struct todo *t = list;
        bool known = false;
        struct done *d;

        list = t->next;
        if ((rc = moe_schema_spend(f->b, 10)) != 0)
            return rc;
        if (t->choice) {
            if (open > MOE_SCHEMA_MAX_DEPTH)
                return moe_err_set(f->b->e, MOE_ELIMIT, "more than %d choices at once",
                    MOE_SCHEMA_MAX_DEPTH);
            for (size_t i = 0; i < json_array_size(t->s); i++) {
                const struct todo *branch = list;

                if ((rc = add_todo(f->b, json_array_get(t->s, i), false, t, &branch)) != 0
                    || (rc = work_off(f, branch, done, types, open + 1)) != 0)
                    return rc;
            }
            return 0;
        }
        if (json_is_false(t->s))
            return 0;
        if (!json_is_object(t->s))
            continue;
        for (const struct done *k = done; k != NULL && !known; k = k->next)
            known = k->s == t->s;
        if (known)
            continue;
        if ((d = moe_arena_get(&f->b->arena, sizeof(*d))) == NULL)
            return moe_err_set(f->b->e, MOE_ENOMEM, "out of memory");
        *d = (struct done){ t->s, done == NULL ? 1 : done->n + 1, done };
        done = d;
        types &= moe_schema_flat_types(t->s);
        if ((rc = unfold(f->b, t, &list)) != 0)
            return rc;
    }
    return types == 0 ? 0 : deliver(f, done, types);
}

int
moe_schema_flat_get(struct moe_schema_build *b, const struct moe_schema_list *list,
    moe_schema_flat_fn *fn, void *ctx)
{
    struct flatten f = { b, fn, ctx, 0 };
    const struct todo *todo = NULL;
    int rc = 0;

    for (size_t i = list->n; rc == 0 && i-- > 0;)
        rc = add_todo(b, list->s[i], false, NULL, &todo);
    return rc != 0 ? rc : work_off(&f, todo, NULL, MOE_SCHEMA_ALL, 0);
}
