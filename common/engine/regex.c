/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns compiled patterns and searching with them: PCRE2 with its JIT where
 * there is one, limits on every search. The syntax is regex_syntax.c's.
 */
#define PCRE2_CODE_UNIT_WIDTH 8

#include <pcre2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/engine/regex.h"
#include "common/engine/regex_syntax.h"

struct moe_regex {
    pcre2_code *code;       /* NULL: a literal */
    struct moe_buf literal;
};

struct moe_regex_run {
    const struct moe_regex *r;
    pcre2_match_data *data;
    pcre2_match_context *limits;
    const char *p;
    size_t n, at;           /* the text and where the next search begins */
    bool after;             /* a match ended at `at` */
};

static int
compile(const char *p, size_t n, const char *name, pcre2_code **out, struct moe_err *e)
{
    const uint32_t flags = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C |
        PCRE2_NO_AUTO_CAPTURE;
    pcre2_compile_context *cc = pcre2_compile_context_create(NULL);
    PCRE2_SIZE at;
    int why;

    if (cc == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    pcre2_set_newline(cc, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(cc, 2 * MOE_REGEX_MAX_DEPTH);
    *out = pcre2_compile((PCRE2_SPTR)p, n, flags, &why, &at, cc);
    pcre2_compile_context_free(cc);
    if (*out == NULL) {
        unsigned char text[128];

        pcre2_get_error_message(why, text, sizeof(text));
        return moe_err_set(e,
            why == PCRE2_ERROR_UNKNOWN_UNICODE_PROPERTY ? MOE_EUNSUP : MOE_EFORMAT,
            "%s: pattern: %s", name, (const char *)text);
    }
    /* Without a JIT the interpreter does the same work. */
    (void)pcre2_jit_compile(*out, PCRE2_JIT_COMPLETE);
    return 0;
}

int
moe_regex_compile(const char *p, size_t n, const char *name, struct moe_regex **out,
    struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_regex *r = NULL;
    int rc;

    *out = NULL;
    if ((rc = moe_regex_syntax(p, n, name, &b, e)) != 0)
        goto out;
    if ((r = calloc(1, sizeof(*r))) == NULL) {
        rc = moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
        goto out;
    }
    if ((rc = compile(b.len == 0 ? "" : b.p, b.len, name, &r->code, e)) != 0)
        goto out;
    *out = r;
    r = NULL;
out:
    moe_regex_free(r);
    moe_buf_fini(&b);
    return rc;
}

int
moe_regex_literal(const char *p, size_t n, struct moe_regex **out, struct moe_err *e)
{
    struct moe_regex *r;

    if (n == 0)
        return moe_regex_compile(p, 0, "", out, e);
    *out = NULL;
    if ((r = calloc(1, sizeof(*r))) != NULL)
        moe_buf_add(&r->literal, p, n);
    if (r == NULL || r->literal.bad) {
        free(r);
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    }
    *out = r;
    return 0;
}

int
moe_regex_pattern(const json_t *o, const char *name, struct moe_regex **out, struct moe_err *e)
{
    const json_t *v = json_object_get(o, "Regex");

    *out = NULL;
    if (json_is_string(v))
        return moe_regex_compile(json_string_value(v), json_string_length(v), name, out, e);
    v = json_object_get(o, "String");
    if (json_is_string(v))
        return moe_regex_literal(json_string_value(v), json_string_length(v), out, e);
    return moe_err_set(e, MOE_EFORMAT, "%s: pattern: neither Regex nor String", name);
}

void
moe_regex_free(struct moe_regex *r)
{
    if (r == NULL)
        return;
    pcre2_code_free(r->code);
    moe_buf_fini(&r->literal);
    free(r);
}

int
moe_regex_run_new(const struct moe_regex *r, struct moe_regex_run **out, struct moe_err *e)
{
    struct moe_regex_run *run = calloc(1, sizeof(*run));

    *out = NULL;
    if (run == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    run->r = r;
    if (r->code != NULL) {
        run->data = pcre2_match_data_create(1, NULL);
        run->limits = pcre2_match_context_create(NULL);
        if (run->data == NULL || run->limits == NULL) {
            moe_regex_run_free(run);
            return moe_err_set(e, MOE_ENOMEM, "out of memory");
        }
        pcre2_set_heap_limit(run->limits, MOE_REGEX_HEAP_KIB);
    }
    *out = run;
    return 0;
}

void
moe_regex_run_free(struct moe_regex_run *run)
{
    if (run == NULL)
        return;
    pcre2_match_data_free(run->data);
    pcre2_match_context_free(run->limits);
    free(run);
}

void
moe_regex_start(struct moe_regex_run *run, const char *p, size_t n)
{
    run->p = p;
    run->n = n;
    run->at = n == 0;
    run->after = false;
    if (run->limits != NULL) {
        /* Backing out of a run of n characters takes about n steps. */
        size_t steps = MOE_REGEX_STEPS + 8 * n;

        pcre2_set_match_limit(run->limits, steps > UINT32_MAX ? UINT32_MAX : (uint32_t)steps);
    }
}

/* A match at or after `at`. */
static int
search(struct moe_regex_run *run, size_t *from, size_t *to, struct moe_err *e)
{
    const struct moe_regex *r = run->r;
    const PCRE2_SIZE *where;
    int rc;

    if (r->code == NULL) {
        const char *p = memmem(run->p + run->at, run->n - run->at, r->literal.p, r->literal.len);

        if (p == NULL)
            return 0;
        *from = (size_t)(p - run->p);
        *to = *from + r->literal.len;
        return 1;
    }
    rc = pcre2_match(r->code, (PCRE2_SPTR)run->p, run->n, run->at, PCRE2_NO_UTF_CHECK, run->data,
        run->limits);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(r->code, (PCRE2_SPTR)run->p, run->n, run->at,
            PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, run->data, run->limits);
    if (rc == PCRE2_ERROR_NOMATCH)
        return 0;
    if (rc == PCRE2_ERROR_NOMEMORY)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    if (rc < 0)
        return moe_err_set(e, MOE_ELIMIT, "a pattern takes too many steps on this text");
    where = pcre2_get_ovector_pointer(run->data);
    *from = where[0];
    *to = where[1];
    return 1;
}

int
moe_regex_next(struct moe_regex_run *run, size_t *from, size_t *to, struct moe_err *e)
{
    while (run->at <= run->n) {
        int rc = search(run, from, to, e);

        if (rc <= 0) {
            run->at = run->n + 1;
            return rc;
        }
        if (*from < *to || !run->after || *to != run->at) {
            run->at = *to;
            run->after = true;
            return 1;
        }
        run->at += run->at < run->n ? moe_utf8_len(run->p + run->at, run->n - run->at) : 1;
        run->after = false;
    }
    return 0;
}
