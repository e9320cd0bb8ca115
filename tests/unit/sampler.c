/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampling: the chains of tests/data/text/sampling.json that hold nothing but
 * our four steps in our order, and what draws must keep to.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/sampler.h"
#include "tests/tap.h"

#define MAX 32

/* false: the chain holds a step that is not ours. */
static bool
options_of(const json_t *chain, struct moe_sampler_options *o)
{
    const json_t *step;
    size_t i;

    *o = (struct moe_sampler_options)MOE_SAMPLER_GREEDY;
    o->temperature = 1;
    json_array_foreach (chain, i, step) {
        const char *name = json_string_value(json_array_get(step, 0));
        double v = json_number_value(json_array_get(step, 1));

        if (strcmp(name, "temperature") == 0)
            o->temperature = v;
        else if (strcmp(name, "top_k") == 0)
            o->top_k = (int64_t)v;
        else if (strcmp(name, "top_p") == 0)
            o->top_p = v;
        else if (strcmp(name, "min_p") == 0)
            o->min_p = v;
        else
            return false;
    }
    return true;
}

static void
check_case(const json_t *root, const json_t *c)
{
    const char *vector = json_string_value(json_object_get(c, "vector"));
    const json_t *in = json_object_get(json_object_get(root, "vectors"), vector);
    const json_t *want = json_object_get(c, "p"), *chain = json_object_get(c, "chain");
    size_t n = json_array_size(in), kept = 0;
    struct moe_candidate cand[MAX];
    struct moe_sampler_options o;
    float logits[MAX];
    double p[MAX] = { 0 }, worst = 0;
    struct moe_err e;
    char *text;

    if (!options_of(chain, &o))
        return;
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(in, i);

        logits[i] = json_is_null(v) ? -INFINITY : (float)json_number_value(v);
    }
    text = json_dumps(chain, JSON_COMPACT);
    tap_is_int(moe_sampler_filter(&o, logits, n, cand, &kept, &e), 0, "%s %s", vector, text);
    for (size_t i = 0; i < kept; i++)
        p[cand[i].id] = cand[i].p;
    tap_is_int((long long)kept, (long long)json_array_size(json_object_get(c, "kept")),
        "%s %s: kept", vector, text);
    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, fabs(p[i] - json_number_value(json_array_get(want, i))));
    tap_ok(worst < 1e-6, "%s %s: probabilities differ by %.1e", vector, text, worst);
    free(text);
}

static void
golden(const char *path)
{
    json_error_t je;
    json_t *root = json_load_file(path, 0, &je);
    const json_t *c;
    size_t i;

    if (!tap_ok(root != NULL, "%s", path))
        return;
    json_array_foreach (json_object_get(root, "cases"), i, c)
        check_case(root, c);
    json_decref(root);
}

static void
draws(void)
{
    struct moe_sampler_options o = { .temperature = 0.8, .top_k = 3, .top_p = 1, .seed = 42,
        .repetition = 1 };
    float logits[6] = { 0, 2, 1, 2, -1, NAN };
    struct moe_candidate c[6];
    int count[6] = { 0 };
    uint32_t id = 9, again = 9;
    struct moe_err e;

    tap_is_int(moe_sampler_draw(&o, 0, logits, 6, c, &id, &e), MOE_EFORMAT, "NaN is refused");
    for (int i = 0; i < 2000; i++) {
        moe_sampler_draw(&o, (uint64_t)i, logits, 5, c, &id, &e);
        moe_sampler_draw(&o, (uint64_t)i, logits, 5, c, &again, &e);
        count[id] += id == again;
    }
    tap_is_int(count[1] + count[2] + count[3], 2000, "only the top three, repeatably");
    /* exp(-1/0.8) = 0.2865: shares 0.437, 0.125, 0.437; four sigma are 0.045. */
    tap_ok(abs(count[1] - 874) < 90 && abs(count[3] - 874) < 90, "shares %d %d %d", count[1],
        count[2], count[3]);
    o.temperature = 0;
    tap_is_int(moe_sampler_draw(&o, 0, logits, 5, NULL, &id, &e), 0, "greedy");
    tap_is_int((int)id, 1, "the lowest id of equal logits");
    tap_is_int(moe_sampler_draw(&o, 0, logits, 6, NULL, &id, &e), MOE_EFORMAT, "greedy, NaN");
    logits[0] = logits[1] = -INFINITY;
    o.temperature = 1;
    tap_is_int(moe_sampler_draw(&o, 0, logits, 2, c, &id, &e), MOE_EFORMAT, "nothing left");
    o.top_p = 0;
    tap_is_int(moe_sampler_check(&o, &e), MOE_EUSAGE, "top_p 0");
    tap_is_str(e.text, "top_p: 0 is not in (0, 1]", "and its words");
    o.top_p = NAN;
    tap_is_int(moe_sampler_check(&o, &e), MOE_EUSAGE, "top_p NaN");
    o.top_p = 1;
    tap_is_int(moe_sampler_check(&o, &e), 0, "in order");
    o.repetition = 0;
    tap_is_int(moe_sampler_check(&o, &e), MOE_EUSAGE, "repetition 0");
    o.repetition = 1;
    o.presence = NAN;
    tap_is_int(moe_sampler_check(&o, &e), MOE_EUSAGE, "presence NaN");
    o.presence = 0;
    o.frequency = 101;
    tap_is_int(moe_sampler_check(&o, &e), MOE_EUSAGE, "frequency 101");
}

int
main(void)
{
    golden("tests/data/text/sampling.json");
    draws();
    return tap_done();
}
