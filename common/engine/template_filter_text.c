/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns filters over text: case, white space, cutting, escaping, formatting.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/engine/template_case.h"
#include "common/engine/template_filter.h"
#include "common/engine/template_format.h"
#include "common/engine/template_items.h"
#include "common/engine/template_print.h"
#include "common/engine/template_space.h"
#include "common/engine/template_string.h"

#define FILTER(name) \
    name(struct moe_trun *r, struct moe_tval *a, const struct moe_targs *args, struct moe_tval *out)

static int
change(struct moe_trun *r, struct moe_tval v, enum moe_tcase how, struct moe_tval *out)
{
    struct moe_tbuf b;
    int rc;

    if ((rc = moe_template_print_text(r, v, &v)) != 0)
        return rc;
    moe_template_value_begin(r, &b);
    rc = moe_template_case(&b, v.u.s, how);
    return rc != 0 ? rc : moe_template_value_done(&b, out);
}

static int FILTER(do_upper) { (void)args; return change(r, a[0], MOE_CASE_UPPER, out); }
static int FILTER(do_lower) { (void)args; return change(r, a[0], MOE_CASE_LOWER, out); }
static int FILTER(do_capitalize) { (void)args; return change(r, a[0], MOE_CASE_CAPITAL, out); }
static int FILTER(do_string) { (void)args; return moe_template_print_text(r, a[0], out); }

/* Words begin after spaces, hyphens and opening brackets. */
static int
FILTER(do_title)
{
    const struct moe_tstr *s;
    struct moe_tval v, part;
    struct moe_tbuf b;
    size_t from = 0, k;
    int rc = moe_template_print_text(r, a[0], &v);

    (void)args;
    if (rc != 0)
        return rc;
    s = v.u.s;
    moe_template_value_begin(r, &b);
    for (size_t at = 0; rc == 0 && at <= s->n; at += k) {
        uint32_t c = ' ';
        bool end;

        k = at == s->n ? 1 : moe_utf8_get(s->p + at, s->n - at, &c);
        end = at == s->n || moe_template_space_is(c) || (c < 0x80 && strchr("-({[<", (int)c));
        if (end && at > from) {
            size_t first = from + moe_utf8_len(s->p + from, s->n - from);

            if ((rc = moe_template_value_sub(r, s, from, first, &part)) != 0 ||
                (rc = moe_template_case(&b, part.u.s, MOE_CASE_UPPER)) != 0 ||
                (rc = moe_template_value_sub(r, s, first, at, &part)) != 0 ||
                (rc = moe_template_case(&b, part.u.s, MOE_CASE_LOWER)) != 0)
                break;
        }
        if (end && at < s->n)
            rc = moe_template_value_add(&b, s->p + at, k, moe_template_value_outside(s));
        if (end)
            from = at + k;
    }
    return rc != 0 ? rc : moe_template_value_done(&b, out);
}

static int
FILTER(do_trim)
{
    struct moe_tval v;
    int rc;

    (void)args;
    if ((rc = moe_template_print_text(r, a[0], &v)) != 0)
        return rc;
    if (moe_template_filter_given(&a[1]) && a[1].kind != MOE_T_STR)
        return moe_template_value_fail(r, "strip arg must be None or str");
    return moe_template_string_strip(r, v.u.s, moe_template_filter_given(&a[1]) ? a[1].u.s : NULL,
        MOE_STRIP_LEFT | MOE_STRIP_RIGHT, out);
}

static int
FILTER(do_replace)
{
    struct moe_tval v, old, to;
    int64_t count;
    int rc;

    (void)args;
    if ((rc = moe_template_print_text(r, a[0], &v)) != 0 ||
        (rc = moe_template_print_text(r, a[1], &old)) != 0 ||
        (rc = moe_template_print_text(r, a[2], &to)) != 0 ||
        (rc = moe_template_filter_int(r, &a[3], -1, &count)) != 0)
        return rc;
    return moe_template_string_replace(r, v.u.s, old.u.s, to.u.s, count, out);
}

