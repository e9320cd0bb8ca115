/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following a grammar with tokens: masks against trying every token, orders and
 * shared bytes of a vocabulary, tables that overflow, the choice of a request.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/chooser.h"
#include "common/engine/gbnf.h"
#include "tests/golden.h"
#include "tests/tap.h"

#define IDS 2100        /* some more than the tokenizer has */
#define END 2047

static struct moe_tokenizer *t;
static struct moe_lexicon *l;

static struct moe_matcher *
matcher(const char *text, struct moe_grammar **g)
{
    struct moe_matcher *m = NULL;
    struct moe_err e = { 0 };

    *g = NULL;
    if (moe_gbnf_parse(text, strlen(text), "g", g, &e) != 0
        || moe_matcher_new(*g, l, &m, &e) != 0)
        tap_ok(false, "%s: %s", text, e.text);
    return m;
}

static void
lexicon(void)
{
    size_t n, words = 0;
    bool ordered = true, common = true, whole = true;

    for (size_t i = 0; i < l->n; i++) {
        const struct moe_lexicon_word *w = &l->word[i], *v = &l->word[i > 0 ? i - 1 : 0];
        const char *p = l->text.p + w->at, *q = l->text.p + v->at;
        uint32_t k = 0, least = w->len < v->len ? w->len : v->len;
        struct moe_buf b = MOE_BUF_INIT;

        while (i > 0 && k < least && p[k] == q[k])
            k++;
        common = common && w->common == k;
        ordered = ordered && (i == 0 || k == v->len || (k < least
            && (unsigned char)q[k] < (unsigned char)p[k]));
        whole = whole && moe_tokenizer_bytes(t, w->id, &b, NULL) == 0 && b.len == w->len
            && memcmp(b.p, p, b.len) == 0 && moe_lexicon_bytes(l, w->id, &n) == p && n == b.len;
        moe_buf_fini(&b);
    }
    for (uint32_t id = 0; id < IDS; id++)
        words += moe_lexicon_bytes(l, id, &n) != NULL;
    tap_ok(ordered, "in order");
    tap_ok(common, "with what they share");
    tap_ok(whole, "with the tokenizer's bytes");
    tap_ok(words == l->n && l->n > 1900 && moe_lexicon_bytes(l, IDS - 1, &n) == NULL
        && moe_lexicon_bytes(l, IDS, &n) == NULL, "%zu of them", l->n);
}

/* The tokens that can go on from where m stands, by trying. */
static void
try_all(const struct moe_grammar *g, const char *before, size_t n, float *want)
{
    struct moe_matcher *m = NULL;

    if (moe_matcher_new(g, l, &m, NULL) != 0)
        abort();
    for (uint32_t id = 0; id < IDS; id++) {
        bool ok = true;
        size_t len;
        const char *p = moe_lexicon_bytes(l, id, &len);

        if (moe_matcher_restart(m, NULL) != 0 || moe_matcher_bytes(m, before, n, &ok, NULL) != 0)
            abort();
        if (p != NULL && ok && moe_matcher_bytes(m, p, len, &ok, NULL) != 0)
            abort();
        want[id] = p != NULL && ok ? 0 : -INFINITY;
    }
    want[END] = moe_matcher_complete(m) ? 0 : -INFINITY;
    moe_matcher_free(m);
}

static void
add(struct moe_buf *b, uint32_t id)
{
    size_t n;
    const char *p = moe_lexicon_bytes(l, id, &n);

    moe_buf_add(b, p, n);
}

/* A walk by chance: the mask at each step is what trying gives. */
static void
masks(const char *text, size_t steps)
{
    struct moe_grammar *g;
    struct moe_matcher *m = matcher(text, &g);
    static const uint32_t end = END;
    struct moe_buf before = MOE_BUF_INIT;
    float got[IDS], want[IDS];
    unsigned x = 7;
    size_t left = 1, i;
    struct moe_err e = { 0 };
    bool same = true;
    int rc = 0;

    for (i = 0; same && rc == 0 && i < steps && !moe_matcher_over(m); i++) {
        size_t pick;
        uint32_t id = 0;

        memset(got, 0, sizeof(got));
        rc = moe_matcher_mask(m, &end, 1, got, &left, &e);
        try_all(g, before.p, before.len, want);
        want[END] = moe_matcher_complete(m) ? 0 : -INFINITY;
        same = rc == 0 && memcmp(got, want, sizeof(got)) == 0;
        x = x * 1103515245 + 12345;
        if (left == 0 || (left == 1 && got[END] == 0))
            break;
        pick = (x >> 8) % (left - (got[END] == 0));
        while (same && (got[id] != 0 || id == END || pick-- > 0))
            id++;
        rc = rc == 0 ? moe_matcher_token(m, id, &e) : rc;
        add(&before, id);
    }
    tap_ok(same && rc == 0, "%.12s: masks of %zu places %s", text, i, e.text);
    moe_buf_fini(&before);
    moe_matcher_free(m);
    moe_grammar_free(g);
}

