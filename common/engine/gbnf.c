/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the notation of grammars. There is no tree: an item is added to the
 * grammar as it is read, and read again for each time that it is repeated.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/engine/codeset.h"
#include "common/engine/gbnf.h"
#include "common/engine/spell.h"

#define MAX_REPEAT 100000
#define MAX_WORK ((size_t)4 << 20)  /* bytes read again and names compared */

struct name { const char *p; size_t n; uint32_t rule; bool defined; size_t line; };

struct reader {
    const char *p, *end;
    size_t line;
    const char *file;
    struct moe_grammar *g;
    struct name *names;
    size_t n_names;
    int depth;
    size_t work;
    struct moe_err *e;
};

static int
bad(const struct reader *r, int code, const char *what)
{
    return moe_err_set(r->e, code, "%s:%zu: %s", r->file, r->line, what);
}

/* ---- Words ----------------------------------------------------------------------- */

/* Blanks and comments; newlines too if `lines`. */
static void
skip(struct reader *r, bool lines)
{
    while (r->p < r->end) {
        char c = *r->p;

        if (c == '#') {
            while (r->p < r->end && *r->p != '\n')
                r->p++;
            continue;
        }
        if (c != ' ' && c != '\t' && c != '\r' && !(lines && c == '\n'))
            return;
        r->line += c == '\n';
        r->p++;
    }
}

static bool
is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
        || c == '-' || c == '_';
}

static int
find_name(struct reader *r, struct name **out)
{
    const char *from = r->p;
    size_t n;

    while (r->p < r->end && is_name(*r->p))
        r->p++;
    n = (size_t)(r->p - from);
    if (n == 0)
        return bad(r, MOE_EFORMAT, "a name was expected");
    if ((r->work += r->n_names / 4) > MAX_WORK)
        return bad(r, MOE_ELIMIT, "too much to work out");
    for (size_t i = 0; i < r->n_names; i++) {
        if (r->names[i].n == n && memcmp(r->names[i].p, from, n) == 0) {
            *out = &r->names[i];
            return 0;
        }
    }
    if (r->n_names == MOE_GBNF_MAX_NAMES)
        return bad(r, MOE_ELIMIT, "too many names");
    *out = &r->names[r->n_names++];
    **out = (struct name){ from, n, moe_grammar_rule(r->g), false, r->line };
    return 0;
}

static int
hex(struct reader *r, int digits, uint32_t *c)
{
    *c = 0;
    for (int i = 0; i < digits; i++, r->p++) {
        char d = r->p < r->end ? *r->p : '\0';

        if (d >= '0' && d <= '9')
            *c = 16 * *c + (uint32_t)(d - '0');
        else if (d >= 'a' && d <= 'f')
            *c = 16 * *c + (uint32_t)(d - 'a' + 10);
        else if (d >= 'A' && d <= 'F')
            *c = 16 * *c + (uint32_t)(d - 'A' + 10);
        else
            return bad(r, MOE_EFORMAT, "hexadecimal digits were expected");
    }
    return 0;
}

/* One character of a text or a class. */
static int
character(struct reader *r, uint32_t *c)
{
    char room[4], k;
    size_t n = moe_utf8_get(r->p, (size_t)(r->end - r->p), c);
    int rc = 0;

    if (n == 0)
        return bad(r, MOE_EFORMAT, "the text is cut short or no UTF-8");
    if (*c == '\n')
        return bad(r, MOE_EFORMAT, "a newline must be written \\n");
    r->p += n;
    if (*c != '\\')
        return 0;
    k = r->p < r->end ? *r->p++ : '\0';
    switch (k) {
    case 'n': *c = '\n'; return 0;
    case 'r': *c = '\r'; return 0;
    case 't': *c = '\t'; return 0;
    case '\\': case '"': case '[': case ']': case '-': case '^': *c = (uint32_t)k; return 0;
    case 'x': rc = hex(r, 2, c); break;
    case 'u': rc = hex(r, 4, c); break;
    case 'U': rc = hex(r, 8, c); break;
    default: return bad(r, MOE_EFORMAT, "an escape that is none");
    }
    if (rc == 0 && moe_utf8_put(room, *c) == 0)
        rc = bad(r, MOE_EFORMAT, "an escape that is no character");
    return rc;
}

static int
repeat_number(struct reader *r, uint32_t *n)
{
    const char *from = r->p;

    *n = 0;
    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++) {
        *n = 10 * *n + (uint32_t)(*r->p - '0');
        if (*n > MAX_REPEAT)
            return bad(r, MOE_ELIMIT, "repeated too often");
    }
    return r->p == from ? bad(r, MOE_EFORMAT, "a number was expected") : 0;
}

