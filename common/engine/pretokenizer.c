/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the cutting of text into words. Every kind becomes one form of step:
 * perhaps a change of the text, then perhaps cuts at a pattern, each piece going
 * to the next step at once, so that no list of pieces is kept.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/engine/bytelevel.h"
#include "common/engine/pretokenizer.h"
#include "common/engine/regex.h"

enum behavior { ISOLATED, REMOVED, CONTIGUOUS, WITH_PREVIOUS, WITH_NEXT };

enum prepend { NEVER, FIRST, ALWAYS };

struct step {
    struct moe_regex *cut;      /* NULL: no cuts */
    enum behavior behavior;
    bool invert;                /* what does not match is the match */
    enum prepend prepend;       /* put `mark` before a text that does not begin with it */
    bool metaspace;             /* spaces become `mark` */
    bool bytes;                 /* the pieces become byte-level characters */
    struct moe_buf mark;
};

struct moe_pretokenizer {
    struct step step[MOE_PRETOKENIZER_MAX_STEPS];
    size_t n;
};

/* ---- Parsing ------------------------------------------------------------------ */

static const char GPT2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* An index into NULL-ended words; the value of key must be one of them. */
static int
choice(struct moe_json_at at, const char *key, const char *fallback, const char *const *words,
    int *out, struct moe_err *e)
{
    const char *v;
    int rc = moe_json_str(at, key, fallback == NULL, fallback, &v, e);

    *out = 0;
    if (rc != 0)
        return rc;
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(v, words[i]) == 0) {
            *out = i;
            return 0;
        }
    return moe_err_set(e, MOE_EUNSUP, "%s: %s %s is not supported", at.name, key, v);
}

static int
parse_split(struct step *s, struct moe_json_at at, struct moe_err *e)
{
    static const char *const words[] = { "Isolated", "Removed", "Contiguous",
        "MergedWithPrevious", "MergedWithNext", NULL };
    int which, rc;

    if ((rc = choice(at, "behavior", NULL, words, &which, e)) != 0 ||
        (rc = moe_json_bool(at, "invert", false, false, &s->invert, e)) != 0)
        return rc;
    s->behavior = (enum behavior)which;
    return moe_regex_pattern(json_object_get(at.o, "pattern"), at.name, &s->cut, e);
}

static int
parse_digits(struct step *s, struct moe_json_at at, struct moe_err *e)
{
    bool each;
    int rc = moe_json_bool(at, "individual_digits", false, false, &each, e);

    if (rc != 0)
        return rc;
    s->behavior = each ? ISOLATED : CONTIGUOUS;
    return moe_regex_compile("\\p{N}", strlen("\\p{N}"), at.name, &s->cut, e);
}

static int
parse_bytelevel(struct step *s, struct moe_json_at at, struct moe_err *e)
{
    bool prefix, cut;
    int rc;

    if ((rc = moe_json_bool(at, "add_prefix_space", false, true, &prefix, e)) != 0 ||
        (rc = moe_json_bool(at, "use_regex", false, true, &cut, e)) != 0)
        return rc;
    s->bytes = true;
    s->prepend = prefix ? ALWAYS : NEVER;
    moe_buf_byte(&s->mark, ' ');
    return cut ? moe_regex_compile(GPT2, strlen(GPT2), at.name, &s->cut, e) : 0;
}

static int
parse_metaspace(struct step *s, struct moe_json_at at, struct moe_err *e)
{
    static const char *const words[] = { "never", "first", "always", NULL };
    const char *mark;
    bool prefix, split;
    int which, rc;

    if ((rc = moe_json_str(at, "replacement", false, "\xe2\x96\x81", &mark, e)) != 0 ||
        (rc = moe_json_bool(at, "add_prefix_space", false, true, &prefix, e)) != 0 ||
        (rc = moe_json_bool(at, "split", false, true, &split, e)) != 0 ||
        (rc = choice(at, "prepend_scheme", prefix ? "always" : "never", words, &which, e)) != 0)
        return rc;
    s->metaspace = true;
    s->prepend = (enum prepend)which;
    s->behavior = WITH_NEXT;
    moe_buf_str(&s->mark, mark);
    return split ? moe_regex_literal(mark, strlen(mark), &s->cut, e) : 0;
}

static const struct {
    const char *type;
    int (*parse)(struct step *s, struct moe_json_at at, struct moe_err *e);
} KINDS[] = {
    { "Split", parse_split },
    { "Digits", parse_digits },
    { "ByteLevel", parse_bytelevel },
    { "Metaspace", parse_metaspace },
};

