/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the methods of strings: a table of rows.
 */
#include <string.h>
#include <utf8proc.h>

#include "common/base/utf8.h"
#include "common/engine/template_case.h"
#include "common/engine/template_format.h"
#include "common/engine/template_items.h"
#include "common/engine/template_method.h"
#include "common/engine/template_space.h"
#include "common/engine/template_string.h"

#define METHOD(name) \
    name(struct moe_trun *r, struct moe_tval *a, const struct moe_targs *args, struct moe_tval *out)

static int
want_str(struct moe_trun *r, const struct moe_tval *v)
{
    if (v->kind == MOE_T_STR)
        return 0;
    return moe_template_value_fail(r, "must be str, not %s", moe_template_value_type(v));
}

/* A whole number, or the fallback when it was not given. */
static int
want_int(struct moe_trun *r, const struct moe_tval *v, int64_t fallback, int64_t *out)
{
    *out = fallback;
    if (v->kind == MOE_T_MISSING)
        return 0;
    if (v->kind != MOE_T_INT && v->kind != MOE_T_BOOL)
        return moe_template_value_fail(r, "'%s' object cannot be interpreted as an integer",
            moe_template_value_type(v));
    *out = v->kind == MOE_T_BOOL ? v->u.b : v->u.i;
    return 0;
}

/* ---- Case and kinds of characters ------------------------------------------------------ */

static int
change(struct moe_trun *r, const struct moe_tval *v, enum moe_tcase how, struct moe_tval *out)
{
    struct moe_tbuf b;
    int rc;

    moe_template_value_begin(r, &b);
    rc = moe_template_case(&b, v->u.s, how);
    return rc != 0 ? rc : moe_template_value_done(&b, out);
}

static int METHOD(str_upper) { (void)args; return change(r, a, MOE_CASE_UPPER, out); }
static int METHOD(str_lower) { (void)args; return change(r, a, MOE_CASE_LOWER, out); }
static int METHOD(str_title) { (void)args; return change(r, a, MOE_CASE_TITLE, out); }
static int METHOD(str_capitalize) { (void)args; return change(r, a, MOE_CASE_CAPITAL, out); }
static int METHOD(str_swapcase) { (void)args; return change(r, a, MOE_CASE_SWAP, out); }
static int METHOD(str_casefold) { (void)args; return change(r, a, MOE_CASE_FOLD, out); }

static bool
is_alpha(uint32_t c)
{
    return utf8proc_category_string((utf8proc_int32_t)c)[0] == 'L';
}

static bool
is_decimal(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_ND;
}

/* Also the digits of other forms, such as superscripts. */
static bool
is_digit(uint32_t c)
{
    return is_decimal(c) || c == 0xb2 || c == 0xb3 || c == 0xb9 || (c >= 0x2070 && c <= 0x2089) ||
        (c >= 0x2460 && c <= 0x2468);
}

static bool
is_numeric(uint32_t c)
{
    return utf8proc_category_string((utf8proc_int32_t)c)[0] == 'N';
}

static bool
is_alnum(uint32_t c)
{
    return is_alpha(c) || is_numeric(c);
}

static bool
is_ascii(uint32_t c)
{
    return c < 0x80;
}

/* Whether s has characters and all of them are of a kind. */
static int
all_are(const struct moe_tval *v, bool (*is)(uint32_t), bool empty, struct moe_tval *out)
{
    bool yes = v->u.s->n > 0 || empty;
    size_t k;

    for (size_t at = 0; yes && at < v->u.s->n; at += k) {
        uint32_t c = 0;

        k = moe_utf8_get(v->u.s->p + at, v->u.s->n - at, &c);
        yes = is(c);
    }
    *out = moe_template_value_bool(yes);
    return 0;
}

static int METHOD(str_isalpha) { (void)r; (void)args; return all_are(a, is_alpha, false, out); }
static int METHOD(str_isdecimal) { (void)r; (void)args; return all_are(a, is_decimal, false, out); }
static int METHOD(str_isdigit) { (void)r; (void)args; return all_are(a, is_digit, false, out); }
static int METHOD(str_isnumeric) { (void)r; (void)args; return all_are(a, is_numeric, false, out); }
static int METHOD(str_isalnum) { (void)r; (void)args; return all_are(a, is_alnum, false, out); }
static int METHOD(str_isascii) { (void)r; (void)args; return all_are(a, is_ascii, true, out); }

static int
METHOD(str_isspace)
{
    (void)r;
    (void)args;
    return all_are(a, moe_template_space_is, false, out);
}

static int
METHOD(str_isupper)
{
    (void)r;
    (void)args;
    *out = moe_template_value_bool(moe_template_case_is(a->u.s, true));
    return 0;
}

