/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what schemas refer to, and the opposites of those that have one. */
#include <string.h>

#include "common/engine/schema_parts.h"

int
moe_schema_not_keep(struct moe_schema_build *b, json_t *v, const json_t **out)
{
    *out = v;
    if (v == NULL || json_array_append_new(b->made, v) != 0)
        return moe_err_set(b->e, MOE_ENOMEM, "out of memory");
    return moe_schema_spend(b, 20);
}

/* ---- References ------------------------------------------------------------------ */

static int
hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One step of a JSON pointer: ~0, ~1 and %XX are undone. Returns its length, 0 = too long. */
static size_t
unescape(const char *p, size_t n, char *out, size_t most)
{
    size_t k = 0;

    for (size_t i = 0; i < n && k < most; i++, k++) {
        out[k] = p[i];
        if (p[i] == '~' && i + 1 < n && (p[i + 1] == '0' || p[i + 1] == '1'))
            out[k] = p[++i] == '0' ? '~' : '/';
        else if (p[i] == '%' && i + 2 < n && hex(p[i + 1]) >= 0 && hex(p[i + 2]) >= 0) {
            out[k] = (char)(16 * hex(p[i + 1]) + hex(p[i + 2]));
            i += 2;
        }
    }
    return k;
}

int
moe_schema_not_refer(struct moe_schema_build *b, const json_t *ref, const json_t **out)
{
    const char *p = json_string_value(ref);
    const json_t *at = b->root;
    char step[512];

    if (p == NULL || p[0] != '#' || (p[1] != '\0' && p[1] != '/'))
        return moe_err_set(b->e, MOE_EUNSUP, "$ref: %.100s is out of the document",
            p == NULL ? "" : p);
    for (p++; *p == '/' && at != NULL;) {
        size_t n = strcspn(++p, "/"), k = unescape(p, n, step, sizeof(step));

        if (k == sizeof(step))
            at = NULL;
        else if (json_is_array(at) && k > 0 && k < 6 && strspn(p, "0123456789") == n) {
            size_t index = 0;

            for (size_t i = 0; i < k; i++)
                index = 10 * index + (size_t)(step[i] - '0');
            at = json_array_get(at, index);
        } else {
            at = json_object_getn(at, step, k);
        }
        p += n;
    }
    if (at == NULL)
        return moe_err_set(b->e, MOE_EFORMAT, "$ref: %.100s refers to nothing",
            json_string_value(ref));
    *out = at;
    /* It may stand where no keyword has looked. */
    p = json_string_value(ref);
    if (p[1] == '\0' || (strncmp(p, "#/$defs/", 8) == 0 && strchr(p + 8, '/') == NULL)
        || (strncmp(p, "#/definitions/", 14) == 0 && strchr(p + 14, '/') == NULL))
        return moe_schema_spend(b, 10);
    return moe_schema_check(b, at);
}

/* ---- Opposites ------------------------------------------------------------------- */

/* Schemas of which one holds where a keyword does not. */
struct opposite {
    struct moe_schema_build *b;
    json_t *list;
    int depth;
};

static int
add(struct opposite *o, json_t *s)
{
    if (s == NULL || json_array_append_new(o->list, s) != 0)
        return moe_err_set(o->b->e, MOE_ENOMEM, "out of memory");
    return 0;
}

static json_t *
types_list(unsigned types)
{
    static const struct { const char *name; unsigned type; } names[] = {
        { "null", MOE_SCHEMA_NULL }, { "boolean", MOE_SCHEMA_BOOL }, { "integer", MOE_SCHEMA_INT },
        { "fraction", MOE_SCHEMA_FRACTION }, { "string", MOE_SCHEMA_STRING },
        { "array", MOE_SCHEMA_ARRAY }, { "object", MOE_SCHEMA_OBJECT } };
    json_t *list = json_array();

    for (size_t i = 0; list != NULL && i < 7; i++) {
        if ((types & names[i].type) != 0)
            (void)json_array_append_new(list, json_string(names[i].name));
    }
    return list;
}

