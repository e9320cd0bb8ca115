/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns cutting a template into text, tags and the tokens inside of tags, and
 * all rules of white space: "-" strips, "+" keeps, a block or comment alone on
 * its line takes the line with it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "common/base/buf.h"
#include "common/base/utf8.h"
#include "common/engine/template_lex.h"
#include "common/engine/template_space.h"

struct lexer {
    const char *p, *end;
    const char *name;
    int line;
    bool line_start;            /* the last thing read ended a line */
    struct moe_arena *mem;
    struct moe_ttoken *tok;
    size_t n, cap;
    char open[64];              /* brackets that are open inside of a tag */
    size_t n_open;
    struct moe_err *e;
};

static int
bad(struct lexer *x, const char *what)
{
    return moe_err_set(x->e, MOE_EFORMAT, "%s:%d: %s", x->name, x->line, what);
}

static int
add(struct lexer *x, enum moe_ttype type, const char *p, size_t n)
{
    char *copy;

    if (x->n == x->cap) {
        size_t cap = x->cap == 0 ? 256 : 2 * x->cap;
        struct moe_ttoken *t = realloc(x->tok, cap * sizeof(*t));

        if (t == NULL)
            return moe_err_set(x->e, MOE_ENOMEM, "%s: out of memory", x->name);
        x->tok = t;
        x->cap = cap;
    }
    if ((copy = moe_arena_text(x->mem, p, n)) == NULL)
        return moe_err_set(x->e, MOE_ENOMEM, "%s: out of memory", x->name);
    x->tok[x->n++] = (struct moe_ttoken){ type, x->line, copy, n };
    return 0;
}

/* Move on to p, counting lines. */
static void
advance(struct lexer *x, const char *p)
{
    x->line_start = p > x->p && p[-1] == '\n';
    for (; x->p < p; x->p++)
        x->line += *x->p == '\n';
}

static bool
starts(const char *p, const char *end, const char *text)
{
    size_t n = strlen(text);

    return (size_t)(end - p) >= n && memcmp(p, text, n) == 0;
}

/* ---- Text between tags ------------------------------------------------------------- */

/* The next "{{", "{%" or "{#", or the end. */
static const char *
next_tag(const char *p, const char *end)
{
    for (; p < end && (p = memchr(p, '{', (size_t)(end - p))) != NULL; p++)
        if (p + 1 < end && (p[1] == '{' || p[1] == '%' || p[1] == '#'))
            return p;
    return end;
}

/*
 * Text [p, to) before a tag whose sign is '-', '+' or another: its end without
 * what the sign or lstrip_blocks takes away. block: not a variable.
 */
static const char *
strip_before(const struct lexer *x, const char *p, const char *to, char sign, bool block)
{
    const char *line = to;

    if (sign == '-')
        return moe_template_space_rstrip(p, to);
    if (sign == '+' || !block)
        return to;
    while (line > p && line[-1] != '\n')
        line--;
    if (line == p && !x->line_start)
        return to;
    return moe_template_space_skip(line, to) == to ? line : to;
}

/*
 * The end of a tag at p: "-}" also takes the space after, "+}" keeps the newline
 * that a block or comment else takes. Returns where the text goes on, NULL if
 * there is no end here. close is "%}" or "#}".
 */
static const char *
tag_end(const char *p, const char *end, const char *close)
{
    if (p < end && *p == '-' && starts(p + 1, end, close))
        return moe_template_space_skip(p + 3, end);
    if (p < end && *p == '+' && starts(p + 1, end, close))
        return p + 3;
    if (!starts(p, end, close))
        return NULL;
    return p + 2 < end && p[2] == '\n' ? p + 3 : p + 2;
}

static int
comment(struct lexer *x, const char *p)
{
    for (; p < x->end; p++) {
        const char *after = tag_end(p, x->end, "#}");

        if (after != NULL) {
            advance(x, after);
            return 0;
        }
    }
    return bad(x, "Missing end of comment tag");
}

