/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the automata of strings: the product of patterns, a count of characters
 * and a tree of words, met state by state from the first. Characters that no
 * part tells apart are one class.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/engine/spell.h"
#include "common/engine/stringset.h"

#define NONE UINT32_MAX
#define SLOTS 65536
#define MAX_CUTS 8192
#define MAX_CLASSES 1024
#define MAX_TOLD 64             /* values of told */

struct leaf { uint32_t c, child, sibling; bool word; };     /* a node of the tree of words */

struct class { struct moe_codeset set; uint32_t some; };    /* some: one of them */

/* A state is a run of words: patterns' sets, then the count and the node of the tree. */
struct build {
    struct moe_grammar *g;
    const struct moe_stringset *s;
    const struct moe_pattern *pattern[MOE_STRINGSET_MAX_PATTERNS];
    size_t at[MOE_STRINGSET_MAX_PATTERNS];      /* where a pattern's words stand */
    size_t n_patterns, words;
    struct leaf *tree;
    uint32_t n_tree;
    uint32_t *letter;           /* [n_letters] characters of words, ascending */
    size_t n_letters;
    uint32_t *cut;              /* [MAX_CUTS] where classes may change */
    size_t n_cuts;
    struct class *class;
    size_t n_classes;
    uint64_t *record;           /* [states * words] */
    uint32_t *state, *slot;
    uint32_t *head, *chain;     /* [states] first class that leads there, [classes] the next */
    size_t n, work;
    uint32_t told[MAX_TOLD], leads[MAX_TOLD];
    size_t n_told;
    moe_stringset_fn *fn;
    void *ctx;
};

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "strings: out of memory");
}

static int
spend(struct build *b, size_t work, struct moe_err *e)
{
    if ((b->work += work) > MOE_STRINGSET_MAX_WORK)
        return moe_err_set(e, MOE_ELIMIT, "strings: patterns that take too much to work out");
    return 0;
}

/* ---- Words ----------------------------------------------------------------------- */

static uint32_t
child_of(const struct build *b, uint32_t node, uint32_t c)
{
    uint32_t k = b->tree[node].child;

    while (k != NONE && b->tree[k].c != c)
        k = b->tree[k].sibling;
    return k;
}

static int
plant(struct build *b, struct moe_err *e)
{
    size_t n = 1;

    for (size_t i = 0; i < b->s->n_without; i++)
        n += b->s->without[i].n;
    if ((b->tree = malloc(n * sizeof(*b->tree))) == NULL)
        return no_memory(e);
    b->tree[b->n_tree++] = (struct leaf){ 0, NONE, NONE, false };
    for (size_t i = 0; i < b->s->n_without; i++) {
        const struct moe_stringset_word *w = &b->s->without[i];
        uint32_t node = 0, c, to;

        for (size_t k = 0, len; k < w->n; k += len, node = to) {
            if ((len = moe_utf8_get(w->p + k, w->n - k, &c)) == 0)
                return moe_err_set(e, MOE_EFORMAT, "strings: no UTF-8");
            if ((to = child_of(b, node, c)) != NONE)
                continue;
            to = b->n_tree++;
            b->tree[to] = (struct leaf){ c, NONE, b->tree[node].child, false };
            b->tree[node].child = to;
        }
        b->tree[node].word = true;
    }
    return 0;
}