static int
not_type(struct opposite *o, const json_t *type)
{
    json_t *s = json_pack("{s:O}", "type", type);
    unsigned others = MOE_SCHEMA_ALL & ~moe_schema_flat_types(s);

    json_decref(s);
    return others == 0 ? 0 : add(o, json_pack("{s:o}", "type", types_list(others)));
}

/* A value is another: of another type, or the same type without it. */
static int
not_value(struct opposite *o, const json_t *v)
{
    unsigned type = moe_schema_flat_type(v), number = MOE_SCHEMA_INT | MOE_SCHEMA_FRACTION;
    int rc;

    if (json_is_array(v) || json_is_object(v))
        return moe_err_set(o->b->e, MOE_EUNSUP, "the opposite of an array or object");
    if ((type & number) == 0)
        return add(o, json_pack("{s:[O]}", MOE_SCHEMA_WITHOUT, v));
    if ((rc = add(o, json_pack("{s:o}", "type", types_list(MOE_SCHEMA_ALL & ~number)))) != 0
        || (rc = add(o, json_pack("{s:s, s:O}", "type", "number", "exclusiveMinimum", v))) != 0)
        return rc;
    return add(o, json_pack("{s:s, s:O}", "type", "number", "exclusiveMaximum", v));
}

/* None of a list of values: all of their opposites. */
static int
not_values(struct opposite *o, const json_t *values)
{
    json_t *all = json_array();
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < json_array_size(values); i++) {
        struct opposite one = { o->b, json_array(), o->depth };

        if ((rc = not_value(&one, json_array_get(values, i))) == 0)
            (void)json_array_append_new(all, json_pack("{s:O}", "anyOf", one.list));
        json_decref(one.list);
    }
    if (rc == 0 && json_array_size(all) == 0)
        rc = add(o, json_object());
    else if (rc == 0)
        rc = add(o, json_pack("{s:O}", "allOf", all));
    json_decref(all);
    return rc;
}

static int
not_count(struct opposite *o, const char *type, const char *key, const json_t *v, bool least)
{
    json_int_t n = (json_int_t)json_number_value(v);

    if (least && n == 0)
        return 0;
    return add(o, json_pack("{s:s, s:I}", "type", type, key, least ? n - 1 : n + 1));
}

/* Not all of the names are there; or one of the properties is, and is another. */
static int
not_members(struct opposite *o, const json_t *required, const json_t *properties)
{
    const json_t *other;
    const char *key;
    json_t *s;
    size_t n;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < json_array_size(required); i++) {
        const json_t *k = json_array_get(required, i);

        rc = add(o, json_pack("{s:s, s:{s%:b}}", "type", "object", "properties",
            json_string_value(k), json_string_length(k), 0));
    }
    json_object_keylen_foreach ((json_t *)(uintptr_t)properties, key, n, s) {
        if (rc == 0 && (rc = moe_schema_not(o->b, s, o->depth + 1, &other)) == 0)
            rc = add(o, json_pack("{s:s, s:[s%], s:{s%:O}}", "type", "object", "required", key, n,
                "properties", key, n, other));
    }
    return rc;
}

static int
not_combined(struct opposite *o, const json_t *s)
{
    const json_t *all = json_object_get(s, "allOf"), *any = json_object_get(s, "anyOf");
    const json_t *ref = json_object_get(s, "$ref"), *to, *no = json_object_get(s, "not");
    json_t *none;
    int rc = 0;

    if (ref != NULL && (rc = moe_schema_not_refer(o->b, ref, &to)) == 0
        && (rc = moe_schema_not(o->b, to, o->depth + 1, &to)) == 0)
        rc = add(o, json_incref((json_t *)(uintptr_t)to));
    if (rc == 0 && no != NULL)
        rc = add(o, json_incref((json_t *)(uintptr_t)no));
    for (size_t i = 0; rc == 0 && i < json_array_size(all); i++) {
        if ((rc = moe_schema_not(o->b, json_array_get(all, i), o->depth + 1, &to)) == 0)
            rc = add(o, json_incref((json_t *)(uintptr_t)to));
    }
    if (rc != 0 || any == NULL)
        return rc;
    none = json_array();
    for (size_t i = 0; rc == 0 && i < json_array_size(any); i++) {
        if ((rc = moe_schema_not(o->b, json_array_get(any, i), o->depth + 1, &to)) == 0
            && json_array_append(none, (json_t *)(uintptr_t)to) != 0)
            rc = moe_err_set(o->b->e, MOE_ENOMEM, "out of memory");
    }
    if (rc == 0)
        rc = add(o, json_pack("{s:O}", "allOf", none));
    json_decref(none);
    return rc;
}