/* After "{%" and a sign: past "raw" and the end of the tag, or NULL if that is not it. */
static const char *
raw_begin(const char *p, const char *end)
{
    p = moe_template_space_skip(p, end);
    if (!starts(p, end, "raw"))
        return NULL;
    p = moe_template_space_skip(p + 3, end);
    if (starts(p, end, "-%}"))
        return moe_template_space_skip(p + 3, end);
    return starts(p, end, "%}") ? p + 2 : NULL;
}

/* Text up to {% endraw %}. */
static int
raw(struct lexer *x)
{
    for (const char *p = x->p; (p = next_tag(p, x->end)) < x->end; p++) {
        char sign = p + 2 < x->end ? p[2] : '\0';
        const char *q = p + 2 + (sign == '-' || sign == '+'), *text;
        int rc;

        if (p[1] != '%')
            continue;
        q = moe_template_space_skip(q < x->end ? q : x->end, x->end);
        if (!starts(q, x->end, "endraw"))
            continue;
        q = tag_end(moe_template_space_skip(q + 6, x->end), x->end, "%}");
        if (q == NULL)
            continue;
        text = strip_before(x, x->p, p, sign, true);
        if ((rc = add(x, MOE_TT_DATA, x->p, (size_t)(text - x->p))) == 0)
            advance(x, q);
        return rc;
    }
    return bad(x, "Missing end of raw directive");
}

/* ---- Inside of tags ----------------------------------------------------------------- */

static int
op(struct lexer *x)
{
    static const char two[][3] = { "//", "**", "==", "!=", ">=", "<=" };
    static const char one[] = "+-/*%~[](){}><=.:|,;";
    static const char opening[] = "([{", closing[] = ")]}";
    const char *at;
    size_t n = 1;
    int rc;

    for (size_t i = 0; i < sizeof(two) / sizeof(*two); i++)
        if (starts(x->p, x->end, two[i]))
            n = 2;
    if (n == 1 && (*x->p == '\0' || strchr(one, *x->p) == NULL)) {
        char text[48];
        size_t k = moe_utf8_len(x->p, (size_t)(x->end - x->p));

        (void)snprintf(text, sizeof(text), "unexpected char '%.*s'", (int)(k > 0 ? k : 1), x->p);
        return bad(x, text);
    }
    if (n == 1 && (at = strchr(opening, *x->p)) != NULL) {
        if (x->n_open == sizeof(x->open))
            return moe_err_set(x->e, MOE_ELIMIT, "%s:%d: brackets nested too deep", x->name,
                x->line);
        x->open[x->n_open++] = closing[at - opening];
    } else if (n == 1 && strchr(closing, *x->p) != NULL) {
        if (x->n_open == 0 || x->open[--x->n_open] != *x->p)
            return bad(x, "a bracket is closed that is not open");
    }
    if ((rc = add(x, MOE_TT_OP, x->p, n)) == 0)
        advance(x, x->p + n);
    return rc;
}

/* Digits of a base with single underscores between them; returns their end, or p. */
static const char *
digits(const char *p, const char *end, const char *set)
{
    const char *q = p;

    while (q < end && *q != '\0' && strchr(set, *q) != NULL) {
        q++;
        if (q + 1 < end && *q == '_' && q[1] != '\0' && strchr(set, q[1]) != NULL)
            q++;
    }
    return q;
}

static int
number(struct lexer *x)
{
    static const char decimal[] = "0123456789";
    const char *p = x->p, *q = digits(p, x->end, decimal), *r;
    bool dotted = x->n > 0 && x->tok[x->n - 1].type == MOE_TT_OP && *x->tok[x->n - 1].p == '.' &&
        x->p[-1] == '.';
    bool real = false;
    int rc;

    /* A number right after a dot is a whole one: l.0.1 */
    if (!dotted) {
        if (q + 1 < x->end && *q == '.' && digits(q + 1, x->end, decimal) > q + 1) {
            q = digits(q + 1, x->end, decimal);
            real = true;
        }
        if (q < x->end && (*q | 0x20) == 'e') {
            r = q + 1 + (q + 1 < x->end && (q[1] == '+' || q[1] == '-'));
            if (r < x->end && digits(r, x->end, decimal) > r) {
                q = digits(r, x->end, decimal);
                real = true;
            }
        }
    }
    if (!real && *p == '0') {
        char kind = p + 1 < x->end ? (char)(p[1] | 0x20) : '\0';
        const char *set = kind == 'x' ? "0123456789abcdefABCDEF" : kind == 'o' ? "01234567"
            : kind == 'b' ? "01" : NULL;

        r = set == NULL ? p : p + 2 + (p + 2 < x->end && p[2] == '_');
        if (set != NULL && r < x->end && digits(r, x->end, set) > r)
            q = digits(r, x->end, set);
        else
            q = digits(p, x->end, "0");
    }
    if ((rc = add(x, real ? MOE_TT_FLOAT : MOE_TT_INT, p, (size_t)(q - p))) == 0)
        advance(x, q);
    return rc;
}

