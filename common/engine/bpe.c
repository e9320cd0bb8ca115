/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the merge table and the merging of one word: a linked list of symbols
 * and a heap of the pairs that may merge, O(n log n). Words that were just seen
 * are taken from a small table.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/engine/bpe.h"

#define NONE MOE_VOCAB_NONE

struct symbol { uint32_t id, prev, next; };     /* NONE: no neighbour; id NONE: merged away */

struct waiting { uint64_t key; uint32_t id; };  /* key: rank, then place of the left symbol */

enum { SEEN = 2048, SEEN_MAX = 47 };            /* words remembered, their longest */

struct seen {
    unsigned char len;                          /* 0: empty */
    char word[SEEN_MAX];
    size_t at, n;                               /* their ids in the output list */
};

struct moe_bpe_run {
    const struct moe_bpe *b;
    struct symbol *sym;
    struct waiting *heap;
    size_t n_sym, cap, n_heap;
    struct seen *seen;
    struct moe_tokens *out;
};

/* ---- The merge table ------------------------------------------------------------ */

void
moe_bpe_init(struct moe_bpe *b, const struct moe_vocab *vocab)
{
    *b = (struct moe_bpe){ .vocab = vocab, .unk = NONE };
    for (uint32_t c = 0; c < MOE_BPE_DIRECT; c++) {
        char p[4];

        b->direct[c] = moe_vocab_find(vocab, p, moe_utf8_put(p, c));
    }
    for (unsigned i = 0; i < 256; i++) {
        char p[8];
        int n = snprintf(p, sizeof(p), "<0x%02X>", i);

        b->byte[i] = moe_vocab_find(vocab, p, (size_t)n);
    }
}

void
moe_bpe_fini(struct moe_bpe *b)
{
    free(b->pair);
    *b = (struct moe_bpe){ 0 };
}

/* The place of a pair, or the free one where it belongs; NULL: too many probes. */
static struct moe_bpe_pair *
find_pair(const struct moe_bpe *b, uint64_t key)
{
    uint64_t h = key * 0x9e3779b97f4a7c15u;
    size_t mask = b->n_slots - 1, at = (size_t)(h ^ h >> 32) & mask;

    for (int i = 0; i < MOE_VOCAB_MAX_PROBES; i++) {
        struct moe_bpe_pair *s = &b->pair[at];

        if (s->key == key || s->key == UINT64_MAX)
            return s;
        at = (at + 1) & mask;
    }
    return NULL;
}

