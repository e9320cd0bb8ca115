/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the policy: reading its file, and matching names. What a scheme means
 * for a matrix is the plan's.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "cmd/moe-quant/quant_policy.h"
#include "common/base/yaml.h"

struct rule {
    const json_t *node;
    const char *glob;           /* of the tree; NULL: an expression, or any name */
    pcre2_code *regex;
    int role;                   /* -1: any */
    struct quant_scheme scheme;
    uint64_t matched;
};

struct quant_policy {
    struct quant_policy_options opt;
    struct moe_yaml *yaml;
    struct rule *rules;
    size_t n;
    pcre2_match_context *limits;
    pcre2_match_data *data;
};

/* ---- Reading ------------------------------------------------------------------ */

static const char *const keys[] = { "match", "role", "format", "group", "asym", "search",
    "scale_sign", NULL };

static int
read_match(struct quant_policy *p, struct rule *r, const char *text, struct moe_err *e)
{
    const json_t *node = json_object_get(r->node, "match");
    PCRE2_UCHAR why[128];
    PCRE2_SIZE at;
    int err;

    if (strncmp(text, "re:", 3) != 0) {
        r->glob = text;
        return 0;
    }
    if (strlen(text) > QUANT_POLICY_MAX_REGEX)
        return moe_yaml_fail(p->yaml, node, e, "an expression of more than %d bytes",
            QUANT_POLICY_MAX_REGEX);
    r->regex = pcre2_compile((PCRE2_SPTR)text + 3, PCRE2_ZERO_TERMINATED,
        PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_NEVER_BACKSLASH_C, &err, &at, NULL);
    if (r->regex != NULL)
        return 0;
    (void)pcre2_get_error_message(err, why, sizeof(why));
    return moe_yaml_fail(p->yaml, node, e, "expression %s: %s at %zu", text + 3, (char *)why,
        (size_t)at);
}

/* A member that must be one of some words; NULL and no error when it is not there. */
static int
word(struct quant_policy *p, const struct rule *r, const char *key, const char **out,
    struct moe_err *e)
{
    const json_t *v = json_object_get(r->node, key);

    *out = json_string_value(v);
    if (v != NULL && *out == NULL)
        return moe_yaml_fail(p->yaml, v, e, "%s must be text", key);
    return 0;
}

static int
read_role(struct quant_policy *p, struct rule *r, const char *text, struct moe_err *e)
{
    for (int i = 0; i < MOE_ROLE_N; i++) {
        if (strcmp(moe_naming_role((enum moe_role)i), text) == 0) {
            r->role = i;
            return 0;
        }
    }
    return moe_yaml_fail(p->yaml, json_object_get(r->node, "role"), e, "there is no role %s",
        text);
}

static int
read_group(struct quant_policy *p, struct rule *r, struct moe_err *e)
{
    const json_t *v = json_object_get(r->node, "group");
    json_int_t g = json_integer_value(v);

    if (v == NULL)
        return 0;
    if (r->scheme.codec == NULL || !quant_scheme_grouped(r->scheme.codec))
        return moe_yaml_fail(p->yaml, v, e, "this format has no group to choose");
    if (json_is_string(v) && strcmp(json_string_value(v), "channel") == 0)
        r->scheme.group = 0;
    else if (g == 32 || g == 64 || g == 128)
        r->scheme.group = (uint64_t)g;
    else
        return moe_yaml_fail(p->yaml, v, e, "group must be 32, 64, 128 or channel");
    return 0;
}

static int
read_search(struct quant_policy *p, struct rule *r, struct moe_err *e)
{
    static const char *const names[] = { "rtn", "mse", "wide" };
    const char *text;
    int rc = word(p, r, "search", &text, e);

    for (int i = 0; rc == 0 && text != NULL && i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            r->scheme.search = (enum quant_search)i;
            text = NULL;
        }
    }
    if (rc == 0 && text != NULL)
        rc = moe_yaml_fail(p->yaml, json_object_get(r->node, "search"), e,
            "search must be rtn, mse or wide");
    if (rc != 0 || (rc = word(p, r, "scale_sign", &text, e)) != 0 || text == NULL)
        return rc;
    if (strcmp(text, "both") != 0 && strcmp(text, "pos") != 0)
        return moe_yaml_fail(p->yaml, json_object_get(r->node, "scale_sign"), e,
            "scale_sign must be pos or both");
    r->scheme.both = strcmp(text, "both") == 0;
    return 0;
}