static int
FILTER(do_center)
{
    const struct moe_tstr space = { .p = " ", .n = 1, .chars = 1 };
    struct moe_tval v;
    int64_t width;
    int rc;

    (void)args;
    if ((rc = moe_template_print_text(r, a[0], &v)) != 0 ||
        (rc = moe_template_filter_int(r, &a[1], 80, &width)) != 0)
        return rc;
    return moe_template_string_pad(r, v.u.s, width, &space, '^', out);
}

/* The indent of every line but the first; blank lines only when asked. */
static int
FILTER(do_indent)
{
    const struct moe_tstr space = { .p = " ", .n = 1, .chars = 1 };
    const struct moe_tstr none = { .p = "", .n = 0, .chars = 0 };
    bool first = moe_template_value_truth(&a[2]), blank = moe_template_value_truth(&a[3]);
    struct moe_tval text, width = a[1], lines;
    struct moe_tbuf b;
    int64_t n;
    int rc;

    (void)args;
    if ((rc = moe_template_filter_need_str(r, &a[0])) != 0)
        return rc;
    text = a[0];
    if (width.kind != MOE_T_STR && ((rc = moe_template_filter_int(r, &a[1], 4, &n)) != 0 ||
        (rc = moe_template_string_pad(r, (struct moe_tstr *)(uintptr_t)&none, n, &space, '<',
            &width)) != 0))
        return rc;
    if ((rc = moe_template_string_lines(r, text.u.s, false, &lines)) != 0)
        return rc;
    /* A newline at the end begins one more, empty line. */
    if (text.u.s->n == 0 || text.u.s->p[text.u.s->n - 1] == '\n') {
        struct moe_tval last;

        if ((rc = moe_template_value_str(r, "", 0, false, &last)) != 0 ||
            (rc = moe_template_value_push(r, lines.u.l, last)) != 0)
            return rc;
    }
    moe_template_value_begin(r, &b);
    for (size_t i = 0; rc == 0 && i < lines.u.l->n; i++) {
        const struct moe_tstr *line = lines.u.l->v[i].u.s;

        if (i > 0)
            rc = moe_template_value_add(&b, "\n", 1, false);
        if (rc == 0 && (i == 0 ? first : blank || line->n > 0))
            rc = moe_template_value_add_str(&b, width.u.s);
        if (rc == 0)
            rc = moe_template_value_add_str(&b, line);
    }
    return rc != 0 ? rc : moe_template_value_done(&b, out);
}