static int
METHOD(str_islower)
{
    (void)r;
    (void)args;
    *out = moe_template_value_bool(moe_template_case_is(a->u.s, false));
    return 0;
}

/* ---- Cutting --------------------------------------------------------------------- */

static int
strip(struct moe_trun *r, struct moe_tval *a, int ends, struct moe_tval *out)
{
    bool chars = a[1].kind != MOE_T_MISSING && a[1].kind != MOE_T_NONE;
    int rc = chars ? want_str(r, &a[1]) : 0;

    return rc != 0 ? rc
        : moe_template_string_strip(r, a->u.s, chars ? a[1].u.s : NULL, ends, out);
}

static int
METHOD(str_strip)
{
    (void)args;
    return strip(r, a, MOE_STRIP_LEFT | MOE_STRIP_RIGHT, out);
}

static int METHOD(str_lstrip) { (void)args; return strip(r, a, MOE_STRIP_LEFT, out); }
static int METHOD(str_rstrip) { (void)args; return strip(r, a, MOE_STRIP_RIGHT, out); }

static int
split(struct moe_trun *r, struct moe_tval *a, bool right, struct moe_tval *out)
{
    bool sep = a[1].kind != MOE_T_MISSING && a[1].kind != MOE_T_NONE;
    int64_t max;
    int rc;

    if ((sep && (rc = want_str(r, &a[1])) != 0) || (rc = want_int(r, &a[2], -1, &max)) != 0)
        return rc;
    return moe_template_string_split(r, a->u.s, sep ? a[1].u.s : NULL, max, right, out);
}

static int METHOD(str_split) { (void)args; return split(r, a, false, out); }
static int METHOD(str_rsplit) { (void)args; return split(r, a, true, out); }

static int
METHOD(str_splitlines)
{
    (void)args;
    return moe_template_string_lines(r, a->u.s, moe_template_value_truth(&a[1]), out);
}

/* Three parts: before, the separator, after. */
static int
partition(struct moe_trun *r, struct moe_tval *a, bool right, struct moe_tval *out)
{
    const struct moe_tstr *s = a->u.s;
    struct moe_tlist *l;
    size_t at;
    int rc;

    if ((rc = want_str(r, &a[1])) != 0 ||
        (rc = moe_template_value_list(r, MOE_T_TUPLE, 3, out)) != 0)
        return rc;
    if (a[1].u.s->n == 0)
        return moe_template_value_fail(r, "empty separator");
    l = out->u.l;
    l->n = 3;
    at = moe_template_string_find(s, a[1].u.s, 0, s->n, right);
    if (at == SIZE_MAX) {
        size_t cut = right ? 0 : s->n;

        if ((rc = moe_template_value_sub(r, s, 0, cut, &l->v[0])) == 0 &&
            (rc = moe_template_value_sub(r, s, cut, cut, &l->v[1])) == 0)
            rc = moe_template_value_sub(r, s, cut, s->n, &l->v[2]);
        return rc;
    }
    l->v[1] = a[1];
    if ((rc = moe_template_value_sub(r, s, 0, at, &l->v[0])) == 0)
        rc = moe_template_value_sub(r, s, at + a[1].u.s->n, s->n, &l->v[2]);
    return rc;
}

static int METHOD(str_partition) { (void)args; return partition(r, a, false, out); }
static int METHOD(str_rpartition) { (void)args; return partition(r, a, true, out); }

static bool
begins(const struct moe_tstr *s, const struct moe_tstr *with, bool end)
{
    return with->n <= s->n &&
        (with->n == 0 || memcmp(end ? s->p + s->n - with->n : s->p, with->p, with->n) == 0);
}

/* With one string, or with any of a tuple of them. */
static int
at_end(struct moe_trun *r, const struct moe_tval *a, bool end, struct moe_tval *out)
{
    const struct moe_tval *with = &a[1];
    size_t n = 1;
    bool yes = false;

    if (a[1].kind == MOE_T_TUPLE) {
        with = a[1].u.l->v;
        n = a[1].u.l->n;
    }
    for (size_t i = 0; !yes && i < n; i++) {
        if (with[i].kind != MOE_T_STR)
            return moe_template_value_fail(r,
                "%s first arg must be str or a tuple of str, not %s",
                end ? "endswith" : "startswith", moe_template_value_type(&with[i]));
        yes = begins(a->u.s, with[i].u.s, end);
    }
    *out = moe_template_value_bool(yes);
    return 0;
}

static int METHOD(str_startswith) { (void)args; return at_end(r, a, false, out); }
static int METHOD(str_endswith) { (void)args; return at_end(r, a, true, out); }