static int
not_number(struct opposite *o, const char *key, const json_t *v)
{
    static const char *const turned[4][2] = { { "minimum", "exclusiveMaximum" },
        { "maximum", "exclusiveMinimum" }, { "exclusiveMinimum", "maximum" },
        { "exclusiveMaximum", "minimum" } };

    for (int i = 0; i < 4; i++) {
        if (strcmp(key, turned[i][0]) == 0)
            return add(o, json_pack("{s:s, s:O}", "type", "number", turned[i][1], v));
    }
    return add(o, json_pack("{s:s, s:O}", "type", "number", MOE_SCHEMA_NO_MULTIPLE, v));
}

/* The opposite of one keyword is added to the list. */
static int
not_keyword(struct opposite *o, const json_t *s, const char *key, const json_t *v)
{
    static const char *const ignored[] = { "title", "description", "default", "examples",
        "$schema", "$id", "$comment", "$defs", "definitions", "format", "deprecated", "readOnly",
        "writeOnly", "then", "else", "allOf", "anyOf", "not", "$ref", "required", NULL };
    static const char *const bounds[] = { "minimum", "maximum", "exclusiveMinimum",
        "exclusiveMaximum", "multipleOf", NULL };
    static const struct { const char *key, *type, *turned; bool least; } counts[] = {
        { "minLength", "string", "maxLength", true }, { "maxLength", "string", "minLength", false },
        { "minItems", "array", "maxItems", true }, { "maxItems", "array", "minItems", false },
        { "minProperties", "object", "maxProperties", true },
        { "maxProperties", "object", "minProperties", false } };

    for (int i = 0; ignored[i] != NULL; i++) {
        if (strcmp(key, ignored[i]) == 0)
            return 0;
    }
    for (int i = 0; bounds[i] != NULL; i++) {
        if (strcmp(key, bounds[i]) == 0)
            return not_number(o, key, v);
    }
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        if (strcmp(key, counts[i].key) == 0)
            return not_count(o, counts[i].type, counts[i].turned, v, counts[i].least);
    }
    if (strcmp(key, "type") == 0)
        return not_type(o, v);
    if (strcmp(key, "const") == 0)
        return not_value(o, v);
    if (strcmp(key, "enum") == 0)
        return not_values(o, v);
    if (strcmp(key, "properties") == 0)
        return not_members(o, NULL, v);
    (void)s;
    return moe_err_set(o->b->e, MOE_EUNSUP, "the opposite of %.60s is not supported", key);
}

int
moe_schema_not(struct moe_schema_build *b, const json_t *s, int depth, const json_t **out)
{
    struct opposite o = { b, NULL, depth };
    const char *key;
    json_t *v;
    int rc;

    if ((rc = moe_schema_spend(b, 20)) != 0)
        return rc;
    if (depth > MOE_SCHEMA_MAX_DEPTH)
        return moe_err_set(b->e, MOE_ELIMIT, "opposites more than %d deep", MOE_SCHEMA_MAX_DEPTH);
    if (json_is_boolean(s))
        return moe_schema_not_keep(b, json_boolean(json_is_false(s)), out);
    if ((o.list = json_array()) == NULL)
        return moe_err_set(b->e, MOE_ENOMEM, "out of memory");
    json_object_foreach ((json_t *)(uintptr_t)s, key, v) {
        if (rc == 0)
            rc = not_keyword(&o, s, key, v);
    }
    if (rc == 0)
        rc = not_members(&o, json_object_get(s, "required"), NULL);
    if (rc == 0)
        rc = not_combined(&o, s);
    if (rc == 0)
        rc = moe_schema_not_keep(b, json_array_size(o.list) == 0 ? json_false()
            : json_pack("{s:O}", "anyOf", o.list), out);
    json_decref(o.list);
    return rc;
}