/* Whether character c may stand in a name (\w of Python). */
static bool
in_name(uint32_t c)
{
    const char *cat;

    if (c < 0x80)
        return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
    cat = utf8proc_category_string((utf8proc_int32_t)c);
    return cat[0] == 'L' || cat[0] == 'N' || cat[0] == 'M';
}

static const char *
name_end(const struct lexer *x, const char *p)
{
    uint32_t c = 0;
    size_t k;

    while ((k = moe_utf8_get(p, (size_t)(x->end - p), &c)) > 0 && in_name(c))
        p += k;
    return p;
}

static int
hex(struct lexer *x, const char **p, const char *end, int n, uint32_t *c)
{
    *c = 0;
    for (int i = 0; i < n; i++, ++*p) {
        char d = *p < end ? **p : '\0';

        if (d >= '0' && d <= '9')
            *c = *c << 4 | (uint32_t)(d - '0');
        else if ((d | 0x20) >= 'a' && (d | 0x20) <= 'f')
            *c = *c << 4 | (uint32_t)((d | 0x20) - 'a' + 10);
        else
            return bad(x, "a cut escape in a string");
    }
    return 0;
}

/* One escape of a string; *p is past the backslash. Unknown ones stay as they are. */
static int
unescape(struct lexer *x, const char **p, const char *end, struct moe_buf *out)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    const char *at = **p == '\0' ? NULL : strchr(from, **p);
    char c = *(*p)++, utf8[4];
    uint32_t u = 0;
    size_t k;
    int rc = 0;

    if (at != NULL) {
        moe_buf_byte(out, to[at - from]);
        return 0;
    }
    if (c == '\n')
        return 0;
    if (c >= '0' && c <= '7') {
        u = (uint32_t)(c - '0');
        for (int i = 0; i < 2 && *p < end && **p >= '0' && **p <= '7'; i++)
            u = u << 3 | (uint32_t)(*(*p)++ - '0');
    } else if (c == 'x' || c == 'u' || c == 'U') {
        rc = hex(x, p, end, c == 'x' ? 2 : c == 'u' ? 4 : 8, &u);
    } else if (c == 'N') {
        return bad(x, "\\N{} in a string is not supported");
    } else {
        moe_buf_byte(out, '\\');
        --*p;       /* read on as text */
        return 0;
    }
    if (rc != 0)
        return rc;
    if ((k = moe_utf8_put(utf8, u)) == 0)
        return bad(x, "no character in an escape of a string");
    moe_buf_add(out, utf8, k);
    return 0;
}

static int
string(struct lexer *x)
{
    char quote = *x->p;
    const char *p = x->p + 1;
    struct moe_buf b = MOE_BUF_INIT;
    int rc = 0;

    while (p < x->end && *p != quote)
        p += *p == '\\' && p + 1 < x->end ? 2 : 1;
    if (p >= x->end)
        return bad(x, "a string is not closed");
    for (const char *q = x->p + 1; rc == 0 && q < p;) {
        const char *slash = memchr(q, '\\', (size_t)(p - q));

        moe_buf_add(&b, q, (size_t)((slash == NULL ? p : slash) - q));
        q = slash == NULL ? p : slash + 1;
        if (slash != NULL)
            rc = unescape(x, &q, p, &b);
    }
    if (rc == 0 && b.bad)
        rc = moe_err_set(x->e, MOE_ENOMEM, "%s: out of memory", x->name);
    if (rc == 0 && (rc = add(x, MOE_TT_STRING, b.p == NULL ? "" : b.p, b.len)) == 0)
        advance(x, p + 1);
    moe_buf_fini(&b);
    return rc;
}

