/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choices of a request: every chain of tests/data/text/sampling.json, what is
 * remembered from token to token, ends, logarithms, refusals.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/chooser.h"
#include "tests/golden.h"
#include "tests/tap.h"

#define MAX 32

static struct moe_sampler_bias bias[MAX];

static void
options_of(const json_t *chain, struct moe_sampler_options *o)
{
    const json_t *step, *v;
    const char *key;
    size_t i;

    *o = (struct moe_sampler_options)MOE_SAMPLER_GREEDY;
    o->temperature = 1;
    json_array_foreach (chain, i, step) {
        const char *name = json_string_value(json_array_get(step, 0));
        const json_t *arg = json_array_get(step, 1);
        double x = json_number_value(arg);

        if (strcmp(name, "temperature") == 0)
            o->temperature = x;
        else if (strcmp(name, "top_k") == 0)
            o->top_k = (int64_t)x;
        else if (strcmp(name, "top_p") == 0)
            o->top_p = x;
        else if (strcmp(name, "min_p") == 0)
            o->min_p = x;
        else if (strcmp(name, "repetition") == 0)
            o->repetition = x;
        else if (strcmp(name, "presence") == 0)
            o->presence = x;
        else if (strcmp(name, "frequency") == 0)
            o->frequency = x;
        else
            json_object_foreach ((json_t *)(uintptr_t)arg, key, v)
                bias[o->n_bias++] = (struct moe_sampler_bias){ (uint32_t)strtoul(key, NULL, 10),
                    (float)json_number_value(v) };
    }
    o->bias = bias;
}

static struct moe_chooser *
chooser(const struct moe_sampler_options *o, size_t n)
{
    struct moe_chooser *c = NULL;
    struct moe_err e = { 0 };

    if (!tap_ok(moe_chooser_new(o, n, &c, &e) == 0, "a chooser %s", e.text))
        abort();
    return c;
}

static void
check_case(const json_t *root, const json_t *t)
{
    const char *vector = json_string_value(json_object_get(t, "vector"));
    const json_t *in = json_object_get(json_object_get(root, "vectors"), vector);
    const json_t *ids = json_object_get(t, "ids"), *want = json_object_get(t, "p");
    size_t n = json_array_size(in), kept = 0;
    size_t prompt = (size_t)json_integer_value(json_object_get(t, "prompt"));
    struct moe_candidate cand[MAX];
    struct moe_sampler_options o;
    struct moe_chooser *c;
    float logits[MAX];
    double p[MAX] = { 0 }, worst = 0;
    char *text = json_dumps(json_object_get(t, "chain"), JSON_COMPACT);

    options_of(json_object_get(t, "chain"), &o);
    c = chooser(&o, n);
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(in, i);

        logits[i] = json_is_null(v) ? -INFINITY : (float)json_number_value(v);
    }
    for (size_t i = 0; i < json_array_size(ids); i++) {
        uint32_t id = (uint32_t)json_integer_value(json_array_get(ids, i));

        if (i < prompt)
            moe_chooser_prompt(c, &id, 1);
        else if (moe_chooser_take(c, id, NULL) != 0)
            abort();
    }
    if (moe_sampler_filter(&o, moe_chooser_row(c, logits), n, cand, &kept, NULL) != 0)
        abort();
    for (size_t i = 0; i < kept; i++)
        p[cand[i].id] = cand[i].p;
    tap_is_int((long long)kept, (long long)json_array_size(json_object_get(t, "kept")),
        "%s %s: kept", vector, text);
    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, fabs(p[i] - json_number_value(json_array_get(want, i))));
    tap_ok(worst < 1e-6, "%s %s: probabilities differ by %.1e", vector, text, worst);
    moe_chooser_free(c);
    free(text);
}

static void
golden(void)
{
    const json_t *root = golden_json("text/sampling.json"), *t;
    size_t i;

    tap_ok(json_array_size(json_object_get(root, "cases")) > 150, "many cases");
    json_array_foreach (json_object_get(root, "cases"), i, t)
        check_case(root, t);
}

