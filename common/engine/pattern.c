/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns regular expressions: reading them into an automaton, and following it. A
 * repeated item is read again for each time, so there is no tree.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/engine/pattern.h"

#define NONE UINT16_MAX
#define MAX_REPEAT 4096
#define MAX_WORK 1000000        /* bytes read again */

/* Two ways at most out of a state, over nothing, but for a state with a set. */
enum kind { FORK, TAKE, AT_BEGIN, AT_END, MATCH };

struct state { uint8_t kind; uint16_t set, to, other; };

struct moe_pattern {
    struct state *state;
    size_t n;
    struct moe_codeset *set;
    size_t n_sets;
    uint16_t start;
    uint64_t *alive;            /* states from which a match can still come */
};

struct reader {
    const char *p, *end;
    struct moe_pattern *t;
    int depth;
    size_t work;
    struct moe_err *e;
};

static int
bad(const struct reader *r, int code, const char *what)
{
    return moe_err_set(r->e, code, "pattern: %s", what);
}

/* ---- The automaton --------------------------------------------------------------- */

static int
add_state(struct reader *r, enum kind kind, uint16_t *out)
{
    struct moe_pattern *t = r->t;

    if (t->n == MOE_PATTERN_MAX_STATES)
        return moe_err_set(r->e, MOE_ELIMIT, "pattern: more than %d states",
            MOE_PATTERN_MAX_STATES);
    t->state[t->n] = (struct state){ (uint8_t)kind, NONE, NONE, NONE };
    *out = (uint16_t)t->n++;
    return 0;
}

/* The set becomes the pattern's; one like it is used again. */
static int
keep_set(struct reader *r, struct moe_codeset *s, uint16_t *out)
{
    struct moe_pattern *t = r->t;

    for (size_t i = 0; i < t->n_sets; i++) {
        if (t->set[i].n == s->n
            && (s->n == 0 || memcmp(t->set[i].r, s->r, s->n * sizeof(*s->r)) == 0)) {
            *out = (uint16_t)i;
            return 0;
        }
    }
    if (t->n_sets == MOE_PATTERN_MAX_SETS)
        return bad(r, MOE_ELIMIT, "too many sets of characters");
    t->set[t->n_sets] = *s;
    *s = (struct moe_codeset)MOE_CODESET_INIT;
    *out = (uint16_t)t->n_sets++;
    return 0;
}

/* From a FORK that leads nowhere yet, or on one way only, to another state. */
static int
lead(struct reader *r, uint16_t from, uint16_t to)
{
    struct state *s = &r->t->state[from];
    uint16_t more;
    int rc;

    if (s->to == NONE) {
        s->to = to;
        return 0;
    }
    if (s->other == NONE) {
        s->other = to;
        return 0;
    }
    if ((rc = add_state(r, FORK, &more)) != 0)
        return rc;
    s = &r->t->state[from];
    r->t->state[more].to = s->other;
    r->t->state[more].other = to;
    s->other = more;
    return 0;
}

/* From FORK `from` over a set to a new FORK. */
static int
take(struct reader *r, uint16_t from, struct moe_codeset *s, uint16_t *to)
{
    uint16_t over, set = NONE;
    int rc;

    if ((rc = keep_set(r, s, &set)) != 0 || (rc = add_state(r, TAKE, &over)) != 0
        || (rc = add_state(r, FORK, to)) != 0)
        return rc;
    r->t->state[over].set = set;
    r->t->state[over].to = *to;
    return lead(r, from, over);
}

/* ---- Characters ------------------------------------------------------------------ */

