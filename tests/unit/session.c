/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences: the greedy continuations of the trained model in tests/data, draws
 * by seed, the context's end.
 */
#include <stdlib.h>
#include <string.h>

#include "common/engine/session.h"
#include "tests/golden.h"
#include "tests/tap.h"

#define MODEL "tests/data/kjv-moe"
#define GAP 1e-3        /* below it, two best logits may trade places */

static struct moe_backend *b;
static struct moe_model *m;
static struct moe_kv *kv;
static struct moe_forward *f;

static bool
open_all(void)
{
    struct moe_err e = { 0 };
    int rc;

    if ((rc = moe_backend_cpu_new(NULL, &b, &e)) == 0
        && (rc = moe_model_open(MODEL, b, NULL, &m, &e)) == 0
        && (rc = moe_kv_new(b, &m->kv, 0, &kv, &e)) == 0)
        rc = moe_forward_new(m, 64, MOE_ARITH_F32, &f, &e);
    return tap_is_int(rc, 0, "a model%s", e.text);
}

static struct moe_session *
begin(const struct moe_sampler_options *o, size_t context, const json_t *ids)
{
    struct moe_session *s = NULL;
    struct moe_err e;

    if (moe_session_new(m, kv, context, 0, o, &s, &e) != 0)
        return NULL;
    for (size_t i = 0; i < json_array_size(ids); i++) {
        uint32_t id = (uint32_t)json_integer_value(json_array_get(ids, i));

        if (moe_session_add(s, &id, 1, &e) != 0)
            abort();
    }
    return s;
}

static void
golden(void)
{
    static const struct moe_sampler_options greedy = MOE_SAMPLER_GREEDY;
    const json_t *g = golden_json("kjv-moe/golden.json");
    const json_t *prompts = json_object_get(g, "prompts");
    size_t compared = 0, equal = 0, steps = 0;
    struct moe_err e;

    for (size_t p = 0; p < json_array_size(prompts); p++) {
        const json_t *want = json_array_get(json_object_get(g, "greedy"), p);
        const json_t *gap = json_array_get(json_object_get(g, "gap"), p);
        struct moe_session *s = begin(&greedy, 512, json_array_get(prompts, p));
        bool on = true;

        for (size_t i = 0; i < json_array_size(want); i++, steps++) {
            uint32_t id = 0;

            tap_is_int(moe_session_next(f, s, &id, &e), 0, "prompt %zu, token %zu", p, i);
            on = on && json_number_value(json_array_get(gap, i)) > GAP;
            compared += on;
            equal += on && id == (uint32_t)json_integer_value(json_array_get(want, i));
        }
        moe_session_free(s);
    }
    tap_is_int((long long)equal, (long long)compared, "greedy tokens");
    tap_ok(compared * 10 >= steps * 9, "%zu of %zu steps compared", compared, steps);
}

static void
seeds(const json_t *ids)
{
    struct moe_sampler_options o = { 1.0, 50, 0.95, 0, 7, 1.0, 0, 0, NULL, 0 };
    uint32_t text[3][12];
    struct moe_err e;

    for (int run = 0; run < 3; run++) {
        struct moe_session *s;

        o.seed = run == 2 ? 8 : 7;
        s = begin(&o, 512, ids);
        for (size_t i = 0; i < 12; i++)
            moe_session_next(f, s, &text[run][i], &e);
        moe_session_free(s);
    }
    tap_ok(memcmp(text[0], text[1], sizeof(text[0])) == 0, "one seed, one text");
    tap_ok(memcmp(text[0], text[2], sizeof(text[0])) != 0, "another seed, another text");
}

static void
ends(const json_t *ids)
{
    static const struct moe_sampler_options greedy = MOE_SAMPLER_GREEDY;
    size_t n = json_array_size(ids);
    struct moe_session *s = begin(&greedy, n + 1, ids);
    struct moe_err e;
    uint32_t id;

    tap_is_int((long long)moe_session_pending(s), (long long)n, "all pending");
    tap_is_int(moe_session_next(f, s, &id, &e), 0, "the last token that fits");
    tap_ok(moe_session_len(s) == n + 1 && moe_session_pending(s) == 1
        && moe_session_tokens(s)[n] == id, "it is there, not computed yet");
    tap_is_int(moe_session_next(f, s, &id, &e), MOE_ELIMIT, "one more");
    moe_session_free(s);
    s = begin(&greedy, 4, NULL);
    tap_is_int(moe_session_next(f, s, &id, &e), MOE_EUSAGE, "nothing to go on from");
    moe_session_free(s);
    tap_is_int(moe_session_new(m, kv, 0, 0, &greedy, &s, &e), MOE_EUSAGE, "no context");
}

int
main(void)
{
    const json_t *ids = json_array_get(json_object_get(golden_json("kjv-moe/golden.json"),
        "prompts"), 1);

    if (!open_all())
        return tap_done();
    golden();
    seeds(ids);
    ends(ids);
    tap_is_int((long long)moe_kv_used(kv), 0, "all pages were given back");
    moe_forward_free(f);
    moe_kv_free(kv);
    moe_model_close(m);
    b->ops->free(b);
    return tap_done();
}
