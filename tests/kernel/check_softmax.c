/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels' exp over its whole range, and softmax at all lengths to 300. */
#include <math.h>
#include <string.h>

#include "kernels/exp.h"
#include "tests/kernel/checkkern.h"

#define EXP_ULP 1.0             /* units in the last place */
/*
 * Half a unit each: of x - max, which exp multiplies by its size; the steps of a
 * lane and of the tree; two of exp and the quotient in numerator and sum.
 */
#define SOFTMAX_EPS 0x1p-24
#define SOFTMAX_RANGE 20

static size_t
length(size_t i)
{
    return i <= 300 ? i : 4099;
}

static void
exp_against_double(void)
{
    ck_begin("exp", "ref against double");
    for (int i = -110 * 4096; i <= 95 * 4096; i += 7) {
        float x = (float)i / 4096, got = k_exp(x);
        double want = exp(x), unit = ldexp(1, -149);

        if (want > 0x1p-126)
            unit = ldexp(1, ilogb(want) - 23);
        if (want > (double)0x1.fffffep+127f)
            ck_expect(isinf(got), "exp(%g) overflows", x);
        else
            ck_expect(fabs(got - want) <= EXP_ULP * unit, "exp(%g) is %g", x, got);
    }
    ck_expect(k_exp(0) == 1 && k_exp(-0.0f) == 1, "exp(0)");
    ck_expect(k_exp(INFINITY) == INFINITY && k_exp(-INFINITY) == 0 && isnan(k_exp(NAN)),
        "exp of infinities and NaN");
    ck_end();
}

static void
against_double(void)
{
    ck_begin("softmax_f32", "ref against double");
    for (size_t i = 1; i <= 301; i++) {
        size_t n = length(i);
        float *x = ck_buf(0, n * sizeof(*x)), *y = ck_buf(1, n * sizeof(*y));
        double sum = 0, worst = 0;

        ck_f32(x, n, CK_RANDOM);
        for (size_t k = 0; k < n; k++)
            sum += exp(x[k] *= SOFTMAX_RANGE);
        memcpy(y, x, n * sizeof(*y));
        ck_ref()->softmax_f32(y, n);
        for (size_t k = 0; k < n; k++)
            worst = fmax(worst, fabs(y[k] * sum / exp(x[k]) - 1));
        ck_expect(worst <= SOFTMAX_EPS * (double)(n / 16 + 12 + 2 * SOFTMAX_RANGE), "n %zu: %g",
            n, worst);
    }
    ck_end();
}

static void
tier(const struct moe_kernels *k)
{
    ck_begin("softmax_f32", k->tier);
    for (int kind = 0; kind < CK_KINDS; kind++)
        for (size_t i = 1; i <= 301; i++) {
            size_t n = length(i);
            float *want = ck_buf(0, n * sizeof(*want)), *got = ck_buf(1, n * sizeof(*got));

            ck_f32(want, n, kind);
            for (size_t j = 0; j < n && kind != CK_EXTREME; j++)
                want[j] *= 60;
            memcpy(got, want, n * sizeof(*got));
            ck_ref()->softmax_f32(want, n);
            k->softmax_f32(got, n);
            ck_expect(ck_same_f32(got, want, n) && ck_intact(1), "n %zu, %s", n,
                ck_kind_name(kind));
        }
    ck_end();
}

static void
run(void)
{
    const struct moe_kernels *k;

    exp_against_double();
    against_double();
    for (size_t t = 0; (k = ck_tier(t)) != NULL; t++)
        tier(k);
}

const struct ck_check check_softmax = { "softmax", run, NULL };