static int
add_shorthand(struct moe_codeset *s, char c, struct moe_err *e)
{
    struct moe_codeset k = MOE_CODESET_INIT;
    static const struct moe_codeset_range space[] = { { 9, 13 }, { ' ', ' ' }, { 0xA0, 0xA0 },
        { 0x1680, 0x1680 }, { 0x2000, 0x200A }, { 0x2028, 0x2029 }, { 0x202F, 0x202F },
        { 0x205F, 0x205F }, { 0x3000, 0x3000 }, { 0xFEFF, 0xFEFF } };
    static const struct moe_codeset_range word[] = { { '0', '9' }, { 'A', 'Z' }, { '_', '_' },
        { 'a', 'z' } };
    char low = (char)(c | 0x20);
    const struct moe_codeset_range *from = low == 's' ? space : word;
    size_t n = low == 's' ? sizeof(space) / sizeof(*space) : low == 'w' ? 4 : 1;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = moe_codeset_add(&k, from[i].lo, from[i].hi, e);
    if (rc == 0 && low != c)
        rc = moe_codeset_invert(&k, e);
    if (rc == 0)
        rc = moe_codeset_join(s, &k, e);
    moe_codeset_fini(&k);
    return rc;
}

/* Hexadecimal digits: exactly so many, or 1 to 6 up to a }. */
static int
hex(struct reader *r, int digits, uint32_t *c)
{
    bool braces = digits == 0;
    int n = 0;

    *c = 0;
    for (; r->p < r->end && n < (braces ? 6 : digits); r->p++, n++) {
        char d = *r->p;

        if (d >= '0' && d <= '9')
            *c = 16 * *c + (uint32_t)(d - '0');
        else if ((d | 0x20) >= 'a' && (d | 0x20) <= 'f')
            *c = 16 * *c + (uint32_t)((d | 0x20) - 'a' + 10);
        else
            break;
    }
    if (n == 0 || (!braces && n < digits) || (braces && (r->p == r->end || *r->p++ != '}')))
        return bad(r, MOE_EFORMAT, "hexadecimal digits were expected");
    return *c > MOE_CODESET_LAST ? bad(r, MOE_EFORMAT, "an escape that is no character") : 0;
}

/* What is behind \u: four digits, perhaps a second surrogate, or digits in braces. */
static int
unicode(struct reader *r, uint32_t *c)
{
    uint32_t low;
    int rc;

    if (r->p < r->end && *r->p == '{') {
        r->p++;
        return hex(r, 0, c);
    }
    if ((rc = hex(r, 4, c)) != 0)
        return rc;
    if (*c < 0xD800 || *c > 0xDFFF)
        return 0;
    if (*c > 0xDBFF || r->end - r->p < 2 || r->p[0] != '\\' || r->p[1] != 'u')
        return bad(r, MOE_EUNSUP, "half a character");
    r->p += 2;
    if ((rc = hex(r, 4, &low)) != 0)
        return rc;
    if (low < 0xDC00 || low > 0xDFFF)
        return bad(r, MOE_EUNSUP, "half a character");
    *c = 0x10000 + ((*c - 0xD800) << 10) + (low - 0xDC00);
    return 0;
}

/* An escape behind its backslash: one character, or a set that is added (*c NONE). */
static int
escape(struct reader *r, bool inside, struct moe_codeset *s, uint32_t *c)
{
    static const char from[] = "fnrtv", to[] = "\f\n\r\t\v";
    char k = r->p < r->end ? *r->p++ : '\0';
    const char *known = k == '\0' ? NULL : strchr(from, k);

    *c = UINT32_MAX;
    if (k != '\0' && strchr("dDwWsS", k) != NULL)
        return add_shorthand(s, k, r->e);
    if (known != NULL) {
        *c = (uint32_t)to[known - from];
        return 0;
    }
    if (k == '0' && (r->p == r->end || *r->p < '0' || *r->p > '9')) {
        *c = 0;
        return 0;
    }
    if (k == 'b' && inside) {
        *c = 8;
        return 0;
    }
    if (k == 'x')
        return hex(r, 2, c);
    if (k == 'u')
        return unicode(r, c);
    if (k == 'c' && r->p < r->end && (*r->p | 0x20) >= 'a' && (*r->p | 0x20) <= 'z') {
        *c = (uint32_t)*r->p++ & 31;
        return 0;
    }
    if (k >= '1' && k <= '9')
        return bad(r, MOE_EUNSUP, "a reference back to a group");
    if (k == '\0' || (uint8_t)k >= 0x80 || (k >= '0' && k <= '9') || ((k | 0x20) >= 'a'
        && (k | 0x20) <= 'z'))
        return bad(r, k == 'b' || k == 'B' || k == 'p' || k == 'P' || k == 'k' ? MOE_EUNSUP
            : MOE_EFORMAT, "an escape that is not known here");
    *c = (uint32_t)k;
    return 0;
}