static int
parse(struct moe_pretokenizer *pt, const json_t *o, const char *name, int depth,
    struct moe_err *e)
{
    struct moe_json_at at = { o, name };
    const json_t *list;
    const char *type;
    int rc = moe_json_str(at, "type", true, NULL, &type, e);

    if (rc != 0)
        return rc;
    if (pt->n == MOE_PRETOKENIZER_MAX_STEPS || depth > MOE_PRETOKENIZER_MAX_STEPS)
        return moe_err_set(e, MOE_ELIMIT, "%s: more than %d steps", name,
            MOE_PRETOKENIZER_MAX_STEPS);
    if (strcmp(type, "Sequence") == 0) {
        rc = moe_json_arr(at, "pretokenizers", true, &list, e);
        for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
            rc = parse(pt, json_array_get(list, i), name, depth + 1, e);
        return rc;
    }
    if (pt->n > 0 && pt->step[pt->n - 1].bytes)
        return moe_err_set(e, MOE_EUNSUP, "%s: %s after ByteLevel is not supported", name, type);
    for (size_t i = 0; i < sizeof(KINDS) / sizeof(*KINDS); i++)
        if (strcmp(type, KINDS[i].type) == 0) {
            struct step *s = &pt->step[pt->n++];

            rc = KINDS[i].parse(s, at, e);
            return rc == 0 && s->mark.bad ? moe_err_set(e, MOE_ENOMEM, "out of memory") : rc;
        }
    return moe_err_set(e, MOE_EUNSUP, "%s: type %s is not supported", name, type);
}

int
moe_pretokenizer_parse(const json_t *o, const char *name, struct moe_pretokenizer **out,
    struct moe_err *e)
{
    struct moe_pretokenizer *pt = calloc(1, sizeof(*pt));
    int rc = 0;

    *out = NULL;
    if (pt == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    if (o != NULL && !json_is_null(o))
        rc = parse(pt, o, name, 0, e);
    if (rc == 0)
        *out = pt;
    else
        moe_pretokenizer_free(pt);
    return rc;
}

void
moe_pretokenizer_free(struct moe_pretokenizer *pt)
{
    if (pt == NULL)
        return;
    for (size_t i = 0; i < pt->n; i++) {
        moe_regex_free(pt->step[i].cut);
        moe_buf_fini(&pt->step[i].mark);
    }
    free(pt);
}

/* ---- Running ------------------------------------------------------------------ */

struct work {                       /* of one step */
    struct moe_regex_run *search;
    struct moe_buf text, word;
};

struct moe_pretokenizer_run {
    const struct moe_pretokenizer *pt;
    struct work work[MOE_PRETOKENIZER_MAX_STEPS];
    const char *base;               /* the text that was handed in */
    moe_pretokenizer_fn *fn;
    void *ctx;
    struct moe_err *e;
};

int
moe_pretokenizer_run_new(const struct moe_pretokenizer *pt, struct moe_pretokenizer_run **out,
    struct moe_err *e)
{
    struct moe_pretokenizer_run *run = calloc(1, sizeof(*run));
    int rc = 0;

