/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the steps of normalisation. Unicode's forms are utf8proc's, kept to the
 * repertoire of Unicode 9, where the reference library stands: code points that
 * it does not know split the text and are left alone.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "common/base/json.h"
#include "common/base/utf8.h"
#include "common/engine/normalizer.h"
#include "common/engine/regex.h"
#include "common/engine/unicode.h"

enum kind { FORM, PREPEND, REPLACE };

struct step {
    enum kind kind;
    utf8proc_option_t form;
    uint32_t plain;             /* FORM: characters below it never change or combine */
    struct moe_buf text;        /* PREPEND, REPLACE */
    struct moe_regex *find;     /* REPLACE */
};

struct moe_normalizer {
    struct step step[MOE_NORMALIZER_MAX_STEPS];
    size_t n;
};

/* ---- Parsing ------------------------------------------------------------------ */

static const struct { const char *type; unsigned form; uint32_t plain; } FORMS[] = {
    { "NFC", UTF8PROC_STABLE | UTF8PROC_COMPOSE, 0x300 },
    { "NFD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, 0x80 },
    { "NFKC", UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT, 0x80 },
    { "NFKD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, 0x80 },
};

static int
parse_text(const json_t *o, const char *key, const char *name, struct moe_buf *out,
    struct moe_err *e)
{
    const json_t *v = json_object_get(o, key);

    if (!json_is_string(v))
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: not a string", name, key);
    moe_buf_add(out, json_string_value(v), json_string_length(v));
    return out->bad ? moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name) : 0;
}

static int parse(struct moe_normalizer *nz, const json_t *o, const char *name, int depth,
    struct moe_err *e);

static int
parse_sequence(struct moe_normalizer *nz, const json_t *o, const char *name, int depth,
    struct moe_err *e)
{
    const json_t *list;
    int rc = moe_json_arr((struct moe_json_at){ o, name }, "normalizers", true, &list, e);

    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
        rc = parse(nz, json_array_get(list, i), name, depth + 1, e);
    return rc;
}

static int
parse(struct moe_normalizer *nz, const json_t *o, const char *name, int depth, struct moe_err *e)
{
    struct step *s = &nz->step[nz->n];
    const char *type;
    int rc = moe_json_str((struct moe_json_at){ o, name }, "type", true, NULL, &type, e);

    if (rc != 0)
        return rc;
    if (nz->n == MOE_NORMALIZER_MAX_STEPS || depth > MOE_NORMALIZER_MAX_STEPS)
        return moe_err_set(e, MOE_ELIMIT, "%s: more than %d steps", name,
            MOE_NORMALIZER_MAX_STEPS);
    if (strcmp(type, "Sequence") == 0)
        return parse_sequence(nz, o, name, depth, e);
    for (size_t i = 0; i < sizeof(FORMS) / sizeof(*FORMS); i++)
        if (strcmp(type, FORMS[i].type) == 0) {
            nz->n++;
            *s = (struct step){ .kind = FORM, .form = (utf8proc_option_t)FORMS[i].form,
                .plain = FORMS[i].plain };
            return 0;
        }
    nz->n++;
    if (strcmp(type, "Prepend") == 0) {
        s->kind = PREPEND;
        return parse_text(o, "prepend", name, &s->text, e);
    }
    if (strcmp(type, "Replace") == 0) {
        s->kind = REPLACE;
        if ((rc = parse_text(o, "content", name, &s->text, e)) != 0)
            return rc;
        return moe_regex_pattern(json_object_get(o, "pattern"), name, &s->find, e);
    }
    return moe_err_set(e, MOE_EUNSUP, "%s: type %s is not supported", name, type);
}

int
moe_normalizer_parse(const json_t *o, const char *name, struct moe_normalizer **out,
    struct moe_err *e)
{
    struct moe_normalizer *nz = calloc(1, sizeof(*nz));
    int rc = 0;

    *out = NULL;
    if (nz == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    if (o != NULL && !json_is_null(o))
        rc = parse(nz, o, name, 0, e);
    if (rc == 0)
        *out = nz;
    else
        moe_normalizer_free(nz);
    return rc;
}

void
moe_normalizer_free(struct moe_normalizer *nz)
{
    if (nz == NULL)
        return;
    for (size_t i = 0; i < nz->n; i++) {
        moe_buf_fini(&nz->step[i].text);
        moe_regex_free(nz->step[i].find);
    }
    free(nz);
}

/* ---- Running ------------------------------------------------------------------ */

static bool
is_inert(uint32_t c)
{
    size_t lo = 0, hi = moe_unicode_inert_n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (moe_unicode_inert[mid].to < c)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < moe_unicode_inert_n && moe_unicode_inert[lo].from <= c;
}

/* One run of text in which utf8proc may do as it likes. */
static int
form_run(utf8proc_option_t form, const char *p, size_t n, struct moe_buf *out, struct moe_err *e)
{
    const utf8proc_uint8_t *u = (const utf8proc_uint8_t *)p;
    utf8proc_ssize_t len, room = (utf8proc_ssize_t)(n + 16);
    int32_t *buf = NULL, *big;
    int rc = 0;

    for (;;) {
        /* One more, since the text is made of the code points in place. */
        if ((big = realloc(buf, ((size_t)room + 1) * sizeof(*buf))) == NULL)
            break;
        buf = big;
        len = utf8proc_decompose(u, (utf8proc_ssize_t)n, buf, room, form);
        if (len <= room)
            break;
        room = len;
    }
    if (big == NULL || len == UTF8PROC_ERROR_NOMEM)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    else if (len < 0 || (len = utf8proc_reencode(buf, len, form)) < 0)
        rc = moe_err_set(e, MOE_ELIMIT, "normalisation: %s", utf8proc_errmsg(len));
    else
        moe_buf_add(out, buf, (size_t)len);
    free(buf);
    return rc;
}

/*
 * Characters below `plain` and inert ones are copied. A run for utf8proc begins
 * with the plain character before it (a base for marks) and ends before the
 * next plain or inert one.
 */
static int
form(const struct step *s, const char *p, size_t n, struct moe_buf *out, struct moe_err *e)
{
    size_t run = 0, base = 0;   /* from run on nothing is written; the last base */
    bool plain = true;          /* all from run on is to be copied */
    int rc = 0;

    for (size_t i = 0, k; rc == 0 && i < n; i += k) {
        uint32_t c = 0;
        bool inert;

        k = moe_utf8_get(p + i, n - i, &c);
        inert = c >= s->plain && is_inert(c);
        if (c >= s->plain && !inert) {
            if (plain) {
                moe_buf_add(out, p + run, base - run);
                run = base;
            }
            plain = false;
            continue;
        }
        if (!plain) {
            rc = form_run(s->form, p + run, i - run, out, e);
            run = i;
            plain = true;
        }
        base = inert ? i + k : i;
    }
    if (rc == 0 && !plain)
        rc = form_run(s->form, p + run, n - run, out, e);
    else if (rc == 0)
        moe_buf_add(out, p + run, n - run);
    return rc;
}

static int
replace(const struct step *s, const char *p, size_t n, struct moe_buf *out, struct moe_err *e)
{
    struct moe_regex_run *run;
    size_t from, to, at = 0;
    int rc = moe_regex_run_new(s->find, &run, e);

    if (rc != 0)
        return rc;
    moe_regex_start(run, p, n);
    while ((rc = moe_regex_next(run, &from, &to, e)) == 1) {
        moe_buf_add(out, p + at, from - at);
        moe_buf_add(out, s->text.p, s->text.len);
        at = to;
        if (out->len / MOE_NORMALIZER_MAX_GROWTH > n) {
            rc = moe_err_set(e, MOE_ELIMIT, "normalisation makes the text too long");
            break;
        }
    }
    if (rc == 0)
        moe_buf_add(out, p + at, n - at);
    moe_regex_run_free(run);
    return rc;
}

static int
run_step(const struct step *s, const char *p, size_t n, struct moe_buf *out, struct moe_err *e)
{
    switch (s->kind) {
    case PREPEND:
        if (n > 0)
            moe_buf_add(out, s->text.p, s->text.len);
        moe_buf_add(out, p, n);
        return 0;
    case REPLACE:
        return replace(s, p, n, out, e);
    default:
        return form(s, p, n, out, e);
    }
}

int
moe_normalizer_run(const struct moe_normalizer *nz, const char *p, size_t n,
    struct moe_buf *out, struct moe_buf *tmp, struct moe_err *e)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < nz->n; i++) {
        struct moe_buf swap = *tmp;

        if (i > 0) {
            *tmp = *out;
            *out = swap;
            moe_buf_clear(out);
            p = tmp->p;
            n = tmp->len;
        }
        rc = run_step(&nz->step[i], p, n, out, e);
        if (rc == 0 && out->bad)
            rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    }
    if (nz->n == 0)
        moe_buf_add(out, p, n);
    return rc == 0 && out->bad ? moe_err_set(e, MOE_ENOMEM, "out of memory") : rc;
}
