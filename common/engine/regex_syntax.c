/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the rewriting of patterns into PCRE2's syntax. It reads just enough to
 * know atoms, groups, classes and quantifiers apart; what the two engines read
 * differently is rewritten or refused, all else goes through as it is.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <utf8proc.h>

#include "common/base/utf8.h"
#include "common/engine/regex.h"
#include "common/engine/regex_class.h"
#include "common/engine/regex_syntax.h"

#define NO_ATOM SIZE_MAX

struct state {
    const char *p, *end;
    const char *name;
    struct moe_buf *out;
    struct moe_err *e;
    size_t atom;        /* where in out the last atom begins */
    int depth;
    struct { size_t at; int extra; bool caseless; } group[MOE_REGEX_MAX_DEPTH + 1];
    char last;          /* the literal just before, for pairs that fold to one character */
};

static int
unsupported(struct state *s, const char *what)
{
    return moe_err_set(s->e, MOE_EUNSUP, "%s: pattern: %s is not supported", s->name, what);
}

static int
bad(struct state *s, const char *what)
{
    return moe_err_set(s->e, MOE_EFORMAT, "%s: pattern: %s", s->name, what);
}

static bool
next_is(const struct state *s, const char *text)
{
    size_t n = strlen(text);

    return (size_t)(s->end - s->p) >= n && memcmp(s->p, text, n) == 0;
}

/* ---- Classes ------------------------------------------------------------------ */

/* \p{NAME} after the p; *no becomes true for \p{^NAME}. */
static int
property(struct state *s, struct moe_buf *out, bool *no)
{
    char name[32];
    size_t n = 0;

    if (s->p == s->end || *s->p != '{')
        return bad(s, "\\p without {");
    s->p++;
    if (s->p < s->end && *s->p == '^') {
        *no = !*no;
        s->p++;
    }
    while (s->p < s->end && *s->p != '}' && n + 1 < sizeof(name)) {
        unsigned char c = (unsigned char)*s->p++;

        if ((c | 0x20) < 'a' || (c | 0x20) > 'z')
            return unsupported(s, "this name of a property");
        name[n++] = (char)c;
    }
    name[n] = '\0';
    if (s->p == s->end || *s->p != '}' || n == 0)
        return bad(s, "\\p{ without a name and }");
    s->p++;
    return moe_regex_class_property(out, name) ? 0 : unsupported(s, "this property");
}

/*
 * The inside of a class for the escape letter at s->p. *no: its complement is
 * meant. *done is false when the letter stands for no class.
 */
static int
class_escape(struct state *s, struct moe_buf *out, bool inside, bool *no, bool *done)
{
    char c = *s->p;

    *no = c >= 'A' && c <= 'Z';
    *done = true;
    switch (c) {
    case 'p':
    case 'P':
        s->p++;
        return property(s, out, no);
    case 'd':
    case 'D':
        moe_regex_class_digit(out);
        break;
    case 's':
    case 'S':
        moe_regex_class_space(out, false);
        break;
    case 'w':
    case 'W':
        moe_regex_class_word(out, inside);
        break;
    default:
        *done = false;
        return 0;
    }
    s->p++;
    return 0;
}

static const char FOLDS[] = "a caseless text that one character can stand for";

/*
 * Without case Oniguruma also matches one character for two, such as ß for ss;
 * PCRE2 does not.
 */
static bool
folds(const struct state *s, uint32_t c)
{
    static const char pairs[] = "ss ff fi fl st";
    char pair[3] = { (char)(s->last | 0x20), (char)((char)c | 0x20), '\0' };
    utf8proc_int32_t out[4];
    int bounds = UTF8PROC_BOUNDCLASS_START;

    if (!s->group[s->depth].caseless)
        return false;
    if (c < 0x80)
        return s->last != '\0' && pair[1] != ' ' && strstr(pairs, pair) != NULL;
    return utf8proc_decompose_char((utf8proc_int32_t)c, out, 4, UTF8PROC_CASEFOLD, &bounds) > 1;
}