static int
METHOD(str_removeprefix)
{
    int rc = want_str(r, &a[1]);

    (void)args;
    return rc != 0 ? rc : moe_template_value_sub(r, a->u.s,
        begins(a->u.s, a[1].u.s, false) ? a[1].u.s->n : 0, a->u.s->n, out);
}

static int
METHOD(str_removesuffix)
{
    int rc = want_str(r, &a[1]);

    (void)args;
    return rc != 0 ? rc : moe_template_value_sub(r, a->u.s, 0,
        a->u.s->n - (begins(a->u.s, a[1].u.s, true) ? a[1].u.s->n : 0), out);
}

/* ---- Finding --------------------------------------------------------------------- */

/* Bytes of the characters that optional bounds a[2], a[3] leave. */
static int
window(struct moe_trun *r, const struct moe_tval *a, size_t *from, size_t *to)
{
    int64_t n = (int64_t)moe_template_value_chars(a->u.s), lo, hi;
    int rc;

    if ((rc = want_int(r, &a[2], 0, &lo)) != 0 || (rc = want_int(r, &a[3], n, &hi)) != 0)
        return rc;
    lo = lo < 0 ? (lo + n < 0 ? 0 : lo + n) : lo;
    hi = hi < 0 ? (hi + n < 0 ? 0 : hi + n) : hi > n ? n : hi;
    if (lo > n || lo > hi) {
        *from = 1;
        *to = 0;
        return 0;
    }
    *from = moe_template_value_offset(a->u.s, (size_t)lo);
    *to = moe_template_value_offset(a->u.s, (size_t)hi);
    return 0;
}

static int
locate(struct moe_trun *r, const struct moe_tval *a, bool last, bool must, struct moe_tval *out)
{
    size_t from, to, at, chars = 0;
    int rc;

    if ((rc = want_str(r, &a[1])) != 0 || (rc = window(r, a, &from, &to)) != 0 ||
        (rc = moe_template_value_step(r, 1 + a->u.s->n / 16)) != 0)
        return rc;
    at = moe_template_string_find(a->u.s, a[1].u.s, from, to, last);
    if (at == SIZE_MAX && must)
        return moe_template_value_fail(r, "substring not found");
    for (size_t i = 0; at != SIZE_MAX && i < at; i++)
        chars += ((unsigned char)a->u.s->p[i] & 0xc0) != 0x80;
    *out = moe_template_value_int(at == SIZE_MAX ? -1 : (int64_t)chars);
    return 0;
}

static int METHOD(str_find) { (void)args; return locate(r, a, false, false, out); }
static int METHOD(str_rfind) { (void)args; return locate(r, a, true, false, out); }
static int METHOD(str_index) { (void)args; return locate(r, a, false, true, out); }
static int METHOD(str_rindex) { (void)args; return locate(r, a, true, true, out); }

static int
METHOD(str_count)
{
    int rc = want_str(r, &a[1]);

    (void)args;
    if (rc == 0)
        *out = moe_template_value_int((int64_t)moe_template_string_count(a->u.s, a[1].u.s));
    return rc;
}

/* ---- Making ---------------------------------------------------------------------- */

static int
METHOD(str_replace)
{
    int64_t count;
    int rc;

    (void)args;
    if ((rc = want_str(r, &a[1])) != 0 || (rc = want_str(r, &a[2])) != 0 ||
        (rc = want_int(r, &a[3], -1, &count)) != 0)
        return rc;
    return moe_template_string_replace(r, a->u.s, a[1].u.s, a[2].u.s, count, out);
}

static int
METHOD(str_join)
{
    const struct moe_tlist *l;
    int rc = moe_template_items_all(r, a[1], &l);

    (void)args;
    return rc != 0 ? rc : moe_template_string_join(r, a->u.s, l, out);
}

static int
METHOD(str_format)
{
    return moe_template_format_braces(r, a->u.s, args, out);
}

static int
pad(struct moe_trun *r, struct moe_tval *a, char where, struct moe_tval *out)
{
    const struct moe_tstr space = { .p = " ", .n = 1, .chars = 1 }, *fill = &space;
    int64_t width;
    int rc = want_int(r, &a[1], 0, &width);

    if (rc != 0)
        return rc;
    if (a[2].kind == MOE_T_STR && moe_template_value_chars(a[2].u.s) == 1)
        fill = a[2].u.s;
    else if (a[2].kind != MOE_T_MISSING)
        return moe_template_value_fail(r, "The fill character must be exactly one character long");
    return moe_template_string_pad(r, a->u.s, width, fill, where, out);
}

