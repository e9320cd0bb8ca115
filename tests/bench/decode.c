/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is around the forward pass of a decode: 400 tokens of the trained model,
 * whose greedy text comes to repeat itself, and of a drawn text, which does not,
 * plain, with guesses, and bound to a grammar. Ratios are against plain.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/read.h"
#include "common/engine/gbnf.h"
#include "common/engine/session.h"
#include "common/engine/speculate.h"
#include "common/system/measure.h"

#define MODEL "tests/data/kjv-moe"
#define TOKENS 400

static struct moe_backend *b;
static struct moe_model *m;
static struct moe_kv *kv;
static struct moe_forward *f;
static struct moe_tokenizer *t;
static struct moe_lexicon *l;
static struct moe_grammar *g;
static struct moe_matcher *matcher;

struct work { struct moe_sampler_options o; bool guess, grammar; };

static void
check(int rc, const struct moe_err *e)
{
    if (rc == 0)
        return;
    fprintf(stderr, "bench: decode: %s\n", e->text);
    exit(2);
}

static int
got(void *ctx, struct moe_session *s, uint32_t id, struct moe_err *e)
{
    size_t *n = ctx;

    (void)s;
    (void)id;
    (void)e;
    ++*n;
    return 0;
}

static void
decode(void *ctx)
{
    static const uint32_t prompt[] = { 1145, 258, 1782, 1239, 386, 279, 555, 282 };
    const struct work *w = ctx;
    uint32_t draft[MOE_SPECULATE_MAX], id;
    struct moe_speculate guess;
    struct moe_session *s;
    struct moe_err e = { 0, "" };
    size_t n = 0;

    check(moe_session_new(m, kv, 512, 0, &w->o, &s, &e), &e);
    check(moe_session_add(s, prompt, 8, &e), &e);
    if (w->grammar) {
        check(moe_matcher_restart(matcher, &e), &e);
        check(moe_chooser_constrain(moe_session_chooser(s), matcher, &e), &e);
    }
    moe_speculate_init(&guess, w->guess ? 8 : 0);
    check(moe_session_next(f, s, &id, &e), &e);
    while (n < TOKENS) {
        uint64_t begun = moe_clock_ns();
        size_t before = n, k = moe_speculate_draft(&guess, moe_session_tokens(s),
            moe_session_len(s), TOKENS - n, draft);

        check(moe_session_try(f, s, draft, k, got, &n, &e), &e);
        moe_speculate_learn(&guess, k, n - before, moe_clock_ns() - begun);
    }
    moe_session_free(s);
}

static void
report(const char *shape, struct moe_sampler_options o)
{
    struct work plain = { o, false, false }, guess = { o, true, false };
    struct work grammar = { o, false, true };
    struct moe_measure_case c[3] = { { "plain", decode, NULL, &plain, 0, TOKENS },
        { "guess", decode, NULL, &guess, 0, TOKENS },
        { "grammar", decode, NULL, &grammar, 0, TOKENS } };
    struct moe_measure_plan plan = { 9, 20000000 };
    struct moe_buf out = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    struct moe_measure r;

    check(moe_measure_run(c, 3, &plan, &r, &e), &e);
    check(moe_measure_lines(&out, "decode", shape, c, 3, &r, 0, MOE_MEASURE_TIME, &e), &e);
    fputs(out.p, stdout);
    fflush(stdout);
    moe_buf_fini(&out);
    moe_measure_fini(&r);
}

int
main(void)
{
    static const char any[] = "root ::= ([A-Za-z] | [ ,.;:'?!()-] | \"\\n\" | [0-9])*";
    struct moe_sampler_options o = MOE_SAMPLER_GREEDY;
    struct moe_buf json = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };

    check(moe_backend_cpu_new(NULL, &b, &e), &e);
    check(moe_model_open(MODEL, b, NULL, &m, &e), &e);
    check(moe_kv_new(b, &m->kv, 0, &kv, &e), &e);
    check(moe_forward_new(m, 64, MOE_ARITH_FAST, &f, &e), &e);
    check(moe_read_file(MODEL "/tokenizer.json", MOE_TOKENIZER_MAX_BYTES, &json, &e), &e);
    check(moe_tokenizer_parse(json.p, json.len, "tokenizer.json", &t, &e), &e);
    check(moe_lexicon_new(t, (uint32_t)m->hp.vocab, &l, &e), &e);
    check(moe_gbnf_parse(any, strlen(any), "any", &g, &e), &e);
    check(moe_matcher_new(g, l, &matcher, &e), &e);
    report("kjv-moe greedy, repeats", o);
    o.temperature = 1;
    o.seed = 5;
    report("kjv-moe drawn", o);
    moe_matcher_free(matcher);
    moe_grammar_free(g);
    moe_lexicon_free(l);
    moe_tokenizer_free(t);
    moe_buf_fini(&json);
    moe_forward_free(f);
    moe_kv_free(kv);
    moe_model_close(m);
    b->ops->free(b);
    return 0;
}
