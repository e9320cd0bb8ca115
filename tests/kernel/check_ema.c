/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of an exponential average: all lengths, all kinds of numbers, beside long double. */
#include <math.h>
#include <string.h>

#include "tests/kernel/checkkern.h"

static const double weights[] = { 0, 1e-5, 1e-4, 0.01, 0.5, 1 };

static size_t
unfit(const float *x, size_t n)
{
    size_t bad = 0;

    for (size_t i = 0; i < n; i++)
        bad += !isfinite(x[i]);
    return bad;
}

static void
tier(const struct moe_kernels *k)
{
    ck_begin("ema_f32", k->tier);
    for (size_t n = 0; n <= 67; n++)
        for (int kind = 0; kind < CK_KINDS; kind++)
            for (size_t w = 0; w < sizeof(weights) / sizeof(weights[0]); w++) {
                size_t len = n * sizeof(float), bad;
                float *hi = ck_buf(0, len), *lo = ck_buf(1, len), *x = ck_buf(2, len);
                float *hi2 = ck_buf(3, len), *lo2 = ck_buf(4, len);

                ck_f32(hi, n, kind == CK_SPECIAL ? CK_RANDOM : (enum ck_kind)kind);
                ck_f32(lo, n, CK_RANDOM);
                for (size_t i = 0; i < n; i++)
                    lo[i] *= 0x1p-25f * hi[i];
                ck_f32(x, n, (enum ck_kind)kind);
                memcpy(hi2, hi, len);
                memcpy(lo2, lo, len);
                bad = k->ema_f32(hi, lo, x, weights[w], n);
                ck_expect(bad == unfit(x, n), "n %zu: %zu unfit", n, bad);
                (void)ck_ref()->ema_f32(hi2, lo2, x, weights[w], n);
                ck_expect(ck_same_f32(hi, hi2, n) && ck_same_f32(lo, lo2, n) && ck_intact(0) &&
                    ck_intact(1), "n %zu, %s, w %g", n, ck_kind_name((enum ck_kind)kind),
                    weights[w]);
            }
    ck_end();
}

/* The reference beside the formula in long double. */
static void
formula(void)
{
    enum { N = 64 };
    float hi[N], lo[N] = { 0 }, x[N];
    long double e[N];

    ck_begin("ema_f32 beside long double", "ref");
    ck_f32(hi, N, CK_RANDOM);
    for (size_t i = 0; i < N; i++)
        e[i] = hi[i];
    for (int t = 0; t < 1000; t++) {
        ck_f32(x, N, CK_RANDOM);
        (void)ck_ref()->ema_f32(hi, lo, x, 0.001, N);
        for (size_t i = 0; i < N; i++)
            e[i] += 0.001L * ((long double)x[i] - e[i]);
    }
    for (size_t i = 0; i < N; i++)
        ck_expect(fabsl((long double)hi[i] + lo[i] - e[i]) < 1e-12L, "element %zu", i);
    ck_end();
}

static void
run(void)
{
    const struct moe_kernels *k;

    formula();
    tier(ck_ref());
    for (size_t t = 0; (k = ck_tier(t)) != NULL; t++)
        tier(k);
}

const struct ck_check check_ema = { "ema", run, NULL };
