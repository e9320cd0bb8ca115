/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the grammar of RFC 8259, taken one value at a time. Builds no tree and
 * does not look for duplicate keys. Nothing here recurses: open containers are
 * marks in two arrays of fixed length.
 */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/scan.h"
#include "common/base/utf8.h"

/* Numbers up to this long are converted without the heap. */
#define SHORT_NUMBER 128

void
moe_scan_init(struct moe_scan *s, const char *p, size_t n, const char *name)
{
    *s = (struct moe_scan){ .name = name, .text = MOE_BUF_INIT };
    s->p = s->start = p;
    s->end = n > 0 ? p + n : p;
}

void
moe_scan_fini(struct moe_scan *s)
{
    moe_buf_fini(&s->text);
}

/* Fail at s->p with code. */
static int
fail(struct moe_scan *s, struct moe_err *e, int code, const char *what)
{
    size_t line = 1, column = 1;

    for (const char *q = s->start; q < s->p; q++) {
        if (*q == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)*q & 0xc0) != 0x80) {
            column++;
        }
    }
    return moe_err_set(e, code, "%s:%zu:%zu: %s", s->name, line, column, what);
}

int
moe_scan_fail(struct moe_scan *s, struct moe_err *e, const char *what)
{
    return fail(s, e, MOE_EFORMAT, what);
}

static int
no_memory(struct moe_scan *s, struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", s->name);
}

static void
skip_blanks(struct moe_scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
        s->p++;
}

static bool
is_digit(const char *p, const char *end)
{
    return p < end && *p >= '0' && *p <= '9';
}

/* ---- Strings ---------------------------------------------------------------- */

/* Value of the four hexadecimal digits at p, or -1. */
static long
hex4(const char *p, const char *end)
{
    long v = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int c = (unsigned char)p[i];

        if (c >= '0' && c <= '9')
            c -= '0';
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            c = (c | 0x20) - 'a' + 10;
        else
            return -1;
        v = v * 16 + c;
    }
    return v;
}

/* The character of the \u escape at s->p (on the backslash), which is passed. */
static int
unicode_escape(struct moe_scan *s, uint32_t *c, struct moe_err *e)
{
    long hi = hex4(s->p + 2, s->end), lo;

    if (hi < 0)
        return moe_scan_fail(s, e, "\\u needs four hexadecimal digits");
    if (hi >= 0xdc00 && hi < 0xe000)
        return moe_scan_fail(s, e, "low surrogate without a high one");
    *c = (uint32_t)hi;
    if (hi < 0xd800 || hi >= 0xe000) {
        s->p += 6;
        return 0;
    }
    if (s->end - s->p < 12 || s->p[6] != '\\' || s->p[7] != 'u' ||
        (lo = hex4(s->p + 8, s->end)) < 0xdc00 || lo >= 0xe000)
        return moe_scan_fail(s, e, "high surrogate without a low one");
    *c = 0x10000 + ((uint32_t)(hi - 0xd800) << 10) + (uint32_t)(lo - 0xdc00);
    s->p += 12;
    return 0;
}

/* The escape at s->p (on the backslash): its character goes to text. */
static int
escape(struct moe_scan *s, struct moe_buf *text, struct moe_err *e)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at;
    char utf8[4];
    uint32_t c = 0;
    int rc;

    if (s->end - s->p < 2)
        return moe_scan_fail(s, e, "the string does not end");
    if (s->p[1] == 'u') {
        if ((rc = unicode_escape(s, &c, e)) != 0)
            return rc;
        if (text != NULL)
            moe_buf_add(text, utf8, moe_utf8_put(utf8, c));
        return 0;
    }
    at = s->p[1] == '\0' ? NULL : strchr(from, s->p[1]);
    if (at == NULL)
        return moe_scan_fail(s, e, "unknown escape");
    if (text != NULL)
        moe_buf_byte(text, to[at - from]);
    s->p += 2;
    return 0;
}

/* The string at s->p, unescaped into text unless that is NULL. */
static int
string(struct moe_scan *s, struct moe_buf *text, struct moe_err *e)
{
    int rc;

    if (s->p == s->end || *s->p != '"')
        return moe_scan_fail(s, e, "a string is expected");
    if (text != NULL)
        moe_buf_clear(text);
    s->p++;
    for (;;) {
        const char *run = s->p;
        size_t k;

        while (s->p < s->end && *s->p != '"' && *s->p != '\\' && (unsigned char)*s->p >= 0x20) {
            k = (unsigned char)*s->p < 0x80 ? 1 : moe_utf8_len(s->p, (size_t)(s->end - s->p));
            if (k == 0)
                return moe_scan_fail(s, e, "not UTF-8");
            s->p += k;
        }
        if (text != NULL)
            moe_buf_add(text, run, (size_t)(s->p - run));
        if (s->p == s->end)
            return moe_scan_fail(s, e, "the string does not end");
        if (*s->p == '"')
            break;
        if (*s->p != '\\')
            return moe_scan_fail(s, e, "control character in a string");
        if ((rc = escape(s, text, e)) != 0)
            return rc;
    }
    s->p++;
    return text != NULL && text->bad ? no_memory(s, e) : 0;
}