/* Tokens up to the end of the tag. */
static int
inside(struct lexer *x, bool block)
{
    const char *after;
    int rc = 0;

    while (rc == 0) {
        const char *p = moe_template_space_skip(x->p, x->end);

        if (p > x->p)
            advance(x, p);
        if (p == x->end)
            return bad(x, "unexpected end of template inside of a tag");
        after = NULL;
        if (x->n_open == 0 && block)
            after = tag_end(p, x->end, "%}");
        else if (x->n_open == 0)
            after = starts(p, x->end, "-}}") ? moe_template_space_skip(p + 3, x->end)
                : starts(p, x->end, "}}") ? p + 2 : NULL;
        if (after != NULL) {
            rc = add(x, block ? MOE_TT_BLOCK_END : MOE_TT_PRINT_END, p, 0);
            advance(x, after);
            return rc;
        }
        if (*p >= '0' && *p <= '9') {
            rc = number(x);
        } else if ((after = name_end(x, p)) > p) {
            if ((rc = add(x, MOE_TT_NAME, p, (size_t)(after - p))) == 0)
                advance(x, after);
        } else {
            rc = *p == '\'' || *p == '"' ? string(x) : op(x);
        }
    }
    return rc;
}

/* ---- All ------------------------------------------------------------------------ */

static int
tag(struct lexer *x, const char *p)
{
    char kind = p[1], sign = p + 2 < x->end ? p[2] : '\0';
    const char *after = p + 2 + (sign == '-' || sign == '+'), *text, *q;
    int rc;

    if (sign != '-' && sign != '+')
        sign = '\0';
    text = strip_before(x, x->p, p, sign, kind != '{');
    if ((rc = add(x, MOE_TT_DATA, x->p, (size_t)(text - x->p))) != 0)
        return rc;
    advance(x, p);
    if (kind == '#')
        return comment(x, after);
    if (kind == '%' && (q = raw_begin(after, x->end)) != NULL) {
        advance(x, q);
        return raw(x);
    }
    if ((rc = add(x, kind == '%' ? MOE_TT_BLOCK_BEGIN : MOE_TT_PRINT_BEGIN, p, 0)) != 0)
        return rc;
    advance(x, after);
    return inside(x, kind == '%');
}

/* The source with one kind of newline, and without the last one. */
static char *
normal(const char *src, size_t n, struct moe_arena *mem, size_t *len)
{
    char *p = moe_arena_text(mem, src, n);
    size_t at = 0;

    if (p == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\r' && i + 1 < n && p[i + 1] == '\n')
            continue;
        p[at++] = p[i] == '\r' ? '\n' : p[i];
    }
    if (at > 0 && p[at - 1] == '\n')
        at--;
    p[at] = '\0';
    *len = at;
    return p;
}

int
moe_template_lex(const char *src, size_t n, const char *name, struct moe_arena *mem,
    struct moe_ttoken **out, struct moe_err *e)
{
    struct lexer x = { .name = name, .line = 1, .line_start = true, .mem = mem, .e = e };
    size_t len = 0;
    int rc = 0;

    *out = NULL;
    if (!moe_utf8_valid(src, n))
        return moe_err_set(e, MOE_EFORMAT, "%s: not UTF-8", name);
    if ((x.p = normal(src, n, mem, &len)) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    x.end = x.p + len;
    while (rc == 0 && x.p < x.end) {
        const char *p = next_tag(x.p, x.end);

        if (p < x.end) {
            rc = tag(&x, p);
        } else {
            rc = add(&x, MOE_TT_DATA, x.p, (size_t)(p - x.p));
            advance(&x, p);
        }
    }
    if (rc == 0 && (rc = add(&x, MOE_TT_END, "", 0)) == 0 &&
        (*out = moe_arena_get(mem, x.n * sizeof(*x.tok))) == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    if (rc == 0)
        memcpy(*out, x.tok, x.n * sizeof(*x.tok));
    free(x.tok);
    return rc;
}