    *out = NULL;
    if (run == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    run->pt = pt;
    for (size_t i = 0; rc == 0 && i < pt->n; i++)
        if (pt->step[i].cut != NULL)
            rc = moe_regex_run_new(pt->step[i].cut, &run->work[i].search, e);
    if (rc == 0)
        *out = run;
    else
        moe_pretokenizer_run_free(run);
    return rc;
}

void
moe_pretokenizer_run_free(struct moe_pretokenizer_run *run)
{
    if (run == NULL)
        return;
    for (size_t i = 0; i < MOE_PRETOKENIZER_MAX_STEPS; i++) {
        moe_regex_run_free(run->work[i].search);
        moe_buf_fini(&run->work[i].text);
        moe_buf_fini(&run->work[i].word);
    }
    free(run);
}

static int walk(struct moe_pretokenizer_run *run, size_t i, const char *p, size_t n, bool first);

/* A finished piece of step i goes on to the next. */
static int
piece(struct moe_pretokenizer_run *run, size_t i, const char *p, size_t n, bool first)
{
    struct moe_buf *b = &run->work[i].word;

    if (n == 0)
        return 0;
    if (!run->pt->step[i].bytes)
        return walk(run, i + 1, p, n, first);
    moe_buf_clear(b);
    moe_bytelevel_map(p, n, b);
    if (b->bad)
        return moe_err_set(run->e, MOE_ENOMEM, "out of memory");
    return walk(run, i + 1, b->p, b->len, first);
}

/* The text of step i as its marks want it. */
static int
change(struct moe_pretokenizer_run *run, size_t i, const char **p, size_t *n, bool first)
{
    const struct step *s = &run->pt->step[i];
    struct moe_buf *b = &run->work[i].text;
    bool has;

    moe_buf_clear(b);
    has = *n >= s->mark.len && memcmp(*p, s->mark.p, s->mark.len) == 0;
    if (s->metaspace && **p == ' ')
        has = true;
    if (!has && (s->prepend == ALWAYS || (s->prepend == FIRST && first)))
        moe_buf_add(b, s->mark.p, s->mark.len);
    if (!s->metaspace) {
        moe_buf_add(b, *p, *n);
    } else {
        const char *at = *p, *end = *p + *n, *space;

        while ((space = memchr(at, ' ', (size_t)(end - at))) != NULL) {
            moe_buf_add(b, at, (size_t)(space - at));
            moe_buf_add(b, s->mark.p, s->mark.len);
            at = space + 1;
        }
        moe_buf_add(b, at, (size_t)(end - at));
    }
    if (b->bad)
        return moe_err_set(run->e, MOE_ENOMEM, "out of memory");
    *p = b->p;
    *n = b->len;
    return 0;
}

struct cuts {           /* the pieces of one text, one of them not yet sent on */
    struct moe_pretokenizer_run *run;
    size_t i;
    const char *p;
    bool first;
    size_t from, to;    /* the piece that waits */
    bool waits, match, merged;
};

static int
flush(struct cuts *c)
{
    if (!c->waits)
        return 0;
    c->waits = false;
    return piece(c->run, c->i, c->p + c->from, c->to - c->from, c->first && c->from == 0);
}

/* The next part of the text, which matches or lies between matches. */
static int
part(struct cuts *c, size_t from, size_t to, bool match)
{
    const struct step *s = &c->run->pt->step[c->i];
    bool join = false;
    int rc;

    match = match != s->invert;
    switch (s->behavior) {
    case ISOLATED:
        break;
    case REMOVED:
        if (match)
            return 0;
        break;
    case CONTIGUOUS:
        join = c->waits && c->match == match;
        break;
    case WITH_PREVIOUS:
        join = c->waits && match && !c->match;
        break;
    case WITH_NEXT:
        join = c->waits && !match && c->match;
        break;
    }
    if (join) {
        c->to = to;
    } else {
        if ((rc = flush(c)) != 0)
            return rc;
        c->from = from;
        c->to = to;
        c->waits = true;
    }
    c->match = match;
    return 0;
}

static int
cut(struct moe_pretokenizer_run *run, size_t i, const char *p, size_t n, bool first)
{
    struct cuts c = { .run = run, .i = i, .p = p, .first = first };
    struct moe_regex_run *search = run->work[i].search;
    size_t from, to, at = 0;
    int rc, found;

    moe_regex_start(search, p, n);
    while ((found = moe_regex_next(search, &from, &to, run->e)) == 1) {
        if (from > at && (rc = part(&c, at, from, false)) != 0)
            return rc;
        if ((rc = part(&c, from, to, true)) != 0)
            return rc;
        at = to;
    }
    if (found < 0)
        return found;
    if (n > at && (rc = part(&c, at, n, false)) != 0)
        return rc;
    return flush(&c);
}

static int
walk(struct moe_pretokenizer_run *run, size_t i, const char *p, size_t n, bool first)
{
    const struct step *s = &run->pt->step[i];
    int rc;

    if (n == 0)
        return 0;
    if (i == run->pt->n)
        return run->fn(run->ctx, p, n, run->e);
    if (s->metaspace || s->prepend != NEVER) {
        if ((rc = change(run, i, &p, &n, first)) != 0)
            return rc;
    }
    return s->cut == NULL ? piece(run, i, p, n, first) : cut(run, i, p, n, first);
}

int
moe_pretokenizer_split(struct moe_pretokenizer_run *run, const char *p, size_t n, bool first,
    moe_pretokenizer_fn *fn, void *ctx, struct moe_err *e)
{
    run->fn = fn;
    run->ctx = ctx;
    run->e = e;
    return walk(run, 0, p, n, first);
}