/* ---- Numbers ---------------------------------------------------------------- */

/* Pass the number at s->p; *whole: it has no fraction and no exponent. */
static int
number(struct moe_scan *s, bool *whole, struct moe_err *e)
{
    const char *p = s->p;

    *whole = true;
    if (p < s->end && *p == '-')
        p++;
    if (!is_digit(p, s->end))
        return moe_scan_fail(s, e, "a number is expected");
    if (*p == '0' && is_digit(p + 1, s->end))
        return moe_scan_fail(s, e, "a number does not begin with 0");
    while (is_digit(p, s->end))
        p++;
    if (p < s->end && *p == '.') {
        *whole = false;
        if (!is_digit(++p, s->end))
            return moe_scan_fail(s, e, "digits are missing after the point");
        while (is_digit(p, s->end))
            p++;
    }
    if (p < s->end && (*p == 'e' || *p == 'E')) {
        *whole = false;
        p++;
        if (p < s->end && (*p == '+' || *p == '-'))
            p++;
        if (!is_digit(p, s->end))
            return moe_scan_fail(s, e, "digits are missing in the exponent");
        while (is_digit(p, s->end))
            p++;
    }
    s->p = p;
    return 0;
}

/* strtod() with a point whatever the program's locale; "C" needs no memory. */
static double
to_double(const char *text)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double v = c == (locale_t)0 ? NAN : strtod_l(text, NULL, c);

    if (c != (locale_t)0)
        freelocale(c);
    return v;
}

int
moe_scan_real(struct moe_scan *s, double *v, struct moe_err *e)
{
    char small[SHORT_NUMBER];
    struct moe_buf big = MOE_BUF_INIT;
    const char *from;
    size_t n;
    bool whole, bad;
    int rc;

    skip_blanks(s);
    from = s->p;
    if ((rc = number(s, &whole, e)) != 0)
        return rc;
    n = (size_t)(s->p - from);
    if (n < sizeof(small)) {
        memcpy(small, from, n);
        small[n] = '\0';
        *v = to_double(small);
    } else {
        moe_buf_add(&big, from, n);
        bad = big.bad;
        *v = bad ? 0.0 : to_double(big.p);
        moe_buf_fini(&big);
        if (bad)
            return no_memory(s, e);
    }
    if (!isfinite(*v)) {
        s->p = from;
        return moe_scan_fail(s, e, "number out of range");
    }
    return 0;
}

/* The whole number at s->p as sign and magnitude. */
static int
whole_number(struct moe_scan *s, bool *negative, uint64_t *v, struct moe_err *e)
{
    const char *from;
    bool whole;
    int rc;

    skip_blanks(s);
    from = s->p;
    if ((rc = number(s, &whole, e)) != 0)
        return rc;
    if (!whole) {
        s->p = from;
        return moe_scan_fail(s, e, "a whole number is expected");
    }
    *negative = *from == '-';
    *v = 0;
    for (const char *p = from + *negative; p < s->p; p++) {
        uint64_t digit = (uint64_t)(*p - '0');

        if (*v > (UINT64_MAX - digit) / 10) {
            s->p = from;
            return moe_scan_fail(s, e, "number out of range");
        }
        *v = *v * 10 + digit;
    }
    return 0;
}

int
moe_scan_uint(struct moe_scan *s, uint64_t *v, struct moe_err *e)
{
    const char *from;
    bool negative = false;
    int rc;

    skip_blanks(s);
    from = s->p;
    if ((rc = whole_number(s, &negative, v, e)) != 0)
        return rc;
    if (negative) {
        s->p = from;
        return moe_scan_fail(s, e, "a number without a sign is expected");
    }
    return 0;
}

int
moe_scan_int(struct moe_scan *s, int64_t *v, struct moe_err *e)
{
    const char *from;
    uint64_t u = 0;
    bool negative = false;
    int rc;

    skip_blanks(s);
    from = s->p;
    if ((rc = whole_number(s, &negative, &u, e)) != 0)
        return rc;
    if (u > (uint64_t)INT64_MAX + negative) {
        s->p = from;
        return moe_scan_fail(s, e, "number out of range");
    }
    *v = negative && u > 0 ? -(int64_t)(u - 1) - 1 : (int64_t)u;
    return 0;
}

/* ---- Values ----------------------------------------------------------------- */

int
moe_scan_kind(struct moe_scan *s, enum moe_scan_kind *kind, struct moe_err *e)
{
    skip_blanks(s);
    if (s->p == s->end)
        return moe_scan_fail(s, e, "the text ends where a value is expected");
    switch (*s->p) {
    case 'n': *kind = MOE_SCAN_NULL; return 0;
    case 'f': *kind = MOE_SCAN_FALSE; return 0;
    case 't': *kind = MOE_SCAN_TRUE; return 0;
    case '"': *kind = MOE_SCAN_STRING; return 0;
    case '[': *kind = MOE_SCAN_ARRAY; return 0;
    case '{': *kind = MOE_SCAN_OBJECT; return 0;
    default: break;
    }
    if (*s->p != '-' && !is_digit(s->p, s->end))
        return moe_scan_fail(s, e, "a value is expected");
    *kind = MOE_SCAN_NUMBER;
    return 0;
}