/* One member of a class; *c is UINT32_MAX when it was a set. */
static int
member(struct reader *r, struct moe_codeset *s, uint32_t *c)
{
    size_t n;

    if (*r->p == '\\') {
        r->p++;
        return escape(r, true, s, c);
    }
    if ((n = moe_utf8_get(r->p, (size_t)(r->end - r->p), c)) == 0)
        return bad(r, MOE_EFORMAT, "no UTF-8");
    r->p += n;
    return 0;
}

static int
class(struct reader *r, struct moe_codeset *s)
{
    bool invert = r->p < r->end && *r->p == '^';
    int rc;

    r->p += invert;
    while (r->p < r->end && *r->p != ']') {
        uint32_t lo, hi;

        if ((rc = member(r, s, &lo)) != 0)
            return rc;
        hi = lo;
        if (lo != UINT32_MAX && r->end - r->p >= 2 && *r->p == '-' && r->p[1] != ']') {
            r->p++;
            if ((rc = member(r, s, &hi)) != 0)
                return rc;
            if (hi == UINT32_MAX)
                return bad(r, MOE_EFORMAT, "a range up to a set");
        }
        if (hi < lo)
            return bad(r, MOE_EFORMAT, "a range that runs backwards");
        if (lo != UINT32_MAX && (rc = moe_codeset_add(s, lo, hi, r->e)) != 0)
            return rc;
    }
    if (r->p == r->end)
        return bad(r, MOE_EFORMAT, "a ] was expected");
    r->p++;
    return invert ? moe_codeset_invert(s, r->e) : 0;
}

/* A single character, a class, an escape or a dot into s. */
static int
characters(struct reader *r, struct moe_codeset *s)
{
    uint32_t c;
    size_t n;
    int rc;

    switch (*r->p) {
    case '[':
        r->p++;
        return class(r, s);
    case '.':
        r->p++;
        if ((rc = moe_codeset_add(s, '\n', '\n', r->e)) != 0
            || (rc = moe_codeset_add(s, '\r', '\r', r->e)) != 0
            || (rc = moe_codeset_add(s, 0x2028, 0x2029, r->e)) != 0)
            return rc;
        return moe_codeset_invert(s, r->e);
    case '\\':
        r->p++;
        if ((rc = escape(r, false, s, &c)) != 0 || c == UINT32_MAX)
            return rc;
        break;
    case '*': case '+': case '?': case '{': case '}': case ']':
        return bad(r, MOE_EFORMAT, "a character that must be escaped");
    default:
        if ((n = moe_utf8_get(r->p, (size_t)(r->end - r->p), &c)) == 0)
            return bad(r, MOE_EFORMAT, "no UTF-8");
        r->p += n;
    }
    return moe_codeset_add(s, c, c, r->e);
}

/* ---- Items ----------------------------------------------------------------------- */

static int alternatives(struct reader *r, uint16_t from, uint16_t *to);

