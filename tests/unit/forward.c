/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of the trained model in tests/data against its golden logits; the same
 * bits in any mixture of sequences, cut and number of threads; the observer.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/session.h"
#include "tests/golden.h"
#include "tests/tap.h"

#define MODEL "tests/data/kjv-moe"
#define VOCAB 2048
#define PROMPTS 3
#define LIMIT 1e-4      /* of logits, F32 arithmetic */

static const struct moe_sampler_options greedy = MOE_SAMPLER_GREEDY;
static uint32_t prompt[PROMPTS][256];
static size_t length[PROMPTS];

struct engine {
    struct moe_pool *pool;
    struct moe_backend *b;
    struct moe_model *m;
    struct moe_kv *kv;
    struct moe_forward *f;
};

static bool
engine_open(struct engine *g, int threads, size_t rows)
{
    struct moe_err e = { 0 };
    int rc;

    memset(g, 0, sizeof(*g));
    if ((rc = moe_pool_new(threads, &g->pool, &e)) == 0
        && (rc = moe_backend_cpu_new(g->pool, &g->b, &e)) == 0
        && (rc = moe_model_open(MODEL, g->b, g->pool, &g->m, &e)) == 0
        && (rc = moe_kv_new(g->b, &g->m->kv, 0, &g->kv, &e)) == 0)
        rc = moe_forward_new(g->m, rows, MOE_ARITH_F32, &g->f, &e);
    return tap_is_int(rc, 0, "an engine of %d threads and %zu rows%s", threads, rows,
        rc == 0 ? "" : e.text);
}

static void
engine_close(struct engine *g)
{
    moe_forward_free(g->f);
    moe_kv_free(g->kv);
    moe_model_close(g->m);
    g->b->ops->free(g->b);
    moe_pool_free(g->pool);
}

static struct moe_session *
session(struct engine *g, size_t p)
{
    struct moe_session *s = NULL;
    struct moe_err e;

    if (moe_session_new(g->m, g->kv, 512, 0, &greedy, &s, &e) != 0
        || moe_session_add(s, prompt[p], length[p], &e) != 0)
        abort();
    return s;
}

static void
read_prompts(void)
{
    const json_t *list = json_object_get(golden_json("kjv-moe/golden.json"), "prompts");

    for (size_t p = 0; p < PROMPTS; p++) {
        const json_t *ids = json_array_get(list, p);

        length[p] = json_array_size(ids);
        for (size_t i = 0; i < length[p]; i++)
            prompt[p][i] = (uint32_t)json_integer_value(json_array_get(ids, i));
    }
}

/* Logits of all sessions of a step, by the session. */
struct kept {
    struct moe_session *s[PROMPTS];
    float *logits[PROMPTS];         /* [256][VOCAB] */
};

static int
keep(void *ctx, struct moe_session *s, size_t at, const float *logits, struct moe_err *e)
{
    struct kept *k = ctx;

    (void)e;
    for (size_t p = 0; p < PROMPTS; p++) {
        if (k->s[p] == s)
            memcpy(k->logits[p] + at * VOCAB, logits, VOCAB * sizeof(*logits));
    }
    return 0;
}

static void
kept_new(struct kept *k, struct engine *g)
{
    for (size_t p = 0; p < PROMPTS; p++) {
        k->s[p] = session(g, p);
        k->logits[p] = calloc(256 * VOCAB, sizeof(float));
    }
}

static void
kept_free(struct kept *k)
{
    for (size_t p = 0; p < PROMPTS; p++) {
        moe_session_free(k->s[p]);
        free(k->logits[p]);
    }
}

/* Prompt after prompt, each in steps as large as the engine takes. */
static void
run_alone(struct kept *k, struct engine *g)
{
    struct moe_err e = { 0 };
    int rc = 0;

    for (size_t p = 0; p < PROMPTS && rc == 0; p++)
        rc = moe_session_run(g->f, k->s[p], true, keep, k, &e);
    tap_is_int(rc, 0, "prompts one by one%s", e.text);
}

/* All prompts in the same steps, some tokens of each. */
static void
run_mixed(struct kept *k, struct engine *g)
{
    static const size_t some[PROMPTS] = { 1, 5, 23 };
    struct moe_err e = { 0 };
    int rc = 0;

    for (;;) {
        struct moe_session_part parts[PROMPTS];
        size_t n = 0;

        for (size_t p = PROMPTS; p-- > 0;) {
            size_t left = moe_session_pending(k->s[p]);

            if (left > 0)
                parts[n++] = (struct moe_session_part){ k->s[p],
                    left < some[p] ? left : some[p], true };
        }
        if (n == 0 || rc != 0)
            break;
        rc = moe_session_step(g->f, parts, n, keep, k, &e);
    }
    tap_is_int(rc, 0, "prompts mixed in steps%s", e.text);
}