int
moe_scan_enter(struct moe_scan *s, enum moe_scan_kind want, struct moe_err *e)
{
    bool object = want == MOE_SCAN_OBJECT;

    skip_blanks(s);
    if (s->p == s->end || *s->p != (object ? '{' : '['))
        return moe_scan_fail(s, e, object ? "an object is expected" : "an array is expected");
    if (s->depth == MOE_SCAN_MAX_DEPTH)
        return fail(s, e, MOE_ELIMIT, "nested too deep");
    s->p++;
    s->first[s->depth] = true;
    s->object[s->depth] = object;
    s->depth++;
    return 0;
}

/* As moe_scan_next(); a key goes to text unless that is NULL. */
static int
next(struct moe_scan *s, struct moe_buf *text, bool *more, struct moe_err *e)
{
    bool object = s->object[s->depth - 1], first = s->first[s->depth - 1];
    char close = object ? '}' : ']';
    int rc;

    skip_blanks(s);
    if (s->p < s->end && *s->p == close) {
        s->p++;
        s->depth--;
        *more = false;
        return 0;
    }
    if (!first) {
        if (s->p == s->end || *s->p != ',')
            return moe_scan_fail(s, e, object ? ", or } is expected" : ", or ] is expected");
        s->p++;
        skip_blanks(s);
    }
    s->first[s->depth - 1] = false;
    *more = true;
    if (!object)
        return 0;
    if (s->p == s->end || *s->p != '"')
        return moe_scan_fail(s, e, "a key is expected");
    if ((rc = string(s, text, e)) != 0)
        return rc;
    skip_blanks(s);
    if (s->p == s->end || *s->p != ':')
        return moe_scan_fail(s, e, ": is expected");
    s->p++;
    return 0;
}

int
moe_scan_next(struct moe_scan *s, bool *more, struct moe_err *e)
{
    return next(s, &s->text, more, e);
}

int
moe_scan_str(struct moe_scan *s, struct moe_err *e)
{
    skip_blanks(s);
    return string(s, &s->text, e);
}

/* Pass word if it comes next. */
static bool
literal(struct moe_scan *s, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
        return false;
    s->p += n;
    return true;
}

int
moe_scan_bool(struct moe_scan *s, bool *v, struct moe_err *e)
{
    skip_blanks(s);
    *v = literal(s, "true");
    if (!*v && !literal(s, "false"))
        return moe_scan_fail(s, e, "true or false is expected");
    return 0;
}

int
moe_scan_null(struct moe_scan *s, struct moe_err *e)
{
    skip_blanks(s);
    return literal(s, "null") ? 0 : moe_scan_fail(s, e, "null is expected");
}

/* Pass a number; only long ones and those with an exponent can leave the doubles. */
static int
skip_number(struct moe_scan *s, struct moe_err *e)
{
    const char *from = s->p;
    bool whole;
    double v;
    size_t n;
    int rc;

    if ((rc = number(s, &whole, e)) != 0)
        return rc;
    n = (size_t)(s->p - from);
    if (n < DBL_MAX_10_EXP && (whole || (!memchr(from, 'e', n) && !memchr(from, 'E', n))))
        return 0;
    s->p = from;
    return moe_scan_real(s, &v, e);
}

/* Pass a value; a container is only entered. */
static int
skip_one(struct moe_scan *s, struct moe_err *e)
{
    enum moe_scan_kind kind;
    bool truth;
    int rc;

    if ((rc = moe_scan_kind(s, &kind, e)) != 0)
        return rc;
    switch (kind) {
    case MOE_SCAN_NULL: return moe_scan_null(s, e);
    case MOE_SCAN_FALSE:
    case MOE_SCAN_TRUE: return moe_scan_bool(s, &truth, e);
    case MOE_SCAN_NUMBER: return skip_number(s, e);
    case MOE_SCAN_STRING: return string(s, NULL, e);
    default: return moe_scan_enter(s, kind, e);
    }
}

int
moe_scan_skip(struct moe_scan *s, struct moe_err *e)
{
    int outside = s->depth, rc;
    bool more = true;

    do {
        if (s->depth > outside && (rc = next(s, NULL, &more, e)) != 0)
            return rc;
        if (more && (rc = skip_one(s, e)) != 0)
            return rc;
        more = true;
    } while (s->depth > outside);
    return 0;
}

int
moe_scan_end(struct moe_scan *s, struct moe_err *e)
{
    skip_blanks(s);
    if (s->p < s->end)
        return moe_scan_fail(s, e, "text after the value");
    return 0;
}
