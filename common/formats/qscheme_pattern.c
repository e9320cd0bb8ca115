/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns choosing by the name of a module: full names (sorted, since ignore lists
 * hold thousands), parts of names, regular expressions, and the class of all.
 */
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "common/formats/qscheme.h"
#include "common/formats/qscheme_pattern.h"

struct named {
    char *text;
    size_t value, order;
};

struct expression {
    pcre2_code *code;
    size_t value;
};

struct moe_qscheme_patterns {
    struct named *names, *parts;
    struct expression *regex;
    size_t n_names, cap_names, n_parts, cap_parts, n_regex, cap_regex;
    size_t all;                 /* value of the class */
    bool has_all;
    pcre2_match_context *limits;
};

/* Room for one more of size bytes in an array; NULL: out of memory. */
static void *
grow(void *p, size_t n, size_t *cap, size_t size)
{
    size_t more = *cap == 0 ? 16 : 2 * *cap;
    void *q;

    if (n < *cap)
        return p;
    if ((q = realloc(p, more * size)) != NULL)
        *cap = more;
    return q;
}

static int
add_named(struct named **list, size_t *n, size_t *cap, const char *text, size_t value,
    struct moe_err *e)
{
    struct named *more = grow(*list, *n, cap, sizeof(*more));
    char *copy;

