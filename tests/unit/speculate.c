/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guesses: what is looked up, when it is left alone, and that a session with
 * guesses, good and bad, chooses the tokens that it chooses without.
 */
#include <stdlib.h>
#include <string.h>

#include "common/engine/session.h"
#include "common/engine/speculate.h"
#include "tests/golden.h"
#include "tests/tap.h"

#define MODEL "tests/data/kjv-moe"
#define TOKENS 48

static struct moe_speculate
warm(size_t most)
{
    struct moe_speculate g;

    moe_speculate_init(&g, most);
    for (int i = 0; i < MOE_SPECULATE_WARM; i++)
        moe_speculate_learn(&g, 0, 1, 100);
    return g;
}

static void
lookup(void)
{
    static const uint32_t ids[] = { 1, 2, 3, 4, 9, 8, 2, 3, 4, 5, 6, 7, 2, 3, 4 };
    static const uint32_t longer[] = { 7, 2, 3, 4, 9, 8, 2, 3, 4, 5, 6, 7, 2, 3, 4 };
    static const uint32_t same[] = { 8, 8, 8, 8 };
    struct moe_speculate g;
    uint32_t d[MOE_SPECULATE_MAX] = { 0 };

    moe_speculate_init(&g, 8);
    tap_is_int((long long)moe_speculate_draft(&g, ids, 15, 9, d), 0, "nothing before plain steps");
    g = warm(8);
    tap_is_int((long long)moe_speculate_draft(&g, ids, 15, 9, d), 2, "two at first");
    tap_ok(d[0] == 5 && d[1] == 6, "of equal matches the last: %u %u", d[0], d[1]);
    tap_is_int((long long)moe_speculate_draft(&g, longer, 15, 9, d), 2, "a longer match");
    tap_ok(d[0] == 9 && d[1] == 8, "goes before a later one: %u %u", d[0], d[1]);
    tap_is_int((long long)moe_speculate_draft(&g, ids, 15, 1, d), 1, "no more than there is room");
    tap_is_int((long long)moe_speculate_draft(&g, ids, 14, 9, d), 0, "two tokens are no match");
    tap_is_int((long long)moe_speculate_draft(&g, ids, 0, 9, d), 0, "no tokens");
    g.len = 8;
    tap_is_int((long long)moe_speculate_draft(&g, same, 4, 9, d), 8, "a guess into itself");
    tap_ok(d[0] == 8 && d[7] == 8, "of one token");
    g = warm(0);
    tap_is_int((long long)moe_speculate_draft(&g, ids, 15, 9, d), 0, "never");
}

static void
judgement(void)
{
    static const uint32_t same[] = { 8, 8, 8, 8 };
    struct moe_speculate g = warm(8);
    uint32_t d[MOE_SPECULATE_MAX];
    size_t n;

    for (int i = 0; i < 20; i++) {
        n = moe_speculate_draft(&g, same, 4, 99, d);
        moe_speculate_learn(&g, n, n + 1, 150);
    }
    tap_is_int((long long)moe_speculate_draft(&g, same, 4, 99, d), 8, "what pays grows");
    for (int i = 0; i < MOE_SPECULATE_TRIES + 8; i++) {
        n = moe_speculate_draft(&g, same, 4, 99, d);
        moe_speculate_learn(&g, n, 1, 300);
    }
    tap_is_int((long long)moe_speculate_draft(&g, same, 4, 99, d), 0, "what loses is left alone");
    tap_ok(g.rest > 0 && g.rest <= MOE_SPECULATE_PAUSE, "for a while: %d", (int)g.rest);
    for (int i = 0; i < MOE_SPECULATE_PAUSE; i++)
        moe_speculate_learn(&g, 0, 1, 100);
    n = moe_speculate_draft(&g, same, 4, 99, d);
    tap_is_int((long long)n, 2, "and tried again");
    for (int i = 0; i < MOE_SPECULATE_TRIES; i++)
        moe_speculate_learn(&g, 2, 1, 300);
    tap_is_int((long long)g.rest, 2 * MOE_SPECULATE_PAUSE, "then left for longer");
}

/* ---- A session ------------------------------------------------------------------- */

static struct moe_backend *b;
static struct moe_model *m;
static struct moe_kv *kv;
static struct moe_forward *f;

struct text { uint32_t id[TOKENS + MOE_SPECULATE_MAX]; size_t n, kept, steps; };

static int
got(void *ctx, struct moe_session *s, uint32_t id, struct moe_err *e)
{
    struct text *t = ctx;

    (void)s;
    (void)e;
    t->id[t->n++] = id;
    return 0;
}

static struct moe_session *
begin(const struct moe_sampler_options *o, const json_t *ids, uint32_t end)
{
    struct moe_session *s = NULL;
    struct moe_err e;

    if (moe_session_new(m, kv, 256, 0, o, &s, &e) != 0)
        abort();
    for (size_t i = 0; i < json_array_size(ids); i++) {
        uint32_t id = (uint32_t)json_integer_value(json_array_get(ids, i));

        if (moe_session_add(s, &id, 1, &e) != 0)
            abort();
    }
    if (moe_chooser_ends(moe_session_chooser(s), &end, 1, &e) != 0)
        abort();
    return s;
}