/* Equal logits, and a penalty that makes each token appear once before any appears twice. */
static void
memory(void)
{
    static const float flat[8] = { 0 };
    struct moe_sampler_options o = MOE_SAMPLER_GREEDY;
    unsigned seen = 0, other = 0;
    struct moe_chooser *c;
    uint32_t id;

    o.frequency = 1;
    c = chooser(&o, 8);
    for (int i = 0; i < 16; i++) {
        if (moe_chooser_pick(c, flat, &id, NULL) != 0 || moe_chooser_take(c, id, NULL) != 0)
            abort();
        if (i < 8)
            seen |= 1u << id;
        else
            other |= 1u << id;
    }
    tap_ok(seen == 255 && other == 255, "each once, then each again");
    tap_is_int((long long)moe_chooser_taken(c), 16, "so many taken");
    moe_chooser_free(c);
}

static void
draws(void)
{
    static const float x[5] = { 1, 0, 2, 1, 0 };
    struct moe_sampler_options o = MOE_SAMPLER_GREEDY;
    struct moe_candidate cand[5];
    struct moe_chooser *c;
    bool same = true;
    uint32_t id, want;

    o.temperature = 1;
    o.seed = 9;
    c = chooser(&o, 5);
    for (uint64_t i = 0; i < 50; i++) {
        same = moe_chooser_pick(c, x, &id, NULL) == 0 && same;
        same = moe_chooser_pick(c, x, &id, NULL) == 0 && same;
        same = moe_sampler_draw(&o, i, x, 5, cand, &want, NULL) == 0 && id == want && same;
        same = moe_chooser_take(c, id, NULL) == 0 && same;
    }
    tap_ok(same, "token i is draw i of the seed, however often one looks");
    moe_chooser_free(c);
}

static void
ends(void)
{
    static const float x[4] = { 1, 0, 2, 1 };
    static const uint32_t two[2] = { 1, 3 }, none = 4;
    struct moe_sampler_options o = MOE_SAMPLER_GREEDY;
    struct moe_chooser *c = chooser(&o, 4);
    struct moe_err e;
    uint32_t id;

    tap_is_int(moe_chooser_ends(c, two, 2, &e), 0, "two ends");
    tap_is_int(moe_chooser_ends(c, &none, 1, &e), MOE_EUSAGE, "an end outside");
    tap_is_int(moe_chooser_take(c, 4, &e), MOE_EUSAGE, "a token outside");
    tap_ok(!moe_chooser_ended(c), "not ended");
    (void)moe_chooser_take(c, 2, &e);
    tap_ok(!moe_chooser_ended(c), "not by another token");
    (void)moe_chooser_take(c, 3, &e);
    tap_ok(moe_chooser_ended(c), "by an end");
    tap_ok(moe_chooser_logprobs(c) == NULL, "no logarithms");
    tap_is_int(moe_chooser_watch(c, 21, &e), MOE_EUSAGE, "too many of them");
    tap_is_int(moe_chooser_watch(c, 1, &e), 0, "one of them");
    (void)moe_chooser_pick(c, x, &id, &e);
    tap_ok(moe_chooser_logprobs(c)->n == 1 && moe_chooser_logprobs(c)->top[0].id == 2,
        "the likeliest");
    moe_chooser_free(c);
}

static void
refused(void)
{
    static const struct moe_sampler_bias odd = { 4, 1 }, nan = { 1, NAN };
    struct moe_sampler_options o = MOE_SAMPLER_GREEDY;
    struct moe_chooser *c;
    struct moe_err e;

    o.bias = &odd;
    o.n_bias = 1;
    tap_is_int(moe_chooser_new(&o, 4, &c, &e), MOE_EUSAGE, "bias: %s", e.text);
    o.bias = &nan;
    tap_is_int(moe_chooser_new(&o, 4, &c, &e), MOE_EUSAGE, "bias: %s", e.text);
    o.n_bias = 0;
    o.repetition = -1;
    tap_is_int(moe_chooser_new(&o, 4, &c, &e), MOE_EUSAGE, "%s", e.text);
    tap_ok(c == NULL, "nothing is left");
}

int
main(void)
{
    golden();
    memory();
    draws();
    ends();
    refused();
    return tap_done();
}