/* More places than the tables hold, then the place is still known. */
static void
overflow(void)
{
    struct moe_grammar *g;
    struct moe_matcher *m = matcher("root ::= \"(\" root \")\" | [a-z]{0,20000}", &g);
    float logits[IDS] = { 0 };
    bool ok = true;
    size_t left;
    int rc = 0;

    for (int i = 0; rc == 0 && ok && i < 50; i++)
        rc = moe_matcher_bytes(m, "(", 1, &ok, NULL);
    for (int i = 0; rc == 0 && ok && i < 19999; i++) {
        rc = moe_matcher_bytes(m, "x", 1, &ok, NULL);
        if (rc == 0 && i % 1000 == 0)
            rc = moe_matcher_mask(m, NULL, 0, logits, &left, NULL);
    }
    tap_ok(rc == 0 && ok, "a long way");
    (void)moe_matcher_bytes(m, "xx", 2, &ok, NULL);
    tap_ok(!ok, "one too many is refused");
    (void)moe_matcher_bytes(m, "x", 1, &ok, NULL);
    tap_ok(ok && !moe_matcher_complete(m), "the last one is not, after a refusal");
    for (int i = 0; rc == 0 && ok && i < 50; i++)
        rc = moe_matcher_bytes(m, ")", 1, &ok, NULL);
    tap_ok(rc == 0 && ok && moe_matcher_complete(m) && moe_matcher_over(m), "and back");
    tap_is_int(moe_matcher_token(m, 11, NULL), MOE_EFORMAT, "then nothing follows");
    moe_matcher_free(m);
    moe_grammar_free(g);
}

static void
choice(void)
{
    struct moe_sampler_options o = MOE_SAMPLER_GREEDY;
    static const uint32_t end = END;
    struct moe_chooser *c = NULL, *small = NULL;
    struct moe_grammar *g;
    struct moe_matcher *m = matcher("root ::= \"yes\" | \"no\" \"!\"*", &g);
    struct moe_buf out = MOE_BUF_INIT;
    float logits[IDS] = { 0 };
    struct moe_err e = { 0 };
    uint32_t id = 0;
    int rc;

    o.temperature = 1;
    logits[END] = 50;       /* it would rather end */
    rc = moe_chooser_new(&o, IDS, &c, &e);
    if (rc == 0 && (rc = moe_chooser_ends(c, &end, 1, &e)) == 0)
        rc = moe_chooser_constrain(c, m, &e);
    while (rc == 0 && !moe_chooser_ended(c)) {
        if ((rc = moe_chooser_pick(c, logits, &id, &e)) == 0
            && (rc = moe_chooser_take(c, id, &e)) == 0 && !moe_chooser_is_end(c, id))
            add(&out, id);
    }
    tap_ok(rc == 0 && out.p != NULL && (strcmp(out.p, "yes") == 0 || strcmp(out.p, "no") == 0),
        "an answer: %s %s", out.p == NULL ? "" : out.p, e.text);
    for (uint32_t i = 0; i < IDS; i++)
        logits[i] = -INFINITY;
    (void)moe_matcher_restart(m, NULL);
    tap_is_int(moe_chooser_pick(c, logits, &id, &e), MOE_EFORMAT, "no token: %s", e.text);
    if (moe_chooser_new(&o, 100, &small, &e) != 0)
        abort();
    tap_is_int(moe_chooser_constrain(small, m, &e), MOE_EUSAGE, "another vocabulary: %s", e.text);
    moe_buf_fini(&out);
    moe_chooser_free(c);
    moe_chooser_free(small);
    moe_matcher_free(m);
    moe_grammar_free(g);
}

int
main(void)
{
    size_t n;
    char *json = (char *)golden_file("kjv-moe/tokenizer.json", &n);
    struct moe_err e = { 0 };

    if (!tap_ok(moe_tokenizer_parse(json, n, "kjv", &t, &e) == 0
        && moe_lexicon_new(t, IDS, &l, &e) == 0, "a vocabulary %s", e.text))
        return tap_done();
    free(json);
    lexicon();
    masks("root ::= [a-z ]* \".\"", 6);
    masks("root ::= \"In the beginning\" | \"In the end\" | \"Isaac\"", 6);
    masks("root ::= v (\"\\n\" v)*\nv ::= [1-9] [0-9]? \" \" w (\" \" w){0,8} [.;]\n"
        "w ::= [A-Za-z]+", 8);
    masks("root ::= \"(\" root \")\" | [^()]", 5);
    masks("root ::= [\\u4e00-\\u9fff]{3}", 8);
    overflow();
    choice();
    moe_lexicon_free(l);
    moe_tokenizer_free(t);
    return tap_done();
}
