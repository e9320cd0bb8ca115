/* SPDX-License-Identifier: Apache-2.0 */
/* Error sums: the reference against a plain sum, the variants against the reference. */
#include <math.h>
#include <string.h>

#include "tests/kernel/checkkern.h"

/* Roundings of a sum of n doubles in any order. */
#define SUM_EPS 0x1p-52

static void
against_plain(void)
{
    ck_begin("err_f32", "ref against a plain sum");
    for (size_t n = 0; n <= 300; n++) {
        float *x = ck_buf(0, n * sizeof(*x)), *y = ck_buf(1, n * sizeof(*y));
        double square = 0, error = 0, max = 0, s[3] = { 1, 2, 0 };

        ck_f32(x, n, CK_RANDOM);
        ck_f32(y, n, CK_RANDOM);
        for (size_t i = 0; i < n; i++) {
            double d = (double)x[i] - (double)y[i];
            square += (double)x[i] * (double)x[i];
            error += d * d;
            max = fmax(max, fabs(d));
        }
        ck_ref()->err_f32(s, x, y, n);
        ck_expect(fabs(s[0] - 1 - square) <= SUM_EPS * (double)(n + 8) * (square + 1) &&
            fabs(s[1] - 2 - error) <= SUM_EPS * (double)(n + 8) * (error + 2) && s[2] == max,
            "n %zu", n);
    }
    ck_end();
}

static bool
same(const double *a, const double *b)
{
    for (int i = 0; i < 3; i++)
        if (memcmp(&a[i], &b[i], sizeof(*a)) != 0 && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

static void
tier(const struct moe_kernels *k)
{
    ck_begin("err_f32", k->tier);
    for (int kind = 0; kind < CK_KINDS; kind++)
        for (size_t n = 0; n <= 300; n++) {
            float *x = ck_buf(0, n * sizeof(*x)), *y = ck_buf(1, n * sizeof(*y));
            double want[3] = { 0.1, 0.2, n % 3 ? 0 : 0.75 }, got[3];

            ck_f32(x, n, (enum ck_kind)kind);
            ck_f32(y, n, (enum ck_kind)kind);
            memcpy(got, want, sizeof(got));
            ck_ref()->err_f32(want, x, y, n);
            k->err_f32(got, x, y, n);
            ck_expect(same(got, want), "n %zu, %s", n, ck_kind_name((enum ck_kind)kind));
        }
    ck_end();
}

static void
run(void)
{
    const struct moe_kernels *k;

    against_plain();
    for (size_t t = 0; (k = ck_tier(t)) != NULL; t++)
        tier(k);
}

const struct ck_check check_errsum = { "errsum", run, NULL };