static void
fill(const struct quant_policy_options *o, const struct quant_codec *c, struct quant_scheme *s)
{
    *s = (struct quant_scheme){ .codec = c, .both = o->both, .search = o->search,
        .scale = MOE_BF16 };
    if (c == NULL)
        return;
    s->group = quant_scheme_grouped(c) ? o->group : c->group;
    s->asym = o->asym && quant_scheme_can_asym(c);
}

static int
read_rule(struct quant_policy *p, struct rule *r, struct moe_err *e)
{
    const char *match, *role, *format;
    const json_t *asym = json_object_get(r->node, "asym");
    const struct quant_codec *c = NULL;
    int rc;

    r->role = -1;
    if (!json_is_object(r->node))
        return moe_yaml_fail(p->yaml, r->node, e, "a rule must be a mapping");
    if ((rc = moe_yaml_only(p->yaml, r->node, keys, e)) != 0 ||
        (rc = word(p, r, "match", &match, e)) != 0 || (rc = word(p, r, "role", &role, e)) != 0 ||
        (rc = word(p, r, "format", &format, e)) != 0)
        return rc;
    if (match == NULL && role == NULL)
        return moe_yaml_fail(p->yaml, r->node, e, "a rule needs match or role");
    if (format == NULL)
        return moe_yaml_fail(p->yaml, r->node, e, "a rule needs format");
    if (strcmp(format, "keep") != 0 && (c = quant_scheme_find(format)) == NULL)
        return moe_yaml_fail(p->yaml, json_object_get(r->node, "format"), e,
            "there is no format %s", format);
    fill(&p->opt, c, &r->scheme);
    if (asym != NULL && !json_is_boolean(asym))
        return moe_yaml_fail(p->yaml, asym, e, "asym must be true or false");
    if (json_is_true(asym) && (c == NULL || !quant_scheme_can_asym(c)))
        return moe_yaml_fail(p->yaml, asym, e, "this format has no zero points");
    if (asym != NULL)
        r->scheme.asym = json_is_true(asym);
    if ((match != NULL && (rc = read_match(p, r, match, e)) != 0) ||
        (role != NULL && (rc = read_role(p, r, role, e)) != 0) ||
        (rc = read_group(p, r, e)) != 0)
        return rc;
    return read_search(p, r, e);
}