static int
group(struct reader *r, uint16_t from, uint16_t *to)
{
    int rc;

    if (r->depth == MOE_PATTERN_MAX_DEPTH)
        return bad(r, MOE_ELIMIT, "brackets inside of too many brackets");
    r->p++;
    if (r->p < r->end && *r->p == '?') {
        if (r->end - r->p >= 2 && r->p[1] == ':') {
            r->p += 2;
        } else if (r->end - r->p >= 3 && r->p[1] == '<' && r->p[2] != '=' && r->p[2] != '!') {
            while (r->p < r->end && *r->p != '>')
                r->p++;
            if (r->p == r->end)
                return bad(r, MOE_EFORMAT, "a > was expected");
            r->p++;
        } else {
            return bad(r, MOE_EUNSUP, "a group that looks ahead or back");
        }
    }
    r->depth++;
    if ((rc = alternatives(r, from, to)) != 0)
        return rc;
    r->depth--;
    if (r->p == r->end)
        return bad(r, MOE_EFORMAT, "a ) was expected");
    r->p++;
    return 0;
}

/* One item, once. */
static int
item(struct reader *r, uint16_t from, uint16_t *to)
{
    struct moe_codeset s = MOE_CODESET_INIT;
    uint16_t at;
    int rc;

    if (*r->p == '(')
        return group(r, from, to);
    if (*r->p == '^' || *r->p == '$') {
        if ((rc = add_state(r, *r->p == '^' ? AT_BEGIN : AT_END, &at)) != 0
            || (rc = add_state(r, FORK, to)) != 0)
            return rc;
        r->p++;
        r->t->state[at].to = *to;
        return lead(r, from, at);
    }
    if ((rc = characters(r, &s)) == 0)
        rc = take(r, from, &s, to);
    moe_codeset_fini(&s);
    return rc;
}

static int
number(struct reader *r, uint32_t *n)
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
    if (c == '{') {
        if ((rc = number(r, least)) != 0)
            return rc;
        *most = *least;
        if (r->p < r->end && *r->p == ',') {
            r->p++;
            *most = UINT32_MAX;
            if (r->p < r->end && *r->p != '}' && (rc = number(r, most)) != 0)
                return rc;
        }
        if (r->p == r->end || *r->p++ != '}')
            return bad(r, MOE_EFORMAT, "a } was expected");
        if (*most < *least)
            return bad(r, MOE_EFORMAT, "more times at least than at most");
    }
    if (r->p < r->end && *r->p == '?')      /* lazy: the same texts */
        r->p++;
    return 0;
}

/* The item at `start` once more, from FORK `from`. */
static int
again(struct reader *r, const char *start, uint16_t from, uint16_t *to)
{
    int rc;

    r->p = start;
    rc = item(r, from, to);
    r->work += (size_t)(r->p - start) + 1;
    return rc == 0 && r->work > MAX_WORK ? bad(r, MOE_ELIMIT, "too much to work out") : rc;
}

static int
repeated(struct reader *r, uint16_t from, uint16_t *to)
{
    const char *start = r->p, *after;
    uint16_t own, at, out, next;
    uint32_t least, most;
    int rc;

    if ((rc = add_state(r, FORK, &own)) != 0 || (rc = item(r, own, &at)) != 0
        || (rc = repeats(r, &least, &most)) != 0 || (rc = add_state(r, FORK, &out)) != 0)
        return rc;
    *to = out;
    after = r->p;
    if (most > 0 && (rc = lead(r, from, own)) != 0)
        return rc;
    if (least == 0 && (rc = lead(r, from, out)) != 0)
        return rc;
    for (uint32_t i = 1; i < least; i++, at = next) {
        if ((rc = again(r, start, at, &next)) != 0)
            return rc;
    }
    if ((rc = lead(r, at, out)) != 0)
        return rc;
    if (most == UINT32_MAX) {
        if ((rc = again(r, start, at, &next)) != 0 || (rc = lead(r, next, at)) != 0)
            return rc;
    }
    for (uint32_t i = least > 1 ? least : 1; most != UINT32_MAX && i < most; i++, at = next) {
        if ((rc = again(r, start, at, &next)) != 0 || (rc = lead(r, next, out)) != 0)
            return rc;
    }
    r->p = after;
    return 0;
}