/* What stands behind an item: least and most times, most UINT32_MAX = no end. */
static int
repeats(struct reader *r, uint32_t *least, uint32_t *most)
{
    char c = r->p < r->end ? *r->p : '\0';
    int rc;

    *least = *most = 1;
    if (c != '*' && c != '+' && c != '?' && c != '{')
        return 0;
    r->p++;
    *least = c == '+';
    *most = c == '?' ? 1 : UINT32_MAX;
    if (c != '{')
        return 0;
    if ((rc = repeat_number(r, least)) != 0)
        return rc;
    *most = *least;
    if (r->p < r->end && *r->p == ',') {
        r->p++;
        *most = UINT32_MAX;
        if (r->p < r->end && *r->p != '}' && (rc = repeat_number(r, most)) != 0)
            return rc;
    }
    if (r->p == r->end || *r->p != '}')
        return bad(r, MOE_EFORMAT, "a } was expected");
    r->p++;
    return *most < *least ? bad(r, MOE_EFORMAT, "more times at least than at most") : 0;
}

/* ---- Items ----------------------------------------------------------------------- */

static int alternatives(struct reader *r, uint32_t from, uint32_t to, bool inside);

static int
text(struct reader *r, uint32_t from, uint32_t to)
{
    uint32_t at = from, c;
    char utf8[4];
    int rc;

    r->p++;
    while (r->p < r->end && *r->p != '"') {
        if ((rc = character(r, &c)) != 0)
            return rc;
        at = moe_grammar_text(r->g, at, utf8, moe_utf8_put(utf8, c));
    }
    if (r->p == r->end)
        return bad(r, MOE_EFORMAT, "a \" was expected");
    r->p++;
    moe_grammar_jump(r->g, at, to);
    return 0;
}

static int
class_members(struct reader *r, struct moe_codeset *s)
{
    int rc;

    while (r->p < r->end && *r->p != ']') {
        uint32_t lo, hi;

        if ((rc = character(r, &lo)) != 0)
            return rc;
        hi = lo;
        if (r->end - r->p >= 2 && *r->p == '-' && r->p[1] != ']') {
            r->p++;
            if ((rc = character(r, &hi)) != 0)
                return rc;
        }
        if (hi < lo)
            return bad(r, MOE_EFORMAT, "a range that runs backwards");
        if ((rc = moe_codeset_add(s, lo, hi, r->e)) != 0)
            return rc;
    }
    if (r->p == r->end)
        return bad(r, MOE_EFORMAT, "a ] was expected");
    r->p++;
    return 0;
}

static int
class(struct reader *r, uint32_t from, uint32_t to)
{
    struct moe_codeset s = MOE_CODESET_INIT;
    bool invert = *r->p == '.';
    int rc = 0;

    if (*r->p++ == '[') {
        invert = r->p < r->end && *r->p == '^';
        r->p += invert;
        rc = class_members(r, &s);
    }
    if (rc == 0 && invert)
        rc = moe_codeset_invert(&s, r->e);
    if (rc == 0)
        moe_spell_utf8(r->g, from, &s, to);
    moe_codeset_fini(&s);
    return rc;
}

static int
group(struct reader *r, uint32_t from, uint32_t to)
{
    int rc;

    if (r->depth == MOE_GBNF_MAX_DEPTH)
        return bad(r, MOE_ELIMIT, "brackets inside of too many brackets");
    r->depth++;
    r->p++;
    if ((rc = alternatives(r, from, to, true)) != 0)
        return rc;
    r->depth--;
    if (r->p == r->end || *r->p != ')')
        return bad(r, MOE_EFORMAT, "a ) was expected");
    r->p++;
    return 0;
}

/* One item, once; what is behind it is not read. */
static int
item(struct reader *r, uint32_t from, uint32_t to)
{
    struct name *name;
    int rc;

    if (r->g->failed.code != 0)
        return r->g->failed.code;
    switch (*r->p) {
    case '"': return text(r, from, to);
    case '[': case '.': return class(r, from, to);
    case '(': return group(r, from, to);
    default: break;
    }
    if ((rc = find_name(r, &name)) == 0)
        moe_grammar_call(r->g, from, name->rule, to);
    return rc;
}

/* Read the item that begins at `start` (line `line`) once more. */
static int
again(struct reader *r, struct reader start, uint32_t from, uint32_t to)
{
    int rc;

    r->p = start.p;
    r->line = start.line;
    rc = item(r, from, to);
    r->work += (size_t)(r->p - start.p);
    return rc == 0 && r->work > MAX_WORK ? bad(r, MOE_ELIMIT, "too much to work out") : rc;
}