static int
read_file(struct quant_policy *p, const char *path, struct moe_err *e)
{
    static const char *const top[] = { "rules", NULL };
    const json_t *root, *rules;
    int rc;

    if ((rc = moe_yaml_file(path, &p->yaml, e)) != 0)
        return rc;
    root = moe_yaml_root(p->yaml);
    if (!json_is_object(root))
        return moe_err_set(e, MOE_EFORMAT, "%s: a policy is a mapping with rules", path);
    if ((rc = moe_yaml_only(p->yaml, root, top, e)) != 0)
        return rc;
    rules = json_object_get(root, "rules");
    if (!json_is_array(rules) || json_array_size(rules) == 0)
        return moe_yaml_fail(p->yaml, rules != NULL ? rules : root, e,
            "rules must be a list that is not empty");
    if (json_array_size(rules) > QUANT_POLICY_MAX_RULES)
        return moe_yaml_fail(p->yaml, rules, e, "more than %d rules", QUANT_POLICY_MAX_RULES);
    if ((p->rules = calloc(json_array_size(rules), sizeof(*p->rules))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (; rc == 0 && p->n < json_array_size(rules); p->n++) {
        p->rules[p->n].node = json_array_get(rules, p->n);
        rc = read_rule(p, &p->rules[p->n], e);
    }
    return rc;
}

int
quant_policy_open(const char *path, const struct quant_policy_options *opt,
    struct quant_policy **out, struct moe_err *e)
{
    struct quant_policy *p = calloc(1, sizeof(*p));
    int rc = 0;

    *out = NULL;
    if (p == NULL || (p->limits = pcre2_match_context_create(NULL)) == NULL ||
        (p->data = pcre2_match_data_create(1, NULL)) == NULL) {
        quant_policy_free(p);
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    }
    (void)pcre2_set_match_limit(p->limits, QUANT_POLICY_MATCH_LIMIT);
    p->opt = *opt;
    if (path != NULL)
        rc = read_file(p, path, e);
    if (rc != 0)
        quant_policy_free(p);
    else
        *out = p;
    return rc;
}

void
quant_policy_free(struct quant_policy *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->n; i++)
        pcre2_code_free(p->rules[i].regex);
    free(p->rules);
    pcre2_match_data_free(p->data);
    pcre2_match_context_free(p->limits);
    moe_yaml_free(p->yaml);
    free(p);
}

/* ---- Matching ----------------------------------------------------------------- */

/* 1 yes, 0 no, negative: an expression that takes too long. */
static int
matches(const struct quant_policy *p, const struct rule *r, const char *module,
    enum moe_role role)
{
    int rc;

    if (r->role >= 0 && r->role != (int)role)
        return 0;
    if (r->glob != NULL)
        return fnmatch(r->glob, module, 0) == 0;
    if (r->regex == NULL)
        return 1;
    rc = pcre2_match(r->regex, (PCRE2_SPTR)module, strlen(module), 0, 0, p->data, p->limits);
    return rc >= 0 ? 1 : rc == PCRE2_ERROR_NOMATCH ? 0 : -1;
}

/* The first rule that matches; all that do are counted, so that a later one is not called dead. */
static int
first_rule(struct quant_policy *p, const char *module, enum moe_role role, struct rule **out,
    struct moe_err *e)
{
    *out = NULL;
    for (size_t i = 0; i < p->n; i++) {
        int m = matches(p, &p->rules[i], module, role);

        if (m < 0)
            return moe_err_set(e, MOE_ELIMIT, "policy: rule %zu takes too long on %s", i + 1,
                module);
        if (m == 0)
            continue;
        p->rules[i].matched++;
        if (*out == NULL)
            *out = &p->rules[i];
    }
    return 0;
}

static bool
is_protected(enum moe_role role)
{
    return role == MOE_ROLE_ROUTER || role == MOE_ROLE_SHARED_GATE || role == MOE_ROLE_NORM ||
        role == MOE_ROLE_SINK;
}

int
quant_policy_find(struct quant_policy *p, const char *module, enum moe_role role,
    struct quant_scheme *out, struct moe_err *e)
{
    const struct quant_codec *c = NULL;
    struct rule *r;
    int rc = first_rule(p, module, role, &r, e);

    if (rc != 0)
        return rc;
    if (r != NULL) {
        *out = r->scheme;
        if (r->scheme.codec != NULL && is_protected(role) && !p->opt.force_router)
            return moe_yaml_fail(p->yaml, r->node, e, "the rule would quantise %s, a %s: models"
                " break of that; --force-router does it", module, moe_naming_role(role));
        return 0;
    }
    if (role == MOE_ROLE_EXPERT)
        c = p->opt.format;
    else if (role == MOE_ROLE_SHARED)
        c = p->opt.shared;
    else if (!is_protected(role))
        c = p->opt.rest;
    fill(&p->opt, c, out);
    return 0;
}

bool
quant_policy_named(struct quant_policy *p, const char *module, enum moe_role role)
{
    for (size_t i = 0; i < p->n; i++) {
        if (matches(p, &p->rules[i], module, role) > 0)
            return true;
    }
    return false;
}

int
quant_policy_check(const struct quant_policy *p, struct moe_err *e)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->rules[i].matched == 0)
            return moe_yaml_fail(p->yaml, p->rules[i].node, e, "the rule matches 0 matrices%s",
                p->rules[i].glob != NULL && strpbrk(p->rules[i].glob, "*?[") == NULL ?
                " (a name without * stands for itself alone)" : "");
    }
    return 0;
}