/* Code point of n hexadecimal digits at s->p (n = 0: up to a brace). */
static int
hex(struct state *s, int n)
{
    static const char digits[] = "0123456789abcdef";
    uint32_t v = 0;
    int i = 0;

    for (; s->p < s->end && (n == 0 ? i < 8 : i < n); i++, s->p++) {
        const char *at = *s->p == '\0' ? NULL : strchr(digits, *s->p >= 'A' ? *s->p | 0x20 : *s->p);

        if (at == NULL)
            break;
        v = v << 4 | (uint32_t)(at - digits);
    }
    if (i == 0 || (n > 0 && i < n) || v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
        return bad(s, "no code point after \\x or \\u");
    if (n == 2 && v > 0x7f)
        return unsupported(s, "a raw byte");
    if (v >= 0x80 && folds(s, v))
        return unsupported(s, FOLDS);
    moe_buf_fmt(s->out, "\\x{%x}", (unsigned)v);
    return 0;
}

/* An escape that stands for one character; s->p is past the backslash. */
static int
char_escape(struct state *s)
{
    char c = *s->p;
    int rc;

    if (c == 'x' || c == 'u') {
        bool brace = c == 'x' && s->p + 1 < s->end && s->p[1] == '{';

        s->p += brace ? 2 : 1;
        if ((rc = hex(s, brace ? 0 : c == 'x' ? 2 : 4)) != 0 || !brace)
            return rc;
        if (s->p == s->end || *s->p != '}')
            return bad(s, "\\x{ without }");
        s->p++;
        return 0;
    }
    if (c == 'v') {
        moe_buf_str(s->out, "\\x{b}");
    } else if (c != '\0' && strchr("tnrfae", c) != NULL) {
        moe_buf_byte(s->out, '\\');
        moe_buf_byte(s->out, c);
    } else if ((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')) {
        return unsupported(s, "this escape");
    } else {
        if ((unsigned char)c > 0x20 && (unsigned char)c < 0x7f)
            moe_buf_byte(s->out, '\\');
        moe_buf_byte(s->out, c);
    }
    s->p++;
    return 0;
}

/* A class that stands for an escape by itself: [\p{L}...] or [^...]. */
static int
whole_class(struct state *s, bool *done)
{
    struct moe_buf in = MOE_BUF_INIT;
    bool no;
    int rc = class_escape(s, &in, false, &no, done);

    if (rc == 0 && *done) {
        moe_buf_str(s->out, no ? "[^" : "[");
        moe_buf_add(s->out, in.p, in.len);
        moe_buf_byte(s->out, ']');
    }
    s->out->bad |= in.bad;
    moe_buf_fini(&in);
    return rc;
}

/* An escape inside a class. */
static int
member_escape(struct state *s)
{
    struct moe_buf in = MOE_BUF_INIT;
    bool no, done;
    int rc;

    if (s->p == s->end)
        return bad(s, "ends with a backslash");
    if (*s->p == 'S') {
        moe_regex_class_space(s->out, true);
        s->p++;
        return 0;
    }
    if (*s->p == 'b') {
        moe_buf_str(s->out, "\\x{8}");
        s->p++;
        return 0;
    }
    rc = class_escape(s, &in, true, &no, &done);
    if (rc == 0 && done && no)
        rc = unsupported(s, "a complement inside a class");
    else if (rc == 0 && done)
        moe_buf_add(s->out, in.p, in.len);
    else if (rc == 0)
        rc = char_escape(s);
    s->out->bad |= in.bad;
    moe_buf_fini(&in);
    return rc;
}

static int
class(struct state *s)
{
    bool first = true;
    uint32_t u = 0;
    int rc;

    moe_buf_byte(s->out, '[');
    if (s->p < s->end && *s->p == '^') {
        moe_buf_byte(s->out, *s->p++);
    }
    for (; s->p < s->end && (*s->p != ']' || first); first = false) {
        char c = *s->p;

        if (c == '[')
            return unsupported(s, "a class inside a class");
        if (next_is(s, "&&"))
            return unsupported(s, "an intersection of classes");
        if (moe_utf8_get(s->p, (size_t)(s->end - s->p), &u) > 1 && folds(s, u))
            return unsupported(s, FOLDS);
        s->p++;
        if (c == '\\') {
            if ((rc = member_escape(s)) != 0)
                return rc;
        } else if (c == ']') {
            return unsupported(s, "a bare ] in a class");
        } else {
            moe_buf_byte(s->out, c);
        }
    }
    if (s->p == s->end)
        return bad(s, "[ without ]");
    s->p++;
    moe_buf_byte(s->out, ']');
    return 0;
}

/* ---- Groups and quantifiers ----------------------------------------------------- */

static int
open_group(struct state *s, const char *text)
{
    if (s->depth == MOE_REGEX_MAX_DEPTH)
        return moe_err_set(s->e, MOE_ELIMIT, "%s: pattern: groups too deep", s->name);
    s->depth++;
    s->group[s->depth].at = s->out->len;
    s->group[s->depth].extra = 0;
    s->group[s->depth].caseless = s->group[s->depth - 1].caseless;
    s->atom = NO_ATOM;
    moe_buf_str(s->out, text);
    return 0;
}

/* (?i) (?i:...) (?-i) ... : in Oniguruma an option holds to the end of its group. */
static int
options(struct state *s)
{
    bool caseless = s->group[s->depth].caseless, on = true;
    char flags[8];
    size_t n = 0;
    int rc;

    while (s->p < s->end && *s->p != ':' && *s->p != ')') {
        char c = *s->p++;

        if ((c != 'i' && c != 'm' && c != '-') || n + 1 == sizeof(flags))
            return unsupported(s, "this group or option");
        if (c == '-')
            on = false;
        if (c == 'i')
            caseless = on;
        flags[n++] = c == 'm' ? 's' : c;
    }
    flags[n] = '\0';
    if (s->p == s->end)
        return bad(s, "( without )");
    if (*s->p++ == ':') {
        if ((rc = open_group(s, "(?")) != 0)
            return rc;
    } else {
        s->group[s->depth].extra++;
        s->atom = NO_ATOM;
        moe_buf_str(s->out, "(?");
    }
    s->group[s->depth].caseless = caseless;
    moe_buf_fmt(s->out, "%s:", flags);
    return 0;
}

static int
group(struct state *s)
{
    static const char *const kinds[] = { "?:", "?=", "?!", "?<=", "?<!", "?>" };
    const char *close;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (next_is(s, kinds[i])) {
            char text[8] = "(";

            memcpy(text + 1, kinds[i], strlen(kinds[i]) + 1);
            s->p += strlen(kinds[i]);
            return open_group(s, text);
        }
    if (next_is(s, "?<")) {
        close = memchr(s->p, '>', (size_t)(s->end - s->p));
        if (close == NULL)
            return bad(s, "(?< without >");
        s->p = close + 1;
        return open_group(s, "(?:");
    }
    if (next_is(s, "?#")) {
        close = memchr(s->p, ')', (size_t)(s->end - s->p));
        if (close == NULL)
            return bad(s, "(?# without )");
        s->p = close + 1;
        return 0;
    }
    if (next_is(s, "?")) {
        s->p++;
        return options(s);
    }
    if (next_is(s, "*"))
        return unsupported(s, "(*");
    return open_group(s, "(?:");
}

static void
close_extra(struct state *s)
{
    for (; s->group[s->depth].extra > 0; s->group[s->depth].extra--)
        moe_buf_byte(s->out, ')');
}

static int
close_group(struct state *s)
{
    if (s->depth == 0)
        return bad(s, ") without (");
    close_extra(s);
    moe_buf_byte(s->out, ')');
    s->atom = s->group[s->depth--].at;
    return 0;
}

/* Put "(?:" before the last atom. */
static void
wrap(struct state *s)
{
    size_t len = s->out->len - s->atom;

    if (moe_buf_room(s->out, 3) == NULL)
        return;
    memmove(s->out->p + s->atom + 3, s->out->p + s->atom, len + 1);
    memcpy(s->out->p + s->atom, "(?:", 3);
    s->out->len += 3;
}

/* Length of {n}, {n,}, {,m} or {n,m} at s->p, or 0: then { is a character. */
static size_t
interval(const struct state *s, bool *exact, bool *open)
{
    const char *p = s->p + 1, *low = p, *high;

    while (p < s->end && *p >= '0' && *p <= '9')
        p++;
    *exact = p < s->end && *p == '}' && p > low;
    *open = p == low;
    if (*exact)
        return (size_t)(p + 1 - s->p);
    if (p == s->end || *p != ',')
        return 0;
    high = ++p;
    while (p < s->end && *p >= '0' && *p <= '9')
        p++;
    if (p == s->end || *p != '}' || (*open && p == high))
        return 0;
    return (size_t)(p + 1 - s->p);
}

static int
braces(struct state *s)
{
    bool exact, open;
    size_t n = interval(s, &exact, &open);
    bool more;

    if (n == 0) {
        s->atom = s->out->len;
        s->p++;
        moe_buf_str(s->out, "\\{");
        return 0;
    }
    if (s->atom == NO_ATOM)
        return bad(s, "nothing to repeat");
    /* After an interval + repeats it, and {n}? makes it optional. */
    more = s->p + n < s->end && (s->p[n] == '+' || (s->p[n] == '?' && exact));
    if (more)
        wrap(s);
    moe_buf_str(s->out, open ? "{0" : "{");
    moe_buf_add(s->out, s->p + 1, n - 1);
    s->p += n;
    if (more)
        moe_buf_byte(s->out, ')');
    else if (s->p < s->end && *s->p == '?')
        moe_buf_byte(s->out, *s->p++);
    if (!more)
        s->atom = NO_ATOM;
    return 0;
}

static int
quantifier(struct state *s)
{
    if (s->atom == NO_ATOM)
        return bad(s, "nothing to repeat");
    moe_buf_byte(s->out, *s->p++);
    if (s->p < s->end && (*s->p == '?' || *s->p == '+'))
        moe_buf_byte(s->out, *s->p++);
    if (s->p < s->end && (*s->p == '*' || *s->p == '+' || *s->p == '?' || *s->p == '{'))
        return unsupported(s, "a repeated quantifier");
    s->atom = NO_ATOM;
    return 0;
}

static int
escape(struct state *s)
{
    bool done;
    int rc;

    if (s->p == s->end)
        return bad(s, "ends with a backslash");
    s->atom = s->out->len;
    if (*s->p == 'A' || *s->p == 'z' || *s->p == 'Z') {
        moe_buf_byte(s->out, '\\');
        moe_buf_byte(s->out, *s->p++);
        return 0;
    }
    if ((rc = whole_class(s, &done)) != 0 || done)
        return rc;
    return char_escape(s);
}

static int
literal(struct state *s)
{
    uint32_t c = 0;
    size_t n = moe_utf8_get(s->p, (size_t)(s->end - s->p), &c);

    if (n == 0)
        return bad(s, "not UTF-8");
    if (folds(s, c))
        return unsupported(s, FOLDS);
    s->atom = s->out->len;
    s->last = c < 0x80 ? (char)c : '\0';
    moe_buf_add(s->out, s->p, n);
    s->p += n;
    return 0;
}

static int
one(struct state *s)
{
    char c = *s->p;

    if (c == '\0' || strchr("\\[(){*+?|", c) == NULL)
        return literal(s);
    s->last = '\0';
    switch (c) {
    case '\\':
        s->p++;
        return escape(s);
    case '[':
        s->p++;
        s->atom = s->out->len;
        return class(s);
    case '(':
        s->p++;
        return group(s);
    case ')':
        s->p++;
        return close_group(s);
    case '{':
        return braces(s);
    case '*':
    case '+':
    case '?':
        return quantifier(s);
    default:
        s->atom = NO_ATOM;
        moe_buf_byte(s->out, *s->p++);
        return 0;
    }
}

int
moe_regex_syntax(const char *p, size_t n, const char *name, struct moe_buf *out,
    struct moe_err *e)
{
    struct state s = { .p = p, .end = p + n, .name = name, .out = out, .e = e, .atom = NO_ATOM };
    int rc = 0;

    if (n > MOE_REGEX_MAX_SOURCE)
        return moe_err_set(e, MOE_ELIMIT, "%s: pattern: longer than %zu bytes", name,
            MOE_REGEX_MAX_SOURCE);
    while (rc == 0 && s.p < s.end)
        rc = one(&s);
    if (rc != 0)
        return rc;
    if (s.depth > 0)
        return bad(&s, "( without )");
    close_extra(&s);
    return out->bad ? moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name) : 0;
}