/* How the draft of a step is made: the truth, with every third token wrong, or looked up. */
enum kind { TRUTH, SPOILT, LOOKUP };

static size_t
make_draft(enum kind kind, const struct text *truth, const struct moe_session *s, size_t at,
    uint32_t *d)
{
    struct moe_speculate g = warm(8);
    size_t n = 0;

    g.len = 8;
    if (kind == LOOKUP)
        return moe_speculate_draft(&g, moe_session_tokens(s), moe_session_len(s), 8, d);
    for (; n < 5 && at + n < truth->n; n++) {
        d[n] = truth->id[at + n];
        if (kind == SPOILT && (at + n) % 3 == 2)
            d[n] = (d[n] + 1) % 2048;
    }
    return n;
}

static void
same_text(const struct moe_sampler_options *o, const json_t *ids, const char *what)
{
    struct text truth = { { 0 }, 0, 0, 0 };
    struct moe_session *s = begin(o, ids, 2047);
    struct moe_err e;

    while (truth.n < TOKENS && !moe_chooser_ended(moe_session_chooser(s))) {
        if (moe_session_next(f, s, &truth.id[truth.n++], &e) != 0)
            abort();
    }
    moe_session_free(s);
    for (int kind = TRUTH; kind <= LOOKUP; kind++) {
        struct text t = { { 0 }, 0, 0, 0 };
        uint32_t d[MOE_SPECULATE_MAX];

        s = begin(o, ids, 2047);
        if (moe_session_next(f, s, &t.id[t.n++], &e) != 0)
            abort();
        while (t.n < truth.n && !moe_chooser_ended(moe_session_chooser(s))) {
            size_t n = make_draft((enum kind)kind, &truth, s, t.n, d);

            tap_is_int(moe_session_try(f, s, d, n, got, &t, &e), 0, "%s: a step of %zu", what, n);
            t.steps++;
        }
        tap_ok(t.n >= truth.n && memcmp(t.id, truth.id, truth.n * sizeof(*t.id)) == 0,
            "%s: guesses of kind %d change no token", what, kind);
        if (kind == TRUTH)
            tap_ok(t.steps <= truth.n / 6 + 1, "%s: %zu steps for %zu tokens", what, t.steps,
                truth.n);
        tap_ok(moe_session_pending(s) == 1, "%s: one token is pending", what);
        moe_session_free(s);
    }
}

static void
ends(const json_t *ids)
{
    static const struct moe_sampler_options greedy = MOE_SAMPLER_GREEDY;
    struct moe_session *s = begin(&greedy, ids, 2047);
    struct text t = { { 0 }, 0, 0, 0 };
    uint32_t first[4], d[300] = { 0 };
    struct moe_err e;

    for (int i = 0; i < 4; i++) {
        if (moe_session_next(f, s, &first[i], &e) != 0)
            abort();
    }
    tap_is_int(moe_session_try(f, s, d, 255, got, &t, &e), MOE_ELIMIT, "past the context");
    moe_session_free(s);
    s = begin(&greedy, ids, first[2]);
    tap_is_int(moe_session_try(f, s, first, 1, got, &t, &e), MOE_EUSAGE, "a prompt is pending");
    if (moe_session_next(f, s, &first[0], &e) != 0)
        abort();
    tap_is_int(moe_session_try(f, s, first + 1, 3, got, &t, &e), 0, "an end within a guess");
    tap_ok(t.n == 2 && t.id[1] == first[2], "is the last token");
    tap_ok(moe_chooser_ended(moe_session_chooser(s)), "and known to be one");
    moe_session_free(s);
}

int
main(void)
{
    struct moe_sampler_options o = MOE_SAMPLER_GREEDY;
    const json_t *ids = json_array_get(json_object_get(golden_json("kjv-moe/golden.json"),
        "prompts"), 1);
    struct moe_err e = { 0 };

    lookup();
    judgement();
    if (moe_backend_cpu_new(NULL, &b, &e) != 0 || moe_model_open(MODEL, b, NULL, &m, &e) != 0
        || moe_kv_new(b, &m->kv, 0, &kv, &e) != 0
        || moe_forward_new(m, 64, MOE_ARITH_F32, &f, &e) != 0) {
        tap_ok(false, "a model: %s", e.text);
        return tap_done();
    }
    same_text(&o, ids, "greedy");
    o.temperature = 0.9;
    o.top_p = 0.9;
    o.seed = 11;
    o.repetition = 1.1;
    o.frequency = 0.2;
    same_text(&o, ids, "drawn");
    ends(ids);
    tap_is_int((long long)moe_kv_used(kv), 0, "all pages were given back");
    moe_forward_free(f);
    moe_kv_free(kv);
    moe_model_close(m);
    b->ops->free(b);
    return tap_done();
}