static int
by_value(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* The characters of the tree, each once. */
static int
find_letters(struct build *b, struct moe_err *e)
{
    size_t n = 0;

    if ((b->letter = malloc(b->n_tree * sizeof(*b->letter))) == NULL)
        return no_memory(e);
    for (uint32_t i = 1; i < b->n_tree; i++)
        b->letter[b->n_letters++] = b->tree[i].c;
    qsort(b->letter, b->n_letters, sizeof(*b->letter), by_value);
    for (size_t i = 0; i < b->n_letters; i++) {
        if (n == 0 || b->letter[n - 1] != b->letter[i])
            b->letter[n++] = b->letter[i];
    }
    b->n_letters = n;
    return 0;
}

/* ---- Classes --------------------------------------------------------------------- */

static int
add_cut(struct build *b, uint32_t at, struct moe_err *e)
{
    if (b->n_cuts == MAX_CUTS)
        return moe_err_set(e, MOE_ELIMIT, "strings: too many sets of characters");
    b->cut[b->n_cuts++] = at;
    return 0;
}

static int
find_cuts(struct build *b, struct moe_err *e)
{
    const struct moe_codeset *sets;
    int rc = 0;

    for (size_t k = 0; k < b->n_patterns; k++) {
        size_t count = moe_pattern_sets(b->pattern[k], &sets);

        for (size_t i = 0; i < count; i++) {
            for (size_t j = 0; rc == 0 && j < sets[i].n; j++) {
                if ((rc = add_cut(b, sets[i].r[j].lo, e)) == 0)
                    rc = add_cut(b, sets[i].r[j].hi + 1, e);
            }
        }
    }
    for (size_t i = 0; rc == 0 && i < b->n_letters; i++) {
        if ((rc = add_cut(b, b->letter[i], e)) == 0)
            rc = add_cut(b, b->letter[i] + 1, e);
    }
    if (rc == 0 && (rc = add_cut(b, 0, e)) == 0 && (rc = add_cut(b, 0xD800, e)) == 0
        && (rc = add_cut(b, 0xE000, e)) == 0)
        rc = add_cut(b, MOE_CODESET_LAST + 1, e);
    qsort(b->cut, b->n_cuts, sizeof(*b->cut), by_value);
    return rc;
}

/* Whether two characters are in the same sets, and neither is a letter of a word. */
static bool
alike(const struct build *b, uint32_t x, uint32_t y, const bool *letter)
{
    const struct moe_codeset *sets;

    if (letter[0] || letter[1])
        return false;
    for (size_t k = 0; k < b->n_patterns; k++) {
        size_t n = moe_pattern_sets(b->pattern[k], &sets);

        for (size_t i = 0; i < n; i++) {
            if (moe_codeset_has(&sets[i], x) != moe_codeset_has(&sets[i], y))
                return false;
        }
    }
    return true;
}

static bool
is_letter(const struct build *b, uint32_t c)
{
    return b->n_letters > 0
        && bsearch(&c, b->letter, b->n_letters, sizeof(*b->letter), by_value) != NULL;
}

static int
find_classes(struct build *b, struct moe_err *e)
{
    const struct moe_codeset *sets;
    size_t all = 1;
    int rc;

    for (size_t k = 0; k < b->n_patterns; k++)
        all += moe_pattern_sets(b->pattern[k], &sets);
    for (size_t i = 0; i + 1 < b->n_cuts; i++) {
        uint32_t lo = b->cut[i], hi = b->cut[i + 1];
        bool letter[2] = { is_letter(b, lo), false };
        size_t k = 0;

        if (lo == hi || lo == 0xD800)
            continue;
        while (k < b->n_classes) {
            letter[1] = is_letter(b, b->class[k].some);
            if (alike(b, lo, b->class[k].some, letter))
                break;
            k++;
        }
        if ((rc = spend(b, (k + 1) * all, e)) != 0)
            return rc;
        if (k == MAX_CLASSES)
            return moe_err_set(e, MOE_ELIMIT, "strings: too many sets of characters");
        if (k == b->n_classes)
            b->class[b->n_classes++] = (struct class){ MOE_CODESET_INIT, lo };
        if ((rc = moe_codeset_add(&b->class[k].set, lo, hi - 1, e)) != 0)
            return rc;
    }
    return 0;
}

/* ---- States ---------------------------------------------------------------------- */

/* The number of a state, a new one if it has none. */
static int
number_of(struct build *b, const uint64_t *r, size_t *out, struct moe_err *e)
{
    uint64_t h = 0;
    size_t at;

    for (size_t i = 0; i < b->words; i++)
        h = (h ^ r[i]) * UINT64_C(0x9E3779B97F4A7C15) ^ h >> 29;
    for (at = (h >> 32) % SLOTS; b->slot[at] != NONE; at = (at + 1) % SLOTS) {
        if (memcmp(b->record + b->slot[at] * b->words, r, b->words * sizeof(*r)) == 0) {
            *out = b->slot[at];
            return 0;
        }
    }
    if (b->n == MOE_STRINGSET_MAX_STATES)
        return moe_err_set(e, MOE_ELIMIT, "strings: more than %d states",
            MOE_STRINGSET_MAX_STATES);
    memcpy(b->record + b->n * b->words, r, b->words * sizeof(*r));
    b->state[b->n] = moe_grammar_state(b->g);
    b->head[b->n] = NONE;
    b->slot[at] = (uint32_t)b->n;
    *out = b->n++;
    return 0;
}

/* The most characters that are counted: behind them only "more" matters. */
static size_t
counted(const struct moe_stringset *s)
{
    size_t n = s->max == SIZE_MAX ? s->min : s->max;

    return n < 1 ? 1 : n;
}

/* From state `from` over a character; false: no string goes on so. */
static bool
next(struct build *b, const uint64_t *from, uint32_t c, uint64_t *to)
{
    size_t count = (size_t)from[b->words - 2];
    uint64_t node = from[b->words - 1];

    if (b->s->max != SIZE_MAX && count == b->s->max)
        return false;
    for (size_t k = 0; k < b->n_patterns; k++) {
        b->work += moe_pattern_step(b->pattern[k], from + b->at[k], c, to + b->at[k]);
        if (k < b->s->n_need && !moe_pattern_alive(b->pattern[k], to + b->at[k]))
            return false;
    }
    to[b->words - 2] = count < counted(b->s) ? count + 1 : count;
    to[b->words - 1] = node == NONE ? NONE : child_of(b, (uint32_t)node, c);
    return true;
}

/* Whether a string may end in a state, and what it is then. */
static bool
ends(const struct build *b, const uint64_t *r, uint32_t *told)
{
    size_t count = (size_t)r[b->words - 2];
    uint64_t node = r[b->words - 1];

    *told = 0;
    if (count < b->s->min || (node != NONE && b->tree[node].word))
        return false;
    for (size_t k = 0; k < b->n_patterns; k++) {
        bool yes = moe_pattern_done(b->pattern[k], r + b->at[k], count == 0);

        if (k < b->s->n_need && !yes)
            return false;
        if (k >= b->s->n_need && yes)
            *told |= 1u << (k - b->s->n_need);
    }
    return true;
}

static int
lead_out(struct build *b, uint32_t from, uint32_t told, struct moe_err *e)
{
    size_t i = 0;

    while (i < b->n_told && b->told[i] != told)
        i++;
    if (i == MAX_TOLD)
        return moe_err_set(e, MOE_ELIMIT, "strings: told apart in more than %d ways", MAX_TOLD);
    if (i == b->n_told) {
        b->told[i] = told;
        b->leads[i] = b->fn(b->ctx, told);
        b->n_told++;
    }
    moe_grammar_bytes(b->g, from, '"', '"', b->leads[i]);
    return 0;
}

/* Edges of state i: classes that lead to the same one are one set. */
static int
spell(struct build *b, size_t i, const size_t *to, struct moe_err *e)
{
    int rc = 0;

    for (size_t k = 0; k < b->n_classes; k++) {
        if (to[k] == SIZE_MAX)
            continue;
        b->chain[k] = b->head[to[k]];
        b->head[to[k]] = (uint32_t)k;
    }
    for (size_t k = 0; rc == 0 && k < b->n_classes; k++) {
        struct moe_codeset set = MOE_CODESET_INIT;
        size_t n = 0;

        if (to[k] == SIZE_MAX || b->head[to[k]] == NONE)
            continue;
        for (uint32_t c = b->head[to[k]]; rc == 0 && c != NONE; c = b->chain[c], n++)
            rc = moe_codeset_join(&set, &b->class[c].set, e);
        b->head[to[k]] = NONE;
        if (n == b->n_classes)
            moe_grammar_call(b->g, b->state[i], b->s->any, b->state[to[k]]);
        else
            moe_spell_json(b->g, b->state[i], &set, b->state[to[k]]);
        b->work += 4 * set.n;
        moe_codeset_fini(&set);
    }
    return rc;
}

static int
build(struct build *b, uint32_t from, struct moe_err *e)
{
    uint64_t *r = calloc(2 * b->words, sizeof(*r));
    size_t *to = malloc((b->n_classes + 1) * sizeof(*to)), at;
    uint32_t told;
    int rc = r == NULL || to == NULL ? no_memory(e) : 0;

    for (size_t k = 0; rc == 0 && k < b->n_patterns; k++)
        moe_pattern_start(b->pattern[k], r + b->at[k]);
    if (rc == 0 && (rc = number_of(b, r, &at, e)) == 0)
        moe_grammar_bytes(b->g, from, '"', '"', b->state[at]);
    for (size_t i = 0; rc == 0 && i < b->n; i++) {
        memcpy(r, b->record + i * b->words, b->words * sizeof(*r));
        if (ends(b, r, &told))
            rc = lead_out(b, b->state[i], told, e);
        for (size_t k = 0; rc == 0 && k < b->n_classes; k++) {
            to[k] = SIZE_MAX;
            if (next(b, r, b->class[k].some, r + b->words))
                rc = number_of(b, r + b->words, &to[k], e);
        }
        if (rc == 0 && (rc = spell(b, i, to, e)) == 0)
            rc = spend(b, b->n_classes * (b->words + 4), e);
        if (rc == 0 && b->g->failed.code != 0)
            break;
    }
    free(r);
    free(to);
    return rc;
}

static int
allocate(struct build *b, struct moe_err *e)
{
    size_t n = MOE_STRINGSET_MAX_STATES;

    b->cut = malloc(MAX_CUTS * sizeof(*b->cut));
    b->class = calloc(MAX_CLASSES, sizeof(*b->class));
    b->chain = malloc(MAX_CLASSES * sizeof(*b->chain));
    b->record = malloc(n * b->words * sizeof(*b->record));
    b->state = malloc(n * sizeof(*b->state));
    b->head = malloc(n * sizeof(*b->head));
    b->slot = malloc(SLOTS * sizeof(*b->slot));
    if (b->cut == NULL || b->class == NULL || b->chain == NULL || b->record == NULL
        || b->state == NULL || b->head == NULL || b->slot == NULL)
        return no_memory(e);
    memset(b->slot, 0xFF, SLOTS * sizeof(*b->slot));
    return 0;
}

int
moe_stringset_add(struct moe_grammar *g, uint32_t from, const struct moe_stringset *s,
    moe_stringset_fn *fn, void *ctx, struct moe_err *e)
{
    struct build b = { .g = g, .s = s, .fn = fn, .ctx = ctx };
    int rc;

    if (s->n_need + s->n_tell > MOE_STRINGSET_MAX_PATTERNS)
        return moe_err_set(e, MOE_ELIMIT, "strings: more than %d patterns at once",
            MOE_STRINGSET_MAX_PATTERNS);
    if (s->min > MOE_STRINGSET_MAX_LENGTH
        || (s->max != SIZE_MAX && s->max > MOE_STRINGSET_MAX_LENGTH))
        return moe_err_set(e, MOE_ELIMIT, "strings: a length of more than %d",
            MOE_STRINGSET_MAX_LENGTH);
    for (size_t k = 0; k < s->n_need + s->n_tell; k++) {
        b.pattern[k] = k < s->n_need ? s->need[k] : s->tell[k - s->n_need];
        b.at[k] = b.words;
        b.words += moe_pattern_words(b.pattern[k]);
    }
    b.n_patterns = s->n_need + s->n_tell;
    b.words += 2;
    if ((rc = allocate(&b, e)) == 0 && (rc = plant(&b, e)) == 0
        && (rc = find_letters(&b, e)) == 0 && (rc = find_cuts(&b, e)) == 0
        && (rc = find_classes(&b, e)) == 0)
        rc = build(&b, from, e);
    for (size_t k = 0; k < b.n_classes; k++)
        moe_codeset_fini(&b.class[k].set);
    free(b.tree);
    free(b.letter);
    free(b.cut);
    free(b.class);
    free(b.chain);
    free(b.record);
    free(b.state);
    free(b.head);
    free(b.slot);
    return rc;
}

int
moe_stringset_has(const struct moe_stringset *s, const char *p, size_t n, bool *yes,
    struct moe_err *e)
{
    size_t count = 0;
    int rc;

    *yes = true;
    for (size_t i = 0, len; i < n && (len = moe_utf8_len(p + i, n - i)) > 0; i += len)
        count++;
    if (count < s->min || count > s->max)
        *yes = false;
    for (size_t k = 0; *yes && k < s->n_need; k++) {
        if ((rc = moe_pattern_test(s->need[k], p, n, yes, e)) != 0)
            return rc;
    }
    for (size_t k = 0; *yes && k < s->n_without; k++)
        *yes = s->without[k].n != n || (n > 0 && memcmp(s->without[k].p, p, n) != 0);
    return 0;
}