    if (more == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    *list = more;
    if ((copy = strdup(text)) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    more[*n] = (struct named){ copy, value, *n };
    ++*n;
    return 0;
}

static int
add_regex(struct moe_qscheme_patterns *p, const char *text, size_t value, const char *where,
    struct moe_err *e)
{
    struct expression *more;
    PCRE2_UCHAR why[128];
    PCRE2_SIZE at;
    pcre2_code *code;
    int err;

    if (strlen(text) > MOE_QSCHEME_MAX_REGEX)
        return moe_err_set(e, MOE_ELIMIT, "%s: an expression of more than %d bytes", where,
            MOE_QSCHEME_MAX_REGEX);
    if ((more = grow(p->regex, p->n_regex, &p->cap_regex, sizeof(*more))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    p->regex = more;
    code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
        PCRE2_UTF | PCRE2_ANCHORED | PCRE2_NEVER_BACKSLASH_C, &err, &at, NULL);
    if (code == NULL) {
        (void)pcre2_get_error_message(err, why, sizeof(why));
        return moe_err_set(e, MOE_EFORMAT, "%s: expression %s: %s at %zu", where, text,
            (char *)why, (size_t)at);
    }
    p->regex[p->n_regex++] = (struct expression){ code, value };
    return 0;
}

/* Whether text is whole components: "mlp.gate" of "a.mlp.gate", not of "a.mlp.gate_up". */
static bool
is_part(const char *module, const char *text)
{
    size_t n = strlen(text);

    if (n == 0)
        return false;
    for (const char *p = module; (p = strstr(p, text)) != NULL; p++)
        if ((p == module || p[-1] == '.') && (p[n] == '\0' || p[n] == '.'))
            return true;
    return false;
}

static int
by_text(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int d = strcmp(x->text, y->text);

    return d != 0 ? d : (x->order > y->order) - (x->order < y->order);
}

/* The first of the sorted names that is this one; NULL: none. */
static const struct named *
find_name(const struct moe_qscheme_patterns *p, const char *module)
{
    size_t lo = 0, hi = p->n_names;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (strcmp(p->names[mid].text, module) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < p->n_names && strcmp(p->names[lo].text, module) == 0 ? &p->names[lo] : NULL;
}

static int
matches(const struct moe_qscheme_patterns *p, const pcre2_code *code, const char *module,
    bool *yes, struct moe_err *e)
{
    pcre2_match_data *md = pcre2_match_data_create(1, NULL);
    int rc;

    if (md == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    rc = pcre2_match(code, (PCRE2_SPTR)module, PCRE2_ZERO_TERMINATED, 0, 0, md, p->limits);
    pcre2_match_data_free(md);
    *yes = rc >= 0;
    if (rc == PCRE2_ERROR_NOMEMORY)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    if (rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_DEPTHLIMIT ||
        rc == PCRE2_ERROR_HEAPLIMIT)
        return moe_err_set(e, MOE_ELIMIT, "module %s: an expression of quantization_config "
            "takes too long", module);
    return 0;
}

struct moe_qscheme_patterns *
moe_qscheme_pattern_new(void)
{
    struct moe_qscheme_patterns *p = calloc(1, sizeof(*p));

    if (p == NULL)
        return NULL;
    if ((p->limits = pcre2_match_context_create(NULL)) == NULL) {
        free(p);
        return NULL;
    }
    (void)pcre2_set_match_limit(p->limits, MOE_QSCHEME_MATCH_LIMIT);
    (void)pcre2_set_depth_limit(p->limits, MOE_QSCHEME_MATCH_LIMIT);
    return p;
}

void
moe_qscheme_pattern_free(struct moe_qscheme_patterns *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->n_names; i++)
        free(p->names[i].text);
    for (size_t i = 0; i < p->n_parts; i++)
        free(p->parts[i].text);
    for (size_t i = 0; i < p->n_regex; i++)
        pcre2_code_free(p->regex[i].code);
    free(p->names);
    free(p->parts);
    free(p->regex);
    pcre2_match_context_free(p->limits);
    free(p);
}

int
moe_qscheme_pattern_add(struct moe_qscheme_patterns *p, enum moe_qscheme_kind kind,
    const char *text, size_t n, size_t value, const char *where, struct moe_err *e)
{
    if (strlen(text) != n)
        return moe_err_set(e, MOE_EFORMAT, "%s: a name holds a NUL", where);
    if (p->n_names + p->n_parts + p->n_regex >= MOE_QSCHEME_MAX_NAMES)
        return moe_err_set(e, MOE_ELIMIT, "%s: more than %d names", where, MOE_QSCHEME_MAX_NAMES);
    /* Hugging Face writes "model.layers.*.self_attn" there, and matches it as an expression. */
    if (kind == MOE_QSCHEME_PART && strpbrk(text, "*+?[(\\^$|") == NULL)
        return add_named(&p->parts, &p->n_parts, &p->cap_parts, text, value, e);
    if (kind == MOE_QSCHEME_PART)
        kind = MOE_QSCHEME_REGEX;
    if (kind == MOE_QSCHEME_REGEX || strncmp(text, "re:", 3) == 0)
        return add_regex(p, kind == MOE_QSCHEME_REGEX ? text : text + 3, value, where, e);
    if (strcmp(text, "Linear") == 0) {
        if (!p->has_all)
            p->all = value;
        p->has_all = true;
        return 0;
    }
    return add_named(&p->names, &p->n_names, &p->cap_names, text, value, e);
}

void
moe_qscheme_pattern_ready(struct moe_qscheme_patterns *p)
{
    if (p->n_names > 1)
        qsort(p->names, p->n_names, sizeof(*p->names), by_text);
}

int
moe_qscheme_pattern_find(const struct moe_qscheme_patterns *p, const char *module,
    size_t *value, bool *found, struct moe_err *e)
{
    const struct named *name = find_name(p, module);
    int rc;

    *found = true;
    if (name != NULL) {
        *value = name->value;
        return 0;
    }
    for (size_t i = 0; i < p->n_parts; i++) {
        if (is_part(module, p->parts[i].text)) {
            *value = p->parts[i].value;
            return 0;
        }
    }
    for (size_t i = 0; i < p->n_regex; i++) {
        bool yes = false;

        if ((rc = matches(p, p->regex[i].code, module, &yes, e)) != 0)
            return rc;
        if (yes) {
            *value = p->regex[i].value;
            return 0;
        }
    }
    *value = p->all;
    *found = p->has_all;
    return 0;
}