/* An item with what is behind it, from a state on; *to is the state after it. */
static int
repeated(struct reader *r, uint32_t from, uint32_t *to)
{
    struct reader start = *r, after;
    uint32_t least, most, at = from, first = moe_grammar_state(r->g);
    int rc;

    if ((rc = item(r, from, first)) != 0 || (rc = repeats(r, &least, &most)) != 0)
        return rc;
    *to = first;
    if (least == 1 && most == 1)
        return 0;
    after = *r;
    *to = moe_grammar_state(r->g);
    at = first;
    for (uint32_t i = 1; i < least; i++) {
        uint32_t next = moe_grammar_state(r->g);

        if ((rc = again(r, start, at, next)) != 0)
            return rc;
        at = next;
    }
    if (least == 0)
        moe_grammar_jump(r->g, from, *to);
    if (most > 0)
        moe_grammar_jump(r->g, at, *to);
    if (most == UINT32_MAX) {
        uint32_t loop = moe_grammar_state(r->g);

        moe_grammar_jump(r->g, at, loop);
        rc = again(r, start, loop, at);
    }
    for (uint32_t i = least > 1 ? least : 1; rc == 0 && most != UINT32_MAX && i < most; i++) {
        uint32_t next = moe_grammar_state(r->g);

        if ((rc = again(r, start, at, next)) == 0)
            moe_grammar_jump(r->g, next, *to);
        at = next;
    }
    r->p = after.p;
    r->line = after.line;
    return rc;
}

static int
sequence(struct reader *r, uint32_t from, uint32_t to, bool inside)
{
    int rc;

    skip(r, inside);
    while (r->p < r->end && *r->p != '|' && *r->p != ')' && *r->p != '\n') {
        if ((rc = repeated(r, from, &from)) != 0)
            return rc;
        skip(r, inside);
    }
    moe_grammar_jump(r->g, from, to);
    return 0;
}

static int
alternatives(struct reader *r, uint32_t from, uint32_t to, bool inside)
{
    int rc;

    for (;;) {
        /* A state of its own, so that a loop of one alternative is none of another. */
        uint32_t own = moe_grammar_state(r->g);

        moe_grammar_jump(r->g, from, own);
        if ((rc = sequence(r, own, to, inside)) != 0)
            return rc;
        if (r->p == r->end || *r->p != '|')
            return 0;
        r->p++;
        skip(r, true);
    }
}

/* ---- Rules ----------------------------------------------------------------------- */

static int
rule(struct reader *r)
{
    struct name *name;
    int rc;

    if ((rc = find_name(r, &name)) != 0)
        return rc;
    if (name->defined)
        return bad(r, MOE_EFORMAT, "the rule is there already");
    name->defined = true;
    skip(r, false);
    if (r->end - r->p < 3 || memcmp(r->p, "::=", 3) != 0)
        return bad(r, MOE_EFORMAT, "::= was expected");
    r->p += 3;
    skip(r, true);
    rc = alternatives(r, r->g->failed.code != 0 ? 0 : r->g->rule[name->rule].start,
        r->g->failed.code != 0 ? 0 : r->g->rule[name->rule].end, false);
    if (rc != 0)
        return rc;
    return r->p < r->end && *r->p != '\n' ? bad(r, MOE_EFORMAT, "the end of a line was expected")
        : 0;
}

static int
rules(struct reader *r)
{
    const struct name *root = NULL;
    int rc;

    for (skip(r, true); r->p < r->end; skip(r, true)) {
        if ((rc = rule(r)) != 0)
            return rc;
    }
    for (size_t i = 0; i < r->n_names; i++) {
        const struct name *k = &r->names[i];

        if (!k->defined)
            return moe_err_set(r->e, MOE_EFORMAT, "%s:%zu: rule %.*s is not there", r->file,
                k->line, k->n < 100 ? (int)k->n : 100, k->p);
        if (k->n == 4 && memcmp(k->p, "root", 4) == 0)
            root = k;
    }
    if (root == NULL)
        return moe_err_set(r->e, MOE_EFORMAT, "%s: there is no rule root", r->file);
    if (moe_grammar_finish(r->g, root->rule, r->e) != 0)
        return moe_err_at(r->e, "%s", r->file);
    return 0;
}

int
moe_gbnf_parse(const char *p, size_t n, const char *name, struct moe_grammar **out,
    struct moe_err *e)
{
    struct moe_err own = { 0 };
    struct reader r = { p, p + n, 1, name, NULL, NULL, 0, 0, 0, &own };
    int rc;

    *out = NULL;
    if (n > MOE_GBNF_MAX_BYTES) {
        return moe_err_set(e, MOE_ELIMIT, "%s: a grammar of more than %zu bytes", name,
            MOE_GBNF_MAX_BYTES);
    }
    if ((rc = moe_grammar_new(&r.g, &own)) != 0)
        goto out;
    if ((r.names = calloc(MOE_GBNF_MAX_NAMES, sizeof(*r.names))) == NULL) {
        rc = moe_err_set(&own, MOE_ENOMEM, "%s: out of memory", name);
        goto out;
    }
    rc = rules(&r);
    if (r.g->failed.code != 0) {
        own = r.g->failed;
        rc = moe_err_at(&own, "%s", name);
    }
    if (rc == 0) {
        *out = r.g;
        r.g = NULL;
    }
out:
    if (rc != 0 && e != NULL)
        *e = own;
    moe_grammar_free(r.g);
    free(r.names);
    return rc;
}
