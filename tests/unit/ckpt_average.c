/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Averages of three sequences of 20,000 models in BF16 beside those of 80-bit
 * arithmetic, by every tier, with every decay and bias.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-ckpt/ckpt_average.c"
#include "kernels/kernels.h"
#include "tests/golden.h"
#include "tests/tap.h"

#define N 32
#define STEPS 20000
#define GOLDEN 0x9E3779B97F4A7C15u
#define NEAR 1e-7       /* beside the larger of the average and the largest input */

/* The rule of the inputs: a hash of name, seed 1 and index, in [-1, 1). */
static float
unit(const char *name, uint64_t i)
{
    uint64_t z = 0xCBF29CE484222325u;

    for (; *name != '\0'; name++)
        z = (z ^ (unsigned char)*name) * 0x100000001B3u;
    z += GOLDEN + (i + 1) * GOLDEN;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (float)((z ^ z >> 31) >> 40) * 0x1p-23f - 1.0f;
}

/* All models of a sequence, [STEPS + 1][N]. */
static void
sequence(const char *kind, uint16_t *q)
{
    char name[32];
    float m[N];

    (void)snprintf(name, sizeof(name), "ema.%s", kind);
    for (size_t j = 0; j < N; j++)
        q[j] = moe_dtype_f32_bf16(m[j] = 0.02f * unit("ema.init", j));
    for (size_t t = 1; t <= STEPS; t++)
        for (size_t j = 0; j < N; j++) {
            float u = unit(name, (t - 1) * N + j);

            if (strcmp(kind, "walk") == 0)
                m[j] += 2e-6f * u;
            else if (strcmp(kind, "jump") == 0)
                m[j] = 0.02f * u;
            q[t * N + j] = strcmp(kind, "flat") == 0 ? q[j] : moe_dtype_f32_bf16(m[j]);
        }
}

/* The largest error of one average at one step. */
static double
error(const json_t *want, const float *hi, const float *lo, double by, const float *largest)
{
    double worst = 0;

    for (size_t j = 0; j < N; j++) {
        double w = strtod(json_string_value(json_array_get(want, j)), NULL);
        double got = ((double)hi[j] + (double)lo[j]) / by;
        double beside = fmax(fabs(w), (double)largest[j]);

        worst = fmax(worst, fabs(got - w) / beside);
    }
    return worst;
}

static double
run(const struct moe_kernels *k, const uint16_t *q, const json_t *results, double decay,
    enum ckpt_average_bias bias, size_t *compared)
{
    static const char *const keys[] = { "plain", "corrected", "warmup" };
    struct ckpt_average a = { decay, bias, -1 };
    float hi[N] = { 0 }, lo[N] = { 0 }, x[N], largest[N] = { 0 };
    double worst = 0;

    for (size_t t = bias == CKPT_AVERAGE_ZERO ? 1 : 0; t <= STEPS; t++) {
        json_t *r;
        size_t i;

        k->bf16_f32(x, q + t * N, N);
        (void)k->ema_f32(hi, lo, x, ckpt_average_step(&a), N);
        for (size_t j = 0; j < N; j++)
            largest[j] = fmaxf(largest[j], fabsf(x[j]));
        if (t != 1 && t != 10 && t != 1000 && t != STEPS)
            continue;
        json_array_foreach(results, i, r) {
            if (json_number_value(json_object_get(r, "decay")) != decay ||
                (size_t)json_integer_value(json_object_get(r, "step")) != t)
                continue;
            worst = fmax(worst, error(json_object_get(r, keys[bias]), hi, lo,
                ckpt_average_divisor(&a), largest));
            ++*compared;
        }
    }
    return worst;
}

static void
check(const struct moe_kernels *k, const json_t *golden)
{
    static const double decays[] = { 0.99, 0.999, 0.9999, 0.99999 };
    static uint16_t q[(STEPS + 1) * N];
    const char *kind;
    json_t *s;

    json_object_foreach(json_object_get(golden, "sequences"), kind, s) {
        size_t compared = 0;
        double worst = 0;

        sequence(kind, q);
        tap_is_str(golden_sha256(q, sizeof(q)), json_string_value(json_object_get(s,
            "bf16_sha256")), "%s: the inputs", kind);
        for (size_t d = 0; d < 4; d++)
            for (int b = 0; b < 3; b++)
                worst = fmax(worst, run(k, q, json_object_get(s, "results"), decays[d],
                    (enum ckpt_average_bias)b, &compared));
        tap_ok(worst <= NEAR && compared == 48, "%s, %s: %zu averages, error %.2g", kind, k->tier,
            compared, worst);
    }
}

int
main(void)
{
    static const char *const tiers[] = { "ref", "avx2", "avx512" };
    json_t *golden = golden_json("ckpt/ema.json");

    for (size_t t = 0; t < 3; t++)
        if (moe_kernels_tier(tiers[t]) != NULL)
            check(moe_kernels_tier(tiers[t]), golden);
    json_decref(golden);
    return tap_done();
}
