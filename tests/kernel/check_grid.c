/* SPDX-License-Identifier: Apache-2.0 */
/* Grids: the reference against plain C in double, the variants against the reference. */
#include <math.h>
#include <string.h>

#include "tests/kernel/checkkern.h"

#define MOST 150

static const double fp4[8] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };

/* The nearest of the eight, of two the one with the even index. */
static int
nearest(double a)
{
    int best = 0;

    for (int i = 1; i < 8; i++) {
        double d = fabs(a - fp4[i]), b = fabs(a - fp4[best]);
        if (d < b || (d == b && i % 2 == 0))
            best = i;
    }
    return best;
}

static void
against_plain(void)
{
    ck_begin("grids", "ref against plain C");
    for (size_t n = 1; n <= MOST; n++) {
        float *x = ck_buf(0, n * sizeof(*x)), scale = 0.125f * (float)(1 + n % 5), mm[2];
        int8_t *q = ck_buf(1, n);
        uint8_t *f = ck_buf(2, n);
        double low = 0, high = 0, err = 0, err4 = 0;
        bool ints = true, floats = true;

        ck_f32(x, n, CK_RANDOM);
        x[n / 2] = 2.5f * scale;        /* a tie */
        ck_ref()->codes_int(q, x, n, scale, 1, -8, 7);
        ck_ref()->codes_e2m1(f, x, n, scale);
        for (size_t i = 0; i < n; i++) {
            float y = x[i] / scale;
            double c = fmin(fmax(nearbyint((double)(y + 1)), -8), 7);
            double e = (double)x[i] - fmin(fmax(nearbyint((double)y), -8), 7) * (double)scale;

            ints = ints && (double)q[i] == c;
            floats = floats && f[i] == (nearest(fabs((double)y)) | (y < 0 ? 8 : 0));
            low = fmin(low, (double)x[i]);
            high = fmax(high, (double)x[i]);
            err += e * e;
            e = fabs((double)x[i]) - fp4[nearest(fabs((double)y))] * (double)scale;
            err4 += e * e;
        }
        ck_expect(ints, "whole numbers, n %zu", n);
        ck_expect(floats, "E2M1, n %zu", n);
        ck_expect(ck_ref()->range_f32(mm, x, n) == 0 && (double)mm[0] == low &&
            (double)mm[1] == high, "range, n %zu", n);
        ck_expect(fabs((double)ck_ref()->err_int(x, NULL, n, scale, -8, 7) - err) <=
            1e-5 * err + 1e-9, "error of whole numbers, n %zu", n);
        ck_expect(fabs((double)ck_ref()->err_e2m1(x, NULL, n, scale) - err4) <=
            1e-5 * err4 + 1e-9, "error of E2M1, n %zu", n);
        x[n - 1] = n % 2 == 0 ? NAN : -INFINITY;
        ck_expect(ck_ref()->range_f32(mm, x, n) == 1, "a value that is none, n %zu", n);
    }
    ck_end();
}

static void
tier(const struct moe_kernels *k)
{
    ck_begin("grids", k->tier);
    for (size_t n = 0; n <= MOST; n++) {
        float *x = ck_buf(0, n * sizeof(*x)), *h = ck_buf(1, n * sizeof(*h));
        float scale = (n % 3 == 0 ? -1 : 1) * 0.03f * (float)(1 + n % 7), a[2], b[2];
        int8_t *q = ck_buf(2, n), want[MOST];

        ck_f32(x, n, CK_RANDOM);
        ck_f32(h, n, CK_RANDOM);
        ck_ref()->codes_int(want, x, n, scale, -3, -128, 127);
        k->codes_int(q, x, n, scale, -3, -128, 127);
        ck_expect(memcmp(q, want, n) == 0 && ck_intact(2), "whole numbers, n %zu", n);
        ck_ref()->codes_e2m1((uint8_t *)want, x, n, scale);
        k->codes_e2m1((uint8_t *)q, x, n, scale);
        ck_expect(memcmp(q, want, n) == 0 && ck_intact(2), "E2M1, n %zu", n);
        for (int w = 0; w < 2; w++) {
            const float *hh = w == 0 ? NULL : h;

            a[0] = ck_ref()->err_int(x, hh, n, scale, -8, 7);
            b[0] = k->err_int(x, hh, n, scale, -8, 7);
            a[1] = ck_ref()->err_e2m1(x, hh, n, scale);
            b[1] = k->err_e2m1(x, hh, n, scale);
            ck_expect(ck_same_f32(a, b, 2), "errors, n %zu, weights %d", n, w);
        }
        (void)ck_ref()->range_f32(a, x, n);
        ck_expect(k->range_f32(b, x, n) == 0 && ck_same_f32(a, b, 2), "range, n %zu", n);
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

const struct ck_check check_grid = { "grid", run, NULL };