static double
worst_of(const struct golden_tensors *g, const char *name, const float *got)
{
    struct golden_tensor t;
    double worst = 0;

    golden_find(g, name, true, &t);
    for (size_t i = 0; i < t.n / 4; i++) {
        float want;

        memcpy(&want, t.p + 4 * i, 4);
        worst = fmax(worst, fabs((double)want - (double)got[i]));
    }
    return worst;
}

static void
check_golden(const struct kept *k)
{
    struct golden_tensors g = golden_tensors("kjv-moe/golden.safetensors");
    double w0 = worst_of(&g, "logits_0", k->logits[0]);
    double w1 = worst_of(&g, "logits_1", k->logits[1]);
    double w2 = worst_of(&g, "logits_2", k->logits[2] + (length[2] - 1) * VOCAB);

    tap_ok(w0 <= LIMIT && w1 <= LIMIT && w2 <= LIMIT,
        "logits differ from golden by %.1e %.1e %.1e", w0, w1, w2);
}

static bool
same(const struct kept *a, const struct kept *b)
{
    bool yes = true;

    for (size_t p = 0; p < PROMPTS; p++)
        yes = yes && memcmp(a->logits[p], b->logits[p], length[p] * VOCAB * 4) == 0;
    return yes;
}

/* ---- The observer ---- */

struct seen {
    size_t calls[MOE_W_N], rows[MOE_W_N];
    double share;           /* sum of routing weights at the gates */
    bool good;
};

static void
see(void *ctx, const struct moe_observed *o)
{
    struct seen *s = ctx;

    s->calls[o->weight]++;
    s->rows[o->weight] += o->n;
    for (size_t j = 0; j < o->n; j++) {
        double sum = 0;

        for (size_t i = 0; i < o->cols; i++)
            sum += (double)o->x[j * o->ld + i] * (double)o->x[j * o->ld + i];
        s->good = s->good && sum > 0 && isfinite(sum) && o->row[j] < 17
            && (j == 0 || o->row[j] > o->row[j - 1]);
        if (o->weight == MOE_W_EXPERT_GATE)
            s->share += (double)o->share[j];
    }
}

static void
check_observer(struct engine *g, const struct kept *want)
{
    struct seen seen = { .good = true };
    const struct moe_observer o = { see, &seen };
    struct kept k;
    struct moe_err e = { 0 };

    kept_new(&k, g);
    moe_forward_observe(g->f, &o);
    tap_is_int(moe_session_run(g->f, k.s[1], true, keep, &k, &e), 0, "a run that is watched");
    moe_forward_observe(g->f, NULL);
    tap_ok(memcmp(k.logits[1], want->logits[1], 17 * VOCAB * 4) == 0, "changes nothing");
    tap_ok(seen.good, "rows are numbers, in order, of the step");
    tap_ok(seen.calls[MOE_W_Q] == 4 && seen.calls[MOE_W_O] == 4 && seen.rows[MOE_W_K] == 68
        && seen.calls[MOE_W_ROUTER] == 4 && seen.rows[MOE_W_HEAD] == 17, "once a matrix");
    tap_is_int((long long)seen.rows[MOE_W_EXPERT_GATE], 4 * 17 * 4, "each row at its four experts");
    tap_is_int((long long)seen.rows[MOE_W_EXPERT_DOWN], 4 * 17 * 4, "and their down projections");
    tap_ok(fabs(seen.share - 4 * 17) < 1e-4, "routing weights of a row sum to 1");
    kept_free(&k);
}

static void
check_misuse(struct engine *g)
{
    struct moe_session *s = session(g, 1);
    struct moe_session_part part = { s, 18, false };
    static const uint32_t high[1] = { VOCAB };
    struct moe_forward *f;
    struct moe_err e;

    tap_is_int(moe_session_step(g->f, &part, 1, NULL, NULL, &e), MOE_EUSAGE, "too many tokens");
    tap_is_int(moe_session_add(s, high, 1, &e), MOE_EUSAGE, "a token out of the vocabulary");
    tap_is_int(moe_forward_new(g->m, 0, MOE_ARITH_F32, &f, &e), MOE_EUSAGE, "a step of no rows");
    moe_session_free(s);
}

int
main(void)
{
    struct engine one, three;
    struct kept a, b, c;

    read_prompts();
    if (!engine_open(&one, 1, 256) || !engine_open(&three, 3, 64))
        return tap_done();
    kept_new(&a, &one);
    kept_new(&b, &three);
    kept_new(&c, &three);
    run_alone(&a, &one);
    run_alone(&b, &three);
    run_mixed(&c, &three);
    check_golden(&a);
    tap_ok(same(&a, &b), "the same bits on three threads in steps of 64");
    tap_ok(same(&a, &c), "the same bits among other sequences");
    check_observer(&one, &a);
    check_misuse(&one);
    kept_free(&a);
    kept_free(&b);
    kept_free(&c);
    engine_close(&one);
    engine_close(&three);
    return tap_done();
}
