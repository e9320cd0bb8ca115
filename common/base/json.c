/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns strict reading of JSON into jansson's trees, and typed access to them.
 *
 * The text is passed by moe_scan first, so that one grammar (and one wording
 * of errors) holds for trees and for pulled values, and so that jansson, which
 * recurses to a depth of its own, only sees text within our limits.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/read.h"
#include "common/base/scan.h"

static int
check(const char *p, size_t n, const char *name, struct moe_err *e)
{
    struct moe_scan s;
    int rc;

    moe_scan_init(&s, p, n, name);
    if ((rc = moe_scan_skip(&s, e)) == 0)
        rc = moe_scan_end(&s, e);
    moe_scan_fini(&s);
    return rc;
}

/* What jansson refuses after the scanner was content. */
static int
refused(const json_error_t *why, const char *name, struct moe_err *e)
{
    const char *what = why->text;

    switch (json_error_code(why)) {
    case json_error_out_of_memory:
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    case json_error_duplicate_key: what = "duplicate key"; break;
    case json_error_null_byte_in_key: what = "NUL in a key"; break;
    case json_error_numeric_overflow: what = "number out of range"; break;
    default: break;
    }
    return moe_err_set(e, MOE_EFORMAT, "%s:%d:%d: %s", name, why->line, why->column, what);
}

int
moe_json_parse(const char *p, size_t n, const char *name, json_t **out, struct moe_err *e)
{
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL;
    json_error_t why;
    int rc;

    *out = NULL;
    if (n > MOE_JSON_MAX_BYTES)
        return moe_err_set(e, MOE_ELIMIT, "%s: larger than %zu bytes", name, MOE_JSON_MAX_BYTES);
    if ((rc = check(p, n, name, e)) != 0)
        return rc;
    if ((*out = json_loadb(p, n, flags, &why)) == NULL)
        return refused(&why, name, e);
    return 0;
}

int
moe_json_file(const char *path, json_t **out, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    const char *name = strcmp(path, "-") == 0 ? "stdin" : path;
    int rc;

    *out = NULL;
    if ((rc = moe_read_file(path, MOE_JSON_MAX_BYTES, &b, e)) == 0)
        rc = moe_json_parse(b.p, b.len, name, out, e);
    moe_buf_fini(&b);
    return rc;
}

/* ---- Members ------------------------------------------------------------------ */

static const char *
kind(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "a whole number";
    case JSON_REAL: return "a number with a fraction";
    case JSON_TRUE:
    case JSON_FALSE: return "a truth value";
    default: return "null";
    }
}

static int
wrong(struct moe_json_at at, const char *key, const json_t *v, const char *want,
    struct moe_err *e)
{
    return moe_err_set(e, MOE_EFORMAT, "%s: %s: %s where %s is expected", at.name, key, kind(v),
        want);
}

/* *v is the member, or NULL when it is missing or null and need not be there. */
static int
member(struct moe_json_at at, const char *key, bool must, const json_t **v, struct moe_err *e)
{
    *v = NULL;
    if (!json_is_object(at.o))
        return moe_err_set(e, MOE_EFORMAT, "%s: not an object", at.name);
    *v = json_object_get(at.o, key);
    if (json_is_null(*v))
        *v = NULL;
    if (*v == NULL && must)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: missing", at.name, key);
    return 0;
}

int
moe_json_int(struct moe_json_at at, const char *key, bool must, int64_t fallback, int64_t lo,
    int64_t hi, int64_t *out, struct moe_err *e)
{
    const json_t *v;
    json_int_t got;
    int rc;

    *out = fallback;
    if ((rc = member(at, key, must, &v, e)) != 0 || v == NULL)
        return rc;
    if (!json_is_integer(v))
        return wrong(at, key, v, "a whole number", e);
    got = json_integer_value(v);
    if (got < lo || got > hi)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: %lld is not within %lld to %lld", at.name,
            key, (long long)got, (long long)lo, (long long)hi);
    *out = got;
    return 0;
}

int
moe_json_real(struct moe_json_at at, const char *key, bool must, double fallback, double *out,
    struct moe_err *e)
{
    const json_t *v;
    int rc;

    *out = fallback;
    if ((rc = member(at, key, must, &v, e)) != 0 || v == NULL)
        return rc;
    if (!json_is_number(v))
        return wrong(at, key, v, "a number", e);
    *out = json_number_value(v);
    return 0;
}

int
moe_json_bool(struct moe_json_at at, const char *key, bool must, bool fallback, bool *out,
    struct moe_err *e)
{
    const json_t *v;
    int rc;

    *out = fallback;
    if ((rc = member(at, key, must, &v, e)) != 0 || v == NULL)
        return rc;
    if (!json_is_boolean(v))
        return wrong(at, key, v, "true or false", e);
    *out = json_is_true(v);
    return 0;
}

int
moe_json_str(struct moe_json_at at, const char *key, bool must, const char *fallback,
    const char **out, struct moe_err *e)
{
    const json_t *v;
    int rc;

    *out = fallback;
    if ((rc = member(at, key, must, &v, e)) != 0 || v == NULL)
        return rc;
    if (!json_is_string(v))
        return wrong(at, key, v, "a string", e);
    if (strlen(json_string_value(v)) != json_string_length(v))
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: NUL in the string", at.name, key);
    *out = json_string_value(v);
    return 0;
}

int
moe_json_obj(struct moe_json_at at, const char *key, bool must, const json_t **out,
    struct moe_err *e)
{
    int rc;

    if ((rc = member(at, key, must, out, e)) != 0 || *out == NULL || json_is_object(*out))
        return rc;
    rc = wrong(at, key, *out, "an object", e);
    *out = NULL;
    return rc;
}

int
moe_json_arr(struct moe_json_at at, const char *key, bool must, const json_t **out,
    struct moe_err *e)
{
    int rc;

    if ((rc = member(at, key, must, out, e)) != 0 || *out == NULL || json_is_array(*out))
        return rc;
    rc = wrong(at, key, *out, "an array", e);
    *out = NULL;
    return rc;
}

int
moe_json_only(struct moe_json_at at, const char *const *keys, struct moe_err *e)
{
    const char *key;
    json_t *v;

    if (!json_is_object(at.o))
        return moe_err_set(e, MOE_EFORMAT, "%s: not an object", at.name);
    /* jansson iterates over objects that are not const; nothing is changed. */
    json_object_foreach((json_t *)at.o, key, v) {
        size_t i = 0;

        while (keys[i] != NULL && strcmp(keys[i], key) != 0)
            i++;
        if (keys[i] == NULL)
            return moe_err_set(e, MOE_EFORMAT, "%s: %s: unknown key", at.name, key);
    }
    return 0;
}