static int
FILTER(do_escape)
{
    static const struct { char c; const char *text; } rows[] = { { '&', "&amp;" },
        { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&#34;" }, { '\'', "&#39;" } };
    struct moe_tval v;
    struct moe_tbuf b;
    int rc = moe_template_print_text(r, a[0], &v);
    bool outside = rc == 0 && moe_template_value_outside(v.u.s);

    (void)args;
    moe_template_value_begin(r, &b);
    for (size_t at = 0; rc == 0 && at < v.u.s->n; at++) {
        const char *text = NULL;

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
            if (v.u.s->p[at] == rows[i].c)
                text = rows[i].text;
        rc = text != NULL ? moe_template_value_add(&b, text, strlen(text), outside)
            : moe_template_value_add(&b, v.u.s->p + at, 1, outside);
    }
    return rc != 0 ? rc : moe_template_value_done(&b, out);
}

/* Without comments and tags, white space runs as one space. */
static int
FILTER(do_striptags)
{
    struct moe_tval v, words;
    struct moe_tbuf b;
    const char *p, *end, *close;
    int rc = moe_template_print_text(r, a[0], &v);

    (void)args;
    if (rc != 0)
        return rc;
    moe_template_value_begin(r, &b);
    for (p = v.u.s->p, end = p + v.u.s->n; rc == 0 && p < end;) {
        const char *tag = memchr(p, '<', (size_t)(end - p));

        close = tag == NULL ? NULL : end - tag >= 4 && memcmp(tag, "<!--", 4) == 0
            ? memmem(tag, (size_t)(end - tag), "-->", 3) : memchr(tag, '>', (size_t)(end - tag));
        if (close == NULL)
            tag = end;
        rc = moe_template_value_add(&b, p, (size_t)(tag - p), moe_template_value_outside(v.u.s));
        p = close == NULL ? end : close + (*close == '-' ? 3 : 1);
    }
    if (rc != 0 || (rc = moe_template_value_done(&b, &v)) != 0 ||
        (rc = moe_template_string_split(r, v.u.s, NULL, -1, false, &words)) != 0)
        return rc;
    return moe_template_string_join(r, &(struct moe_tstr){ .p = " ", .n = 1 }, words.u.l, out);
}

static int
FILTER(do_truncate)
{
    struct moe_tval text = a[0], mark = a[3], cut;
    struct moe_tbuf b;
    int64_t length, leeway;
    size_t keep, last, n;
    bool has;
    int rc;

    (void)args;
    if ((rc = moe_template_filter_int(r, &a[1], 255, &length)) != 0 ||
        (rc = moe_template_filter_int(r, &a[4], 5, &leeway)) != 0 ||
        (mark.kind != MOE_T_STR && (rc = moe_template_value_str(r, "...", 3, false, &mark)) != 0))
        return rc;
    if (length < (int64_t)moe_template_value_chars(mark.u.s) || leeway < 0)
        return moe_template_value_fail(r, "expected length >= len(end) and leeway >= 0");
    (void)moe_template_items_len(r, text, &has, &n);
    if (has && (uint64_t)length + (uint64_t)leeway >= n) {
        *out = text;
        return 0;
    }
    if ((rc = moe_template_filter_need_str(r, &text)) != 0)
        return rc;
    keep = moe_template_value_offset(text.u.s,
        (size_t)length - moe_template_value_chars(mark.u.s));
    if (!moe_template_value_truth(&a[2])) {
        last = moe_template_string_find(text.u.s, &(struct moe_tstr){ .p = " ", .n = 1 }, 0, keep,
            true);
        keep = last == SIZE_MAX ? keep : last;
    }
    moe_template_value_begin(r, &b);
    if ((rc = moe_template_value_sub(r, text.u.s, 0, keep, &cut)) == 0 &&
        (rc = moe_template_value_add_str(&b, cut.u.s)) == 0 &&
        (rc = moe_template_value_add_str(&b, mark.u.s)) == 0)
        rc = moe_template_value_done(&b, out);
    return rc;
}

/* Runs of letters, numbers, marks and underscores. */
static int
FILTER(do_wordcount)
{
    struct moe_tval v, c;
    int64_t n = 0;
    bool in = false;
    size_t k;
    int rc = moe_template_print_text(r, a[0], &v);

    (void)args;
    for (size_t at = 0; rc == 0 && at < v.u.s->n; at += k) {
        const struct moe_tfunction *alnum = moe_template_method(MOE_T_STR, "isalnum");
        bool word;

        k = moe_utf8_len(v.u.s->p + at, v.u.s->n - at);
        if ((rc = moe_template_value_sub(r, v.u.s, at, at + k, &c)) != 0 ||
            (rc = alnum->fn(r, &c, NULL, &c)) != 0)
            return rc;
        word = c.u.b || v.u.s->p[at] == '_';
        n += word && !in;
        in = word;
    }
    *out = moe_template_value_int(n);
    return rc;
}

static int
put_url(struct moe_tbuf *b, struct moe_tval v, const char *safe, bool plus)
{
    int rc = moe_template_print_text(b->r, v, &v);

    for (size_t i = 0; rc == 0 && i < v.u.s->n; i++) {
        unsigned char c = (unsigned char)v.u.s->p[i];
        bool as_is = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
            (c != '\0' && c < 0x80 && strchr(safe, c) != NULL);
        char text[4];

        (void)snprintf(text, sizeof(text), "%%%02X", c);
        rc = as_is ? moe_template_value_add(b, v.u.s->p + i, 1, true)
            : c == ' ' && plus ? moe_template_value_add(b, "+", 1, true)
            : moe_template_value_add(b, text, 3, true);
    }
    return rc;
}

/* One text, or pairs as a query. */
static int
FILTER(do_urlencode)
{
    struct moe_tview view = { NULL, "items" };
    const struct moe_tlist *pairs;
    struct moe_tval v = a[0];
    struct moe_tbuf b;
    int rc = 0;

    (void)args;
    moe_template_value_begin(r, &b);
    if (v.kind != MOE_T_DICT && v.kind != MOE_T_LIST && v.kind != MOE_T_TUPLE) {
        rc = put_url(&b, v, "_.-~/", false);
        return rc != 0 ? rc : moe_template_value_done(&b, out);
    }
    if (v.kind == MOE_T_DICT) {
        view.d = v.u.d;
        v = (struct moe_tval){ .kind = MOE_T_VIEW, .u.view = &view };
    }
    if ((rc = moe_template_items_all(r, v, &pairs)) != 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < pairs->n; i++) {
        const struct moe_tlist *pair;

        if ((rc = moe_template_items_all(r, pairs->v[i], &pair)) != 0)
            return rc;
        if (pair->n != 2)
            return moe_template_value_fail(r, "a pair is expected, not %zu items", pair->n);
        if ((i > 0 && (rc = moe_template_value_add(&b, "&", 1, false)) != 0) ||
            (rc = put_url(&b, pair->v[0], "_.-~", true)) != 0 ||
            (rc = moe_template_value_add(&b, "=", 1, false)) != 0)
            return rc;
        rc = put_url(&b, pair->v[1], "_.-~", true);
    }
    return rc != 0 ? rc : moe_template_value_done(&b, out);
}

static int
FILTER(do_format)
{
    struct moe_tval v, values;
    int rc = moe_template_print_text(r, a[0], &v);

    if (rc != 0)
        return rc;
    if (args->n > 0 && args->n_kw > 0)
        return moe_template_value_fail(r,
            "can't handle positional and keyword arguments at the same time");
    if (args->n_kw == 0) {
        rc = moe_template_value_list(r, MOE_T_TUPLE, 0, &values);
        for (size_t i = 0; rc == 0 && i < args->n; i++)
            rc = moe_template_value_push(r, values.u.l, args->pos[i]);
    } else {
        rc = moe_template_global("dict")->fn(r, NULL, args, &values);
    }
    return rc != 0 ? rc : moe_template_format_percent(r, v.u.s, values, out);
}

/* ---- The table -------------------------------------------------------------------- */

const struct moe_tfunction moe_template_filter_text[] = {
    { "upper", 1, "s", do_upper }, { "lower", 1, "s", do_lower },
    { "capitalize", 1, "s", do_capitalize }, { "title", 1, "s", do_title },
    { "trim", 1, "value chars", do_trim }, { "string", 1, "value", do_string },
    { "safe", 1, "value", do_string }, { "escape", 1, "value", do_escape },
    { "e", 1, "value", do_escape }, { "replace", 3, "s old new count", do_replace },
    { "center", 1, "value width", do_center }, { "indent", 1, "s width first blank", do_indent },
    { "striptags", 1, "value", do_striptags },
    { "truncate", 1, "s length killwords end leeway", do_truncate },
    { "wordcount", 1, "s", do_wordcount }, { "urlencode", 1, "value", do_urlencode },
    { "format", 1, "*", do_format }, { NULL, 0, NULL, NULL },
};