static int
alternatives(struct reader *r, uint16_t from, uint16_t *to)
{
    int rc;

    if ((rc = add_state(r, FORK, to)) != 0)
        return rc;
    for (;;) {
        uint16_t at;

        if ((rc = add_state(r, FORK, &at)) != 0 || (rc = lead(r, from, at)) != 0)
            return rc;
        while (r->p < r->end && *r->p != '|' && *r->p != ')') {
            if ((rc = repeated(r, at, &at)) != 0)
                return rc;
        }
        if ((rc = lead(r, at, *to)) != 0)
            return rc;
        if (r->p == r->end || *r->p == ')')
            return 0;
        r->p++;
    }
}

static int
whole(struct reader *r)
{
    struct moe_codeset any = MOE_CODESET_INIT;
    uint16_t first, begin, end, match, next;
    int rc;

    /* first: the pattern begins here, or after another character. */
    if ((rc = add_state(r, FORK, &first)) != 0 || (rc = add_state(r, FORK, &begin)) != 0
        || (rc = lead(r, first, begin)) != 0
        || (rc = moe_codeset_add(&any, 0, MOE_CODESET_LAST, r->e)) != 0
        || (rc = take(r, first, &any, &next)) != 0 || (rc = lead(r, next, first)) != 0
        || (rc = alternatives(r, begin, &end)) != 0)
        goto out;
    if (r->p < r->end) {
        rc = bad(r, MOE_EFORMAT, "a ) too many");
        goto out;
    }
    if ((rc = add_state(r, MATCH, &match)) == 0)
        rc = lead(r, end, match);
    r->t->start = first;
out:
    moe_codeset_fini(&any);
    return rc;
}

static bool
has(const uint64_t *at, uint16_t s)
{
    return at[s / 64] >> (s % 64) & 1;
}

static void
put(uint64_t *at, size_t s)
{
    at[s / 64] |= UINT64_C(1) << (s % 64);
}

