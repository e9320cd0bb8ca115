/* SPDX-License-Identifier: Apache-2.0 */
/* RMSNorm: all lengths to 300 and a long one, in place too. */
#include <math.h>
#include <string.h>

#include "tests/kernel/checkkern.h"

/* The sum's roundings (n / 16 + 4, all of one sign), halved by the root, and six more. */
#define RMSNORM_EPS 0x1p-24

static size_t
length(size_t i)
{
    return i <= 300 ? i : 4099;
}

static void
against_double(void)
{
    ck_begin("rmsnorm_f32", "ref against double");
    for (size_t i = 1; i <= 301; i++) {
        size_t n = length(i);
        float *x = ck_buf(0, n * sizeof(*x)), *w = ck_buf(1, n * sizeof(*w));
        float *out = ck_buf(2, n * sizeof(*out)), eps = 1e-5f;
        double sum = 0, worst = 0;

        ck_f32(x, n, CK_RANDOM);
        ck_f32(w, n, CK_RANDOM);
        ck_ref()->rmsnorm_f32(out, x, w, n, eps);
        for (size_t k = 0; k < n; k++)
            sum += (double)x[k] * x[k];
        for (size_t k = 0; k < n; k++) {
            double want = x[k] / sqrt(sum / (double)n + (double)eps) * w[k];

            worst = fmax(worst, fabs(out[k] - want) / (fabs(want) + 1e-30));
        }
        ck_expect(worst <= RMSNORM_EPS * (double)(n / 32 + 8), "n %zu: %g", n, worst);
    }
    ck_end();
}

static void
tier(const struct moe_kernels *k)
{
    ck_begin("rmsnorm_f32", k->tier);
    for (int kind = 0; kind < CK_KINDS; kind++)
        for (size_t i = 1; i <= 301; i++) {
            size_t n = length(i);
            float *x = ck_buf(0, n * sizeof(*x)), *w = ck_buf(1, n * sizeof(*w));
            float *want = ck_buf(2, n * sizeof(*want)), *got = ck_buf(3, n * sizeof(*got));

            ck_f32(x, n, kind);
            ck_f32(w, n, kind);
            ck_ref()->rmsnorm_f32(want, x, w, n, 1e-6f);
            k->rmsnorm_f32(got, x, w, n, 1e-6f);
            ck_expect(ck_same_f32(got, want, n) && ck_intact(3), "n %zu, %s", n,
                ck_kind_name(kind));
            k->rmsnorm_f32(x, x, w, n, 1e-6f);
            ck_expect(ck_same_f32(x, want, n) && ck_intact(0), "n %zu, %s, in place", n,
                ck_kind_name(kind));
        }
    ck_end();
}

static void
run(void)
{
    const struct moe_kernels *k;

    against_double();
    for (size_t t = 0; (k = ck_tier(t)) != NULL; t++)
        tier(k);
}

const struct ck_check check_rmsnorm = { "rmsnorm", run, NULL };
