/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns quantization_config: checked, and turned into rules and the patterns
 * that choose one for a module. Sees no tensor (qparts.c does);
 * compressed-tensors has a file of its own.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/formats/qscheme_parse.h"

enum method { NONE, CT, GPTQ, AWQ, FP8, MXFP4, METHODS };

static const char *const methods[METHODS] = {
    "none", "compressed-tensors", "gptq", "awq", "fp8", "mxfp4"
};

struct moe_json_at
moe_qscheme_below(struct moe_json_at at, const json_t *o, const char *key,
    char where[MOE_QSCHEME_WHERE])
{
    (void)snprintf(where, MOE_QSCHEME_WHERE, "%.127s.%.120s", at.name, key);
    return (struct moe_json_at){ o, where };
}

int
moe_qscheme_unsup(struct moe_json_at at, const char *key, const char *value, struct moe_err *e)
{
    return moe_err_set(e, MOE_EUNSUP, "%s.%s: %s is not read", at.name, key, value);
}

int
moe_qscheme_add(struct moe_qscheme *s, const struct moe_qrule *r, size_t *i, struct moe_err *e)
{
    struct moe_qrule *more;

    if (s->n_rules == MOE_QSCHEME_MAX_GROUPS)
        return moe_err_set(e, MOE_ELIMIT, "quantization_config: more than %d rules",
            MOE_QSCHEME_MAX_GROUPS);
    if ((more = realloc(s->rules, (s->n_rules + 1) * sizeof(*more))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    s->rules = more;
    s->rules[s->n_rules] = *r;
    *i = s->n_rules++;
    return 0;
}

int
moe_qscheme_group(struct moe_json_at at, const char *key, bool must, uint64_t *group,
    struct moe_err *e)
{
    int64_t v;
    int rc = moe_json_int(at, key, must, -1, -1, MOE_QSCHEME_MAX_GROUP, &v, e);

    if (rc != 0)
        return rc;
    if (v == 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: groups of 0", at.name, key);
    *group = v < 0 ? 0 : (uint64_t)v;
    return 0;
}

int
moe_qscheme_block(struct moe_json_at at, const char *key, struct moe_qrule *r, bool *found,
    struct moe_err *e)
{
    const json_t *a;
    json_int_t v[2] = { 0, 0 };
    int rc = moe_json_arr(at, key, false, &a, e);

    *found = false;
    if (rc != 0 || a == NULL)
        return rc;
    for (size_t i = 0; i < 2; i++)
        v[i] = json_integer_value(json_array_get(a, i));
    if (json_array_size(a) != 2 || v[0] < 1 || v[1] < 1 || v[0] > MOE_QSCHEME_MAX_GROUP ||
        v[1] > MOE_QSCHEME_MAX_GROUP)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: not two sizes", at.name, key);
    r->block_rows = (uint64_t)v[0];
    r->group = (uint64_t)v[1];
    *found = true;
    return 0;
}

int
moe_qscheme_names(struct moe_json_at at, const char *key, bool must,
    enum moe_qscheme_kind kind, size_t value, struct moe_qscheme_patterns *p, struct moe_err *e)
{
    const json_t *a, *v;
    size_t i;
    int rc = moe_json_arr(at, key, must, &a, e);

    if (rc != 0 || a == NULL)
        return rc;
    json_array_foreach(a, i, v) {
        if (!json_is_string(v))
            return moe_err_set(e, MOE_EFORMAT, "%s: %s: not a list of strings", at.name, key);
        if ((rc = moe_qscheme_pattern_add(p, kind, json_string_value(v), json_string_length(v),
            value, at.name, e)) != 0)
            return rc;
    }
    return 0;
}

/* ---- gptq, awq, fp8, mxfp4 ----------------------------------------------------------- */

/* The one rule of a method that has one for every module. */
static int
all_modules(struct moe_qscheme *s, const struct moe_qrule *r, struct moe_json_at at,
    struct moe_err *e)
{
    size_t i = MOE_QSCHEME_PLAIN;
    int rc = moe_qscheme_add(s, r, &i, e);

    return rc != 0 ? rc : moe_qscheme_pattern_add(s->targets, MOE_QSCHEME_CT, "Linear", 6, i,
        at.name, e);
}

static int
gptq_numbers(struct moe_json_at at, bool must, struct moe_qrule *r, struct moe_err *e)
{
    int64_t bits;
    uint64_t group = r->group;
    int rc;

    if ((rc = moe_json_int(at, "bits", must, r->bits, 1, 8, &bits, e)) != 0 ||
        (rc = moe_json_bool(at, "sym", false, r->symmetric, &r->symmetric, e)) != 0)
        return rc;
    if (must || json_object_get(at.o, "group_size") != NULL)
        if ((rc = moe_qscheme_group(at, "group_size", must, &group, e)) != 0)
            return rc;
    if (bits != 2 && bits != 4 && bits != 8)
        return moe_err_set(e, MOE_EUNSUP, "%s: bits: %" PRId64 " is not read", at.name, bits);
    r->bits = (int)bits;
    r->group = group;
    return 0;
}

/* "-:REGEX": left alone; "+:REGEX" or "REGEX": other numbers. */
static int
gptq_dynamic(struct moe_qscheme *s, struct moe_json_at at, const struct moe_qrule *base,
    struct moe_err *e)
{
    const json_t *dynamic, *v;
    const char *key;
    int rc = moe_json_obj(at, "dynamic", false, &dynamic, e);

    if (rc != 0 || dynamic == NULL)
        return rc;
    json_object_foreach((json_t *)dynamic, key, v) {
        bool skip = strncmp(key, "-:", 2) == 0;
        const char *re = skip || strncmp(key, "+:", 2) == 0 ? key + 2 : key;
        char where[MOE_QSCHEME_WHERE];
        struct moe_json_at sub = moe_qscheme_below(at, v, "dynamic", where);
        struct moe_qrule r = *base;
        size_t i = MOE_QSCHEME_PLAIN;

        if (!json_is_object(v))
            return moe_err_set(e, MOE_EFORMAT, "%s: %s: not an object", sub.name, key);
        if (!skip && ((rc = gptq_numbers(sub, false, &r, e)) != 0 ||
            (rc = moe_qscheme_add(s, &r, &i, e)) != 0))
            return rc;
        if ((rc = moe_qscheme_pattern_add(s->targets, MOE_QSCHEME_REGEX, re, strlen(re), i,
            sub.name, e)) != 0)
            return rc;
    }
    return 0;
}

static int
gptq(struct moe_qscheme *s, struct moe_json_at at, struct moe_err *e)
{
    struct moe_qrule r = { .enc = MOE_ENC_GPTQ, .bits = 4, .symmetric = true };
    const char *format;
    int rc;

    if ((rc = gptq_numbers(at, true, &r, e)) != 0 ||
        (rc = moe_json_str(at, "checkpoint_format", false, "gptq", &format, e)) != 0)
        return rc;
    if (strcmp(format, "gptq") != 0 && strcmp(format, "gptq_v2") != 0)
        return moe_qscheme_unsup(at, "checkpoint_format", format, e);
    r.gptq_v2 = strcmp(format, "gptq_v2") == 0;
    if ((rc = gptq_dynamic(s, at, &r, e)) != 0)
        return rc;
    return all_modules(s, &r, at, e);
}

static int
awq(struct moe_qscheme *s, struct moe_json_at at, struct moe_err *e)
{
    struct moe_qrule r = { .enc = MOE_ENC_AWQ, .bits = 4 };
    const char *version;
    int64_t bits;
    bool zero;
    int rc;

    if ((rc = moe_json_int(at, "bits", true, 4, 1, 8, &bits, e)) != 0 ||
        (rc = moe_qscheme_group(at, "group_size", true, &r.group, e)) != 0 ||
        (rc = moe_json_bool(at, "zero_point", false, true, &zero, e)) != 0 ||
        (rc = moe_json_str(at, "version", false, "gemm", &version, e)) != 0)
        return rc;
    if (bits != 4)
        return moe_err_set(e, MOE_EUNSUP, "%s: bits: %" PRId64 " is not read", at.name, bits);
    if (strcmp(version, "gemm") != 0 && strcmp(version, "GEMM") != 0)
        return moe_qscheme_unsup(at, "version", version, e);
    r.symmetric = !zero;
    if ((rc = moe_qscheme_names(at, "modules_to_not_convert", false, MOE_QSCHEME_PART,
        MOE_QSCHEME_PLAIN, s->ignored, e)) != 0)
        return rc;
    return all_modules(s, &r, at, e);
}

static int
fp8(struct moe_qscheme *s, struct moe_json_at at, struct moe_err *e)
{
    struct moe_qrule r = { .enc = MOE_ENC_DS_FP8, .bits = 8, .symmetric = true };
    const char *fmt;
    bool block;
    int rc;

    if ((rc = moe_json_str(at, "fmt", false, "e4m3", &fmt, e)) != 0 ||
        (rc = moe_qscheme_block(at, "weight_block_size", &r, &block, e)) != 0 ||
        (rc = moe_qscheme_names(at, "modules_to_not_convert", false, MOE_QSCHEME_PART,
        MOE_QSCHEME_PLAIN, s->ignored, e)) != 0)
        return rc;
    if (strcmp(fmt, "e4m3") != 0)
        return moe_qscheme_unsup(at, "fmt", fmt, e);
    return all_modules(s, &r, at, e);
}

static int
mxfp4(struct moe_qscheme *s, struct moe_json_at at, struct moe_err *e)
{
    struct moe_qrule r = { .enc = MOE_ENC_OSS_MXFP4, .bits = 4, .group = 32, .symmetric = true };
    int rc = moe_qscheme_names(at, "modules_to_not_convert", false, MOE_QSCHEME_PART,
        MOE_QSCHEME_PLAIN, s->ignored, e);

    return rc != 0 ? rc : all_modules(s, &r, at, e);
}

/* ---- Public ------------------------------------------------------------------------------ */

static int
parse(struct moe_qscheme *s, const json_t *quant, const char *name, struct moe_err *e)
{
    static int (*const parsers[METHODS])(struct moe_qscheme *, struct moe_json_at,
        struct moe_err *) = { NULL, moe_qscheme_ct, gptq, awq, fp8, mxfp4 };
    char where[MOE_QSCHEME_WHERE];
    struct moe_json_at at = { quant, where };
    const char *method;
    int rc;

    (void)snprintf(where, sizeof(where), "%.200s: quantization_config", name);
    if (!json_is_object(quant))
        return moe_err_set(e, MOE_EFORMAT, "%s: not an object", at.name);
    if ((rc = moe_json_str(at, "quant_method", true, "", &method, e)) != 0)
        return rc;
    for (int m = CT; m < METHODS; m++) {
        if (strcmp(method, methods[m]) == 0) {
            s->method = m;
            return parsers[m](s, at, e);
        }
    }
    return moe_qscheme_unsup(at, "quant_method", method, e);
}

int
moe_qscheme_new(const json_t *quant, const char *name, struct moe_qscheme **out, struct moe_err *e)
{
    struct moe_qscheme *s = calloc(1, sizeof(*s));
    int rc = 0;

    *out = NULL;
    if (s == NULL || (s->targets = moe_qscheme_pattern_new()) == NULL ||
        (s->ignored = moe_qscheme_pattern_new()) == NULL) {
        moe_qscheme_free(s);
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    }
    if (quant != NULL)
        rc = parse(s, quant, name, e);
    if (rc == 0) {
        moe_qscheme_pattern_ready(s->targets);
        moe_qscheme_pattern_ready(s->ignored);
        *out = s;
        s = NULL;
    }
    moe_qscheme_free(s);
    return rc;
}

void
moe_qscheme_free(struct moe_qscheme *s)
{
    if (s == NULL)
        return;
    moe_qscheme_pattern_free(s->targets);
    moe_qscheme_pattern_free(s->ignored);
    free(s->rules);
    free(s);
}

int
moe_qscheme_rule(const struct moe_qscheme *s, const char *module, struct moe_qrule *out,
    struct moe_err *e)
{
    size_t i = MOE_QSCHEME_PLAIN, ignored;
    bool found;
    int rc;

    *out = (struct moe_qrule){ .enc = MOE_ENC_PLAIN };
    if ((rc = moe_qscheme_pattern_find(s->ignored, module, &ignored, &found, e)) != 0 || found)
        return rc;
    if ((rc = moe_qscheme_pattern_find(s->targets, module, &i, &found, e)) != 0)
        return rc;
    if (found && i != MOE_QSCHEME_PLAIN)
        *out = s->rules[i];
    return 0;
}

const char *
moe_qscheme_method(const struct moe_qscheme *s)
{
    return methods[s->method];
}