static int
grow(struct moe_bpe *b, struct moe_err *e)
{
    struct moe_bpe big = *b;

    big.n_slots = b->n_slots == 0 ? 1024 : 2 * b->n_slots;
    if ((big.pair = malloc(big.n_slots * sizeof(*big.pair))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    memset(big.pair, 0xff, big.n_slots * sizeof(*big.pair));
    for (size_t i = 0; i < b->n_slots; i++) {
        struct moe_bpe_pair *s;

        if (b->pair[i].key == UINT64_MAX)
            continue;
        if ((s = find_pair(&big, b->pair[i].key)) == NULL) {
            free(big.pair);
            return moe_err_set(e, MOE_ELIMIT, "too many merges share a hash");
        }
        *s = b->pair[i];
    }
    free(b->pair);
    b->pair = big.pair;
    b->n_slots = big.n_slots;
    return 0;
}

static int
no_token(struct moe_err *e, const char *p, size_t n)
{
    return moe_err_set(e, MOE_EFORMAT, "\"%.*s\" is no token", (int)(n < 80 ? n : 80), p);
}

/*
 * The id of two texts together. Most merges stand in the order of the tokens they
 * make, so the one after the last is looked at first.
 */
static int
find_joined(const struct moe_bpe *b, const char *left, size_t n_left, const char *right,
    size_t n_right, uint32_t *id, struct moe_err *e)
{
    struct moe_buf joined = MOE_BUF_INIT;
    const char *p;
    size_t n;
    int rc = 0;

    *id = b->next;
    if (moe_vocab_text(b->vocab, *id, &p, &n) && n == n_left + n_right &&
        memcmp(p, left, n_left) == 0 && memcmp(p + n_left, right, n_right) == 0)
        return 0;
    moe_buf_add(&joined, left, n_left);
    moe_buf_add(&joined, right, n_right);
    if (joined.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    else if ((*id = moe_vocab_find(b->vocab, joined.p, joined.len)) == NONE)
        rc = no_token(e, joined.p, joined.len);
    moe_buf_fini(&joined);
    return rc;
}

int
moe_bpe_add(struct moe_bpe *b, const char *left, size_t n_left, const char *right, size_t n_right,
    struct moe_err *e)
{
    uint32_t l = moe_vocab_find(b->vocab, left, n_left), whole;
    uint32_t r = moe_vocab_find(b->vocab, right, n_right);
    struct moe_bpe_pair *s;
    int rc;

    if (b->n_merges == MOE_BPE_MAX_MERGES)
        return moe_err_set(e, MOE_ELIMIT, "more than %zu merges", MOE_BPE_MAX_MERGES);
    if (l == NONE || r == NONE)
        return l == NONE ? no_token(e, left, n_left) : no_token(e, right, n_right);
    if ((rc = find_joined(b, left, n_left, right, n_right, &whole, e)) != 0)
        return rc;
    if (b->n_merges >= b->n_slots / 2 && (rc = grow(b, e)) != 0)
        return rc;
    if ((s = find_pair(b, (uint64_t)l << 32 | r)) == NULL)
        return moe_err_set(e, MOE_ELIMIT, "too many merges share a hash");
    *s = (struct moe_bpe_pair){ (uint64_t)l << 32 | r, (uint32_t)b->n_merges++, whole };
    b->next = whole + 1;
    return 0;
}

static const struct moe_bpe_pair *
lookup(const struct moe_bpe *b, uint32_t l, uint32_t r)
{
    const struct moe_bpe_pair *s;

    if (b->n_slots == 0)
        return NULL;
    s = find_pair(b, (uint64_t)l << 32 | r);
    return s == NULL || s->key == UINT64_MAX ? NULL : s;
}

/* ---- Merging a word --------------------------------------------------------------- */

int
moe_bpe_run_new(const struct moe_bpe *b, struct moe_tokens *list, struct moe_bpe_run **out,
    struct moe_err *e)
{
    if ((*out = calloc(1, sizeof(**out))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    (*out)->b = b;
    (*out)->out = list;
    return 0;
}

void
moe_bpe_run_free(struct moe_bpe_run *run)
{
    if (run == NULL)
        return;
    free(run->sym);
    free(run->heap);
    free(run->seen);
    free(run);
}

/*
 * Room for a word of n bytes. Each of its symbols but one waits at first; a
 * merge takes one pair from the heap and adds at most two.
 */
static int
room(struct moe_bpe_run *run, size_t n, struct moe_err *e)
{
    size_t cap = n < 64 ? 64 : n;
    struct symbol *sym;
    struct waiting *heap;

    if (n > MOE_BPE_MAX_WORD)
        return moe_err_set(e, MOE_ELIMIT, "a word of more than %zu bytes", MOE_BPE_MAX_WORD);
    if (n <= run->cap)
        return 0;
    run->cap = 0;
    if ((sym = realloc(run->sym, cap * sizeof(*sym))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    run->sym = sym;
    if ((heap = realloc(run->heap, 2 * cap * sizeof(*heap))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    run->heap = heap;
    run->cap = cap;
    return 0;
}

static void
add_symbol(struct moe_bpe_run *run, uint32_t id)
{
    uint32_t i = (uint32_t)run->n_sym++;

    run->sym[i] = (struct symbol){ id, i == 0 ? NONE : i - 1, NONE };
    if (i > 0)
        run->sym[i - 1].next = i;
}

/* The bytes of an unknown character as <0xNN> tokens; false if one is missing. */
static bool
add_bytes(struct moe_bpe_run *run, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (run->b->byte[(unsigned char)p[i]] == NONE)
            return false;
    for (size_t i = 0; i < n; i++)
        add_symbol(run, run->b->byte[(unsigned char)p[i]]);
    return true;
}

/*
 * Symbols of a word. Unknown characters wait in `unk` until a known one comes,
 * which fuse_unk needs; byte tokens do not end the wait (as in the reference).
 */
static void
split(struct moe_bpe_run *run, const char *p, size_t n)
{
    const struct moe_bpe *b = run->b;
    bool unk = false;

    run->n_sym = 0;
    for (size_t k; n > 0; p += k, n -= k) {
        uint32_t c = 0, id;

        k = moe_utf8_get(p, n, &c);
        id = c < MOE_BPE_DIRECT ? b->direct[c] : moe_vocab_find(b->vocab, p, k);
        if (id != NONE) {
            if (unk)
                add_symbol(run, b->unk);
            unk = false;
            add_symbol(run, id);
        } else if (!b->byte_fallback || !add_bytes(run, p, k)) {
            if (b->unk == NONE)
                continue;
            if (unk && !b->fuse_unk)
                add_symbol(run, b->unk);
            unk = true;
        }
    }
    if (unk)
        add_symbol(run, b->unk);
}

static void
sift_up(struct waiting *h, size_t i)
{
    struct waiting w = h[i];

    while (i > 0 && h[(i - 1) / 2].key > w.key) {
        h[i] = h[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h[i] = w;
}

/* Let the pair of symbol i and its right neighbour wait, if it is a merge. */
static void
push(struct moe_bpe_run *run, uint32_t i)
{
    const struct symbol *s = &run->sym[i];
    const struct moe_bpe_pair *m = lookup(run->b, s->id, run->sym[s->next].id);

    if (m == NULL)
        return;
    run->heap[run->n_heap] = (struct waiting){ (uint64_t)m->rank << 32 | i, m->id };
    sift_up(run->heap, run->n_heap++);
}

static struct waiting
pop(struct moe_bpe_run *run)
{
    struct waiting *h = run->heap, top = h[0], w = h[--run->n_heap];
    size_t n = run->n_heap, i = 0, k;

    while ((k = 2 * i + 1) < n) {
        if (k + 1 < n && h[k + 1].key < h[k].key)
            k++;
        if (w.key <= h[k].key)
            break;
        h[i] = h[k];
        i = k;
    }
    h[i] = w;
    return top;
}

/*
 * A pair that waits may have lost a side since; it counts while the two symbols
 * there now still make the same token (as in the reference, whatever the rank).
 */
static void
merge(struct moe_bpe_run *run)
{
    run->n_heap = 0;
    for (uint32_t i = 0; i + 1 < run->n_sym; i++)
        push(run, i);
    while (run->n_heap > 0) {
        struct waiting w = pop(run);
        uint32_t at = (uint32_t)w.key;
        struct symbol *s = &run->sym[at], *r;
        const struct moe_bpe_pair *m;

        if (s->id == NONE || s->next == NONE)
            continue;
        r = &run->sym[s->next];
        m = lookup(run->b, s->id, r->id);
        if (m == NULL || m->id != w.id)
            continue;
        s->id = w.id;
        r->id = NONE;
        s->next = r->next;
        if (s->next != NONE) {
            run->sym[s->next].prev = at;
            push(run, at);
        }
        if (s->prev != NONE)
            push(run, s->prev);
    }
}

/* ---- Words --------------------------------------------------------------------- */

static struct seen *
recall(struct moe_bpe_run *run, const char *p, size_t n)
{
    uint64_t h = n;

    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * 0x100000001b3u;
    return &run->seen[(h ^ h >> 33) % SEEN];
}

static int
tokenize(struct moe_bpe_run *run, const char *p, size_t n, struct moe_err *e)
{
    int rc;

    if (run->b->ignore_merges) {
        uint32_t id = moe_vocab_find(run->b->vocab, p, n);

        if (id != NONE)
            return moe_tokens_add(run->out, id, e);
    }
    if ((rc = room(run, n, e)) != 0)
        return rc;
    split(run, p, n);
    merge(run);
    for (size_t i = 0; rc == 0 && i < run->n_sym; i++)
        if (run->sym[i].id != NONE)
            rc = moe_tokens_add(run->out, run->sym[i].id, e);
    return rc;
}

int
moe_bpe_word(struct moe_bpe_run *run, const char *p, size_t n, struct moe_err *e)
{
    struct seen *w;
    size_t was = run->out->n;
    int rc = 0;

    if (n == 0 || n > SEEN_MAX)
        return tokenize(run, p, n, e);
    if (run->seen == NULL && (run->seen = calloc(SEEN, sizeof(*run->seen))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    w = recall(run, p, n);
    if (w->len == n && memcmp(w->word, p, n) == 0) {
        for (size_t i = 0; rc == 0 && i < w->n; i++)
            rc = moe_tokens_add(run->out, run->out->id[w->at + i], e);
        return rc;
    }
    if ((rc = tokenize(run, p, n, e)) == 0) {
        w->len = (unsigned char)n;
        memcpy(w->word, p, n);
        w->at = was;
        w->n = run->out->n - was;
    }
    return rc;
}
