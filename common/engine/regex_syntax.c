/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the rewriting of patterns into PCRE2's syntax. It reads just enough to
 * know atoms, groups, classes and quantifiers apart; what the two engines read
 * differently is rewritten or refused, all else goes through as it is.
 *
 * U+1171E, which became Mc in Unicode 15, stays in \p{Mn} as well.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/engine/regex.h"
#include "common/engine/regex_syntax.h"
#include "common/engine/unicode.h"

#define NO_ATOM SIZE_MAX

struct state {
    const char *p, *end;
    const char *name;
    struct moe_buf *out;
    struct moe_err *e;
    size_t atom;        /* where in out the last atom begins */
    int depth;
    struct { size_t at; int extra; } group[MOE_REGEX_MAX_DEPTH + 1];
};

/* White space as Unicode has it; PCRE2's \s has U+180E as well. */
static const char SPACE[] =
    "\\x{9}-\\x{d} \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"
    "\\x{205f}\\x{3000}";
static const char NOT_SPACE[] =
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}"
    "\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}"
    "\\x{2060}-\\x{2fff}\\x{3001}-\\x{d7ff}\\x{e000}-\\x{10ffff}";

/* What \w has beside letters, marks and numbers: letters in circles and squares. */
static const char WORD_SYMBOLS[] =
    "\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}";

/* Categories that only grew: adding their new members makes them right. */
static const char CATEGORIES[] =
    " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So"
    " Z Zs Zl Zp Cc Cf Co ";

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

/* Append range u to the open range [*from, *to], or write that and open u. */
static void
extend(struct moe_buf *out, uint32_t *from, uint32_t *to, uint32_t u_from, uint32_t u_to)
{
    if (*from <= *to && u_from == *to + 1) {
        *to = u_to;
        return;
    }
    if (*from <= *to)
        moe_buf_fmt(out, "\\x{%x}-\\x{%x}", (unsigned)*from, (unsigned)*to);
    *from = u_from;
    *to = u_to;
}

/* Members of a general category, for the inside of a class. */
static void
category(struct moe_buf *out, const char *name)
{
    uint32_t from = 1, to = 0;

    moe_buf_fmt(out, "\\p{%s}", name);
    for (size_t i = 0; i < moe_unicode_newer_n; i++) {
        const struct moe_unicode_newer *u = &moe_unicode_newer[i];

        if (memcmp(u->category, name, strlen(name)) == 0)
            extend(out, &from, &to, u->from, u->to);
    }
    extend(out, &from, &to, UINT32_MAX, UINT32_MAX);
}

static void
script(struct moe_buf *out, const char *name)
{
    uint32_t from = 1, to = 0;

    moe_buf_fmt(out, "\\p{sc:%s}", name);
    for (size_t i = 0; i < moe_unicode_script_n; i++) {
        const struct moe_unicode_script *u = &moe_unicode_script[i];

        if (strcmp(u->script, name) == 0)
            extend(out, &from, &to, u->from, u->to);
    }
    extend(out, &from, &to, UINT32_MAX, UINT32_MAX);
}

/* \p{NAME} after the p; *no becomes true for \p{^NAME}. */
static int
property(struct state *s, struct moe_buf *out, bool *no)
{
    char name[32], listed[40];
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
    listed[0] = ' ';
    memcpy(listed + 1, name, n);
    memcpy(listed + 1 + n, " ", 2);
    if (strstr(CATEGORIES, listed) != NULL)
        category(out, name);
    else if (n > 2 && name[0] >= 'A' && name[0] <= 'Z' && strcmp(name, "Any") != 0)
        script(out, name);      /* PCRE2 refuses the names it does not know */
    else
        return unsupported(s, "this property");
    return 0;
}

/*
 * The inside of a class for the escape letter at s->p. *no: its complement is
 * meant. *done is false when the letter stands for no class.
 */
static int
class_escape(struct state *s, struct moe_buf *out, bool *no, bool *done)
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
        category(out, "Nd");
        break;
    case 's':
    case 'S':
        moe_buf_str(out, SPACE);
        break;
    case 'w':
    case 'W':
        category(out, "L");
        category(out, "M");
        category(out, "Nd");
        category(out, "Nl");
        category(out, "Pc");
        moe_buf_str(out, WORD_SYMBOLS);
        break;
    default:
        *done = false;
        return 0;
    }
    s->p++;
    return 0;
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
    int rc = class_escape(s, &in, &no, done);

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
        moe_buf_str(s->out, NOT_SPACE);
        s->p++;
        return 0;
    }
    if (*s->p == 'b') {
        moe_buf_str(s->out, "\\x{8}");
        s->p++;
        return 0;
    }
    rc = class_escape(s, &in, &no, &done);
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
    s->atom = NO_ATOM;
    moe_buf_str(s->out, text);
    return 0;
}

/* (?i) (?i:...) (?-i) ... : in Oniguruma an option holds to the end of its group. */
static int
options(struct state *s)
{
    char flags[8];
    size_t n = 0;
    int rc;

    while (s->p < s->end && *s->p != ':' && *s->p != ')') {
        char c = *s->p++;

        if ((c != 'i' && c != 'm' && c != '-') || n + 1 == sizeof(flags))
            return unsupported(s, "this group or option");
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
one(struct state *s)
{
    size_t n;

    switch (*s->p) {
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
    case '|':
        s->atom = NO_ATOM;
        moe_buf_byte(s->out, *s->p++);
        return 0;
    default:
        s->atom = s->out->len;
        if ((n = moe_utf8_len(s->p, (size_t)(s->end - s->p))) == 0)
            return bad(s, "not UTF-8");
        moe_buf_add(s->out, s->p, n);
        s->p += n;
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
