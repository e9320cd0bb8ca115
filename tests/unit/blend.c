/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roundings beside the processor's and single roundings worked out by halves,
 * norms and factors of PyTorch's clip_grad_norm_.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/random.h"
#include "common/formats/blend.h"
#include "tests/golden.h"
#include "tests/tap.h"

#define MAX 64

static float
bits(const json_t *hex)
{
    uint32_t u = (uint32_t)strtoul(json_string_value(hex), NULL, 16);
    float v;

    memcpy(&v, &u, sizeof(v));
    return v;
}

/* Values halfway between two BF16 or F16, and a hair beside: one rounding sees the hair. */
static void
halves(enum moe_dtype t, double one, double ulp)
{
    const double tiny = 0x1p-50;
    const double x[] = { one + ulp / 2, one + ulp / 2 + tiny, one + ulp / 2 - tiny,
        one + 1.5 * ulp, one + 1.5 * ulp + tiny, one + 1.5 * ulp - tiny, -(one + ulp / 2 + tiny) };
    const double want[] = { one, one + ulp, one, one + 2 * ulp, one + 2 * ulp, one + ulp,
        -(one + ulp) };
    double back[7];
    uint16_t q[7];
    bool same = moe_blend_store(t, x, 7, q) == 0 && moe_blend_load(t, q, 7, back) == 0;

    tap_ok(same && memcmp(back, want, sizeof(want)) == 0, "%s: one rounding", moe_dtype_name(t));
}

static void
types(void)
{
    double x[3] = { 1e300, NAN, -0.0 }, back[3];
    unsigned char raw[24];
    size_t i, differ = 0;

    for (i = 0; i < 10000; i++) {
        double v = ldexp(moe_random_uniform(3, i) - 0.5, (int)(i % 280) - 150);
        float f = (float)v;

        (void)moe_blend_store(MOE_F32, &v, 1, raw);
        differ += memcmp(raw, &f, sizeof(f)) != 0;
    }
    tap_is_int((long long)differ, 0, "F32 as the processor rounds");
    tap_is_int((long long)moe_blend_store(MOE_F64, x, 3, raw), 1, "F64: one is no number");
    tap_is_int((long long)moe_blend_load(MOE_F64, raw, 3, back), 1, "and is found again");
    tap_ok(back[0] == 1e300 && signbit(back[2]), "F64 as it is");
    tap_is_int((long long)moe_blend_store(MOE_F16, x, 3, raw), 2, "F16: one is too large");
    tap_ok(!moe_blend_takes(MOE_F8_E4M3) && !moe_blend_takes(MOE_I64) && moe_blend_takes(MOE_F16),
        "types that are taken");
}

/* Every case of the 2-norm: the norm in double, the factor and what it makes in float. */
static void
clip_case(const json_t *c)
{
    const char *name = json_string_value(json_object_get(c, "name"));
    const json_t *most = json_object_get(c, "max_norm"), *in = json_object_get(c, "in");
    double max = json_is_string(most) ? (double)INFINITY : json_number_value(most);
    double x[MAX], squares = 0, norm;
    size_t bad = 0, wrong = 0;
    json_t *t;
    size_t i;

    json_array_foreach(in, i, t) {
        for (size_t j = 0; j < json_array_size(t); j++) {
            x[j] = (double)bits(json_array_get(t, j));
            bad += !isfinite(x[j]);
        }
        squares += moe_blend_squares(x, json_array_size(t));
    }
    if (bad > 0)
        return;
    norm = sqrt(squares);
    tap_ok(fabs(norm - strtod(json_string_value(json_object_get(c, "norm_fp64")), NULL)) <=
        1e-15 * norm, "%s: norm", name);
    if (!json_is_true(json_object_get(c, "exact")))
        return;
    tap_ok((double)moe_blend_clip(norm, max) == (double)bits(json_object_get(c, "coef")),
        "%s: factor", name);
    json_array_foreach(in, i, t) {
        for (size_t j = 0; j < json_array_size(t); j++) {
            float got = bits(json_array_get(t, j)) * moe_blend_clip(norm, max);
            float want = bits(json_array_get(json_array_get(json_object_get(c, "out"), i), j));

            wrong += memcmp(&got, &want, sizeof(got)) != 0;
        }
    }
    tap_is_int((long long)wrong, 0, "%s: what it makes", name);
}

int
main(void)
{
    json_t *clip = golden_json("ckpt/clip.json"), *c;
    double x[40];
    size_t i;

    types();
    halves(MOE_BF16, 1, 0x1p-7);
    halves(MOE_F16, 1, 0x1p-10);
    json_array_foreach(json_object_get(clip, "cases"), i, c) {
        if (json_is_real(json_object_get(c, "norm_type")) &&
            json_number_value(json_object_get(c, "norm_type")) == 2 &&
            json_object_get(c, "in") != NULL)
            clip_case(c);
    }
    tap_ok(moe_blend_clip(1e200, 1) == 0.0f && moe_blend_clip(1e39, 1e38) > 0.09f,
        "norms that no float holds");
    for (i = 0; i < 40; i++)
        x[i] = (double)i;
    tap_ok(moe_blend_squares(x, 40) == 20540 && moe_blend_squares(x, 0) == 0, "squares");
    json_decref(clip);
    return tap_done();
}