/* Behind the first character ^ leads nowhere. */
static int
find_alive(struct moe_pattern *t, struct moe_err *e)
{
    bool more = true;

    if ((t->alive = calloc(moe_pattern_words(t), sizeof(*t->alive))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "pattern: out of memory");
    put(t->alive, t->n - 1);
    for (int pass = 0; more && pass < 64; pass++) {
        more = false;
        for (size_t k = t->n; k-- > 0;) {
            const struct state *s = &t->state[k];

            if (has(t->alive, (uint16_t)k) || s->kind == AT_BEGIN
                || !((s->to != NONE && has(t->alive, s->to))
                || (s->other != NONE && has(t->alive, s->other))))
                continue;
            put(t->alive, k);
            more = true;
        }
    }
    /* Not at an end after so many passes: then all of them count as alive. */
    for (size_t k = 0; more && k < t->n; k++)
        put(t->alive, k);
    return 0;
}

int
moe_pattern_compile(const char *p, size_t n, struct moe_pattern **out, struct moe_err *e)
{
    struct moe_pattern *t = calloc(1, sizeof(*t));
    struct reader r = { p, p + n, t, 0, 0, e };
    int rc;

    *out = NULL;
    if (n > MOE_PATTERN_MAX_BYTES) {
        free(t);
        return moe_err_set(e, MOE_ELIMIT, "pattern: more than %d bytes", MOE_PATTERN_MAX_BYTES);
    }
    if (t == NULL)
        return moe_err_set(e, MOE_ENOMEM, "pattern: out of memory");
    t->state = malloc(MOE_PATTERN_MAX_STATES * sizeof(*t->state));
    t->set = malloc(MOE_PATTERN_MAX_SETS * sizeof(*t->set));
    if (t->state == NULL || t->set == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "pattern: out of memory");
    else
        rc = whole(&r);
    if (rc == 0)
        rc = find_alive(t, e);
    if (rc == 0) {
        *out = t;
        t = NULL;
    }
    moe_pattern_free(t);
    return rc;
}

void
moe_pattern_free(struct moe_pattern *t)
{
    if (t == NULL)
        return;
    for (size_t i = 0; i < t->n_sets; i++)
        moe_codeset_fini(&t->set[i]);
    free(t->set);
    free(t->state);
    free(t->alive);
    free(t);
}

/* ---- Following ------------------------------------------------------------------- */

size_t
moe_pattern_sets(const struct moe_pattern *t, const struct moe_codeset **sets)
{
    *sets = t->set;
    return t->n_sets;
}

size_t
moe_pattern_words(const struct moe_pattern *t)
{
    return (t->n + 63) / 64;
}

/* Where a way stands for a while: the borders that hold at this place. */
struct borders { bool begin, end; };

/* Add a state and all that it leads to over nothing. Returns how many were looked at. */
static size_t
reach(const struct moe_pattern *t, uint64_t *at, uint16_t first, struct borders b)
{
    uint16_t stack[MOE_PATTERN_MAX_STATES + 2];     /* a state that is met adds one at most */
    size_t n = 0, looked = 0;

    stack[n++] = first;
    while (n > 0) {
        uint16_t k = stack[--n];
        const struct state *s = &t->state[k];
        bool on;

        if (has(at, k))
            continue;
        put(at, k);
        looked++;
        on = s->kind == FORK || (s->kind == AT_BEGIN && b.begin) || (s->kind == AT_END && b.end);
        if (on && s->to != NONE && !has(at, s->to))
            stack[n++] = s->to;
        if (on && s->other != NONE && !has(at, s->other))
            stack[n++] = s->other;
    }
    return looked;
}

void
moe_pattern_start(const struct moe_pattern *t, uint64_t *at)
{
    memset(at, 0, moe_pattern_words(t) * sizeof(*at));
    (void)reach(t, at, t->start, (struct borders){ true, false });
}

size_t
moe_pattern_step(const struct moe_pattern *t, const uint64_t *from, uint32_t c, uint64_t *to)
{
    size_t looked = 1;

    memset(to, 0, moe_pattern_words(t) * sizeof(*to));
    for (size_t k = 0; k < t->n; k++) {
        const struct state *s = &t->state[k];

        if (from[k / 64] == 0) {
            k |= 63;
            continue;
        }
        if (!has(from, (uint16_t)k))
            continue;
        looked++;
        /* A match stays one, whatever follows. */
        if (s->kind == MATCH)
            put(to, k);
        if (s->kind == TAKE && moe_codeset_has(&t->set[s->set], c))
            looked += reach(t, to, s->to, (struct borders){ false, false });
    }
    return looked;
}

bool
moe_pattern_done(const struct moe_pattern *t, const uint64_t *at, bool first)
{
    uint64_t end[(MOE_PATTERN_MAX_STATES + 63) / 64] = { 0 };
    uint16_t match = (uint16_t)(t->n - 1);

    if (has(at, match))
        return true;
    for (size_t k = 0; k < t->n; k++) {
        if (has(at, (uint16_t)k) && t->state[k].kind == AT_END)
            (void)reach(t, end, (uint16_t)k, (struct borders){ first, true });
    }
    return has(end, match);
}

bool
moe_pattern_alive(const struct moe_pattern *t, const uint64_t *at)
{
    for (size_t i = 0; i < moe_pattern_words(t); i++) {
        if ((at[i] & t->alive[i]) != 0)
            return true;
    }
    return false;
}

int
moe_pattern_test(const struct moe_pattern *t, const char *p, size_t n, bool *yes,
    struct moe_err *e)
{
    size_t words = moe_pattern_words(t);
    uint64_t *at = malloc(2 * words * sizeof(*at));

    if (at == NULL)
        return moe_err_set(e, MOE_ENOMEM, "pattern: out of memory");
    moe_pattern_start(t, at);
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t c;

        if ((len = moe_utf8_get(p + i, n - i, &c)) == 0)
            break;
        (void)moe_pattern_step(t, at, c, at + words);
        memcpy(at, at + words, words * sizeof(*at));
    }
    *yes = moe_pattern_done(t, at, n == 0);
    free(at);
    return 0;
}