static int METHOD(str_center) { (void)args; return pad(r, a, '^', out); }
static int METHOD(str_ljust) { (void)args; return pad(r, a, '<', out); }
static int METHOD(str_rjust) { (void)args; return pad(r, a, '>', out); }

/* Zeros after the sign. */
static int
METHOD(str_zfill)
{
    const struct moe_tstr zero = { .p = "0", .n = 1, .chars = 1 };
    size_t sign = a->u.s->n > 0 && (*a->u.s->p == '-' || *a->u.s->p == '+');
    struct moe_tval rest;
    struct moe_tbuf b;
    int64_t width;
    int rc;

    (void)args;
    if ((rc = want_int(r, &a[1], 0, &width)) != 0 ||
        (rc = moe_template_value_sub(r, a->u.s, sign, a->u.s->n, &rest)) != 0 ||
        (rc = moe_template_string_pad(r, rest.u.s, width - (int64_t)sign, &zero, '>', &rest)) != 0)
        return rc;
    moe_template_value_begin(r, &b);
    if ((rc = moe_template_value_add(&b, a->u.s->p, sign, false)) == 0 &&
        (rc = moe_template_value_add_str(&b, rest.u.s)) == 0)
        rc = moe_template_value_done(&b, out);
    return rc;
}

static int
METHOD(str_expandtabs)
{
    const struct moe_tstr *s = a->u.s;
    bool outside = moe_template_value_outside(s);
    struct moe_tbuf b;
    int64_t size, column = 0;
    size_t k;
    int rc = want_int(r, &a[1], 8, &size);

    (void)args;
    if (rc == 0 && size > 1000)
        return moe_template_value_limit(r, "tabs too wide");
    moe_template_value_begin(r, &b);
    for (size_t at = 0; rc == 0 && at < s->n; at += k) {
        k = moe_utf8_len(s->p + at, s->n - at);
        if (s->p[at] != '\t') {
            column = s->p[at] == '\n' || s->p[at] == '\r' ? 0 : column + 1;
            rc = moe_template_value_add(&b, s->p + at, k, outside);
            continue;
        }
        for (int64_t n = size > 0 ? size - column % size : 0; rc == 0 && n > 0; n--, column++)
            rc = moe_template_value_add(&b, " ", 1, outside);
    }
    return rc != 0 ? rc : moe_template_value_done(&b, out);
}

/* ---- The table -------------------------------------------------------------------- */

const struct moe_tfunction moe_template_method_text[] = {
    { "upper", 1, "self", str_upper }, { "lower", 1, "self", str_lower },
    { "title", 1, "self", str_title }, { "capitalize", 1, "self", str_capitalize },
    { "swapcase", 1, "self", str_swapcase }, { "casefold", 1, "self", str_casefold },
    { "isalpha", 1, "self", str_isalpha }, { "isdecimal", 1, "self", str_isdecimal },
    { "isdigit", 1, "self", str_isdigit }, { "isnumeric", 1, "self", str_isnumeric },
    { "isalnum", 1, "self", str_isalnum }, { "isascii", 1, "self", str_isascii },
    { "isspace", 1, "self", str_isspace }, { "isupper", 1, "self", str_isupper },
    { "islower", 1, "self", str_islower }, { "strip", 1, "self chars", str_strip },
    { "lstrip", 1, "self chars", str_lstrip }, { "rstrip", 1, "self chars", str_rstrip },
    { "split", 1, "self sep maxsplit", str_split },
    { "rsplit", 1, "self sep maxsplit", str_rsplit },
    { "splitlines", 1, "self keepends", str_splitlines },
    { "partition", 2, "self sep", str_partition }, { "rpartition", 2, "self sep", str_rpartition },
    { "startswith", 2, "self prefix", str_startswith },
    { "endswith", 2, "self suffix", str_endswith },
    { "removeprefix", 2, "self prefix", str_removeprefix },
    { "removesuffix", 2, "self suffix", str_removesuffix },
    { "find", 2, "self sub start end", str_find }, { "rfind", 2, "self sub start end", str_rfind },
    { "index", 2, "self sub start end", str_index },
    { "rindex", 2, "self sub start end", str_rindex }, { "count", 2, "self sub", str_count },
    { "replace", 3, "self old new count", str_replace }, { "join", 2, "self iterable", str_join },
    { "format", 1, "*", str_format }, { "center", 2, "self width fillchar", str_center },
    { "ljust", 2, "self width fillchar", str_ljust },
    { "rjust", 2, "self width fillchar", str_rjust }, { "zfill", 2, "self width", str_zfill },
    { "expandtabs", 1, "self tabsize", str_expandtabs }, { NULL, 0, NULL, NULL },
};
