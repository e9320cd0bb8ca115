/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the form of schemas: what each keyword must look like, wherever it
 * stands. What it means is the others'.
 */
#include <math.h>
#include <string.h>

#include "common/engine/schema_parts.h"

enum form {
    TYPE, LIST, NUMBER, POSITIVE, COUNT, PATTERN, NAMES, NAMES_OF, SCHEMA, SCHEMAS, SCHEMAS_OF,
    PATTERNS_OF, TEXT, YES_NO
};

static const struct { const char *key; enum form form; } keywords[] = {
    { "type", TYPE }, { "enum", LIST }, { "minimum", NUMBER }, { "maximum", NUMBER },
    { "exclusiveMinimum", NUMBER }, { "exclusiveMaximum", NUMBER }, { "multipleOf", POSITIVE },
    { "minLength", COUNT }, { "maxLength", COUNT }, { "minItems", COUNT }, { "maxItems", COUNT },
    { "minProperties", COUNT }, { "maxProperties", COUNT }, { "minContains", COUNT },
    { "maxContains", COUNT }, { "pattern", PATTERN }, { "required", NAMES },
    { "dependentRequired", NAMES_OF }, { "items", SCHEMA }, { "contains", SCHEMA },
    { "additionalProperties", SCHEMA }, { "propertyNames", SCHEMA }, { "not", SCHEMA },
    { "if", SCHEMA }, { "then", SCHEMA }, { "else", SCHEMA }, { "unevaluatedItems", SCHEMA },
    { "unevaluatedProperties", SCHEMA }, { "allOf", SCHEMAS }, { "anyOf", SCHEMAS },
    { "oneOf", SCHEMAS }, { "prefixItems", SCHEMAS }, { "properties", SCHEMAS_OF },
    { "dependentSchemas", SCHEMAS_OF }, { "$defs", SCHEMAS_OF }, { "definitions", SCHEMAS_OF },
    { "patternProperties", PATTERNS_OF }, { "$ref", TEXT }, { "$dynamicRef", TEXT },
    { "uniqueItems", YES_NO },
};

static int
bad(struct moe_schema_build *b, const char *key, const char *what)
{
    return moe_err_set(b->e, MOE_EFORMAT, "%s: %s", key, what);
}

/* Texts, none of them twice. */
static bool
is_names(const json_t *v, bool types)
{
    static const char *const known[] = { "null", "boolean", "integer", "number", "string",
        "array", "object" };
    json_t *seen = json_object();
    bool ok = json_is_array(v) && seen != NULL;

    for (size_t i = 0; ok && i < json_array_size(v); i++) {
        const json_t *one = json_array_get(v, i);
        const char *p = json_string_value(one);
        bool name = !types;

        for (size_t k = 0; types && p != NULL && k < 7; k++)
            name = name || strcmp(p, known[k]) == 0;
        ok = p != NULL && name && json_object_getn(seen, p, json_string_length(one)) == NULL
            && json_object_setn_new(seen, p, json_string_length(one), json_true()) == 0;
    }
    json_decref(seen);
    return ok;
}

static bool
is_type(const json_t *v)
{
    json_t *list;
    bool ok;

    if (json_is_array(v))
        return json_array_size(v) > 0 && is_names(v, true);
    list = json_pack("[O]", v);
    ok = list != NULL && is_names(list, true);
    json_decref(list);
    return ok;
}

static bool
is_count(const json_t *v)
{
    double x = json_number_value(v);

    return json_is_number(v) && x >= 0 && x == floor(x);
}

static int
check_members(struct moe_schema_build *b, const char *key, const json_t *v, enum form form)
{
    const struct moe_pattern *t;
    const char *name;
    json_t *member;
    size_t n;
    int rc;

    if (!json_is_object(v))
        return bad(b, key, "not an object");
    json_object_keylen_foreach ((json_t *)(uintptr_t)v, name, n, member) {
        if (form == NAMES_OF && !is_names(member, false))
            return bad(b, key, "not lists of different names");
        if (form == NAMES_OF)
            continue;
        if (form == PATTERNS_OF && (rc = moe_schema_regex(b, name, n, &t)) != 0)
            return rc;
        if ((rc = moe_schema_check(b, member)) != 0)
            return rc;
    }
    return 0;
}

static int
check_list(struct moe_schema_build *b, const char *key, const json_t *v)
{
    int rc = 0;

    if (!json_is_array(v) || json_array_size(v) == 0)
        return bad(b, key, "not a list of schemas");
    for (size_t i = 0; rc == 0 && i < json_array_size(v); i++)
        rc = moe_schema_check(b, json_array_get(v, i));
    return rc;
}

static int
check_keyword(struct moe_schema_build *b, const char *key, const json_t *v, enum form form)
{
    const struct moe_pattern *t;

    switch (form) {
    case TYPE: return is_type(v) ? 0 : bad(b, key, "not a type, nor a list of different ones");
    case LIST: return json_is_array(v) ? 0 : bad(b, key, "not a list");
    case NUMBER: return json_is_number(v) ? 0 : bad(b, key, "not a number");
    case POSITIVE:
        return json_is_number(v) && json_number_value(v) > 0 ? 0
            : bad(b, key, "not a number above 0");
    case COUNT: return is_count(v) ? 0 : bad(b, key, "not a count");
    case PATTERN:
        return json_is_string(v)
            ? moe_schema_regex(b, json_string_value(v), json_string_length(v), &t)
            : bad(b, key, "not a text");
    case NAMES: return is_names(v, false) ? 0 : bad(b, key, "not a list of different names");
    case SCHEMA: return moe_schema_check(b, v);
    case SCHEMAS: return check_list(b, key, v);
    case NAMES_OF: case SCHEMAS_OF: case PATTERNS_OF: return check_members(b, key, v, form);
    case TEXT: return json_is_string(v) ? 0 : bad(b, key, "not a text");
    case YES_NO: return json_is_boolean(v) ? 0 : bad(b, key, "neither true nor false");
    }
    return 0;
}

/* The depth is the file's, which jansson limits. */
int
moe_schema_check(struct moe_schema_build *b, const json_t *s)
{
    int rc = moe_schema_spend(b, 4);

    if (rc != 0 || json_is_boolean(s))
        return rc;
    if (!json_is_object(s))
        return moe_err_set(b->e, MOE_EFORMAT, "a schema that is neither object, true nor false");
    for (size_t i = 0; rc == 0 && i < sizeof(keywords) / sizeof(*keywords); i++) {
        const json_t *v = json_object_get(s, keywords[i].key);

        if (v != NULL && (rc = check_keyword(b, keywords[i].key, v, keywords[i].form)) != 0
            && b->e->code != MOE_ENOMEM && keywords[i].form == PATTERN)
            rc = moe_err_at(b->e, "%s", keywords[i].key);
    }
    return rc;
}
