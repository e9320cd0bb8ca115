/* SPDX-License-Identifier: Apache-2.0 */
/* Weighted sums of rows: all widths to 70, few and many rows and sums, odd strides. */
#include <math.h>
#include <string.h>

#include "tests/kernel/checkkern.h"

static void
by_axpy(void)
{
    ck_begin("wsum_f32", "ref against axpy");
    for (size_t dim = 0; dim <= 40; dim++) {
        float v[7 * 40], p[7], want[40], got[40];

        ck_f32(v, 7 * dim, CK_RANDOM);
        ck_f32(p, 7, CK_RANDOM);
        ck_f32(want, dim, CK_RANDOM);
        memcpy(got, want, sizeof(got));
        for (size_t t = 0; t < 7; t++)
            ck_ref()->axpy_f32(want, v + t * dim, p[t], dim);
        ck_ref()->wsum_f32(got, dim, v, p, 7, 7, dim, 1);
        ck_expect(ck_same_f32(got, want, dim), "dim %zu", dim);
    }
    ck_end();
}

static void
case_of(const struct moe_kernels *k, int kind, size_t dim, size_t rows, size_t n)
{
    size_t ldo = dim + n % 3, ldp = rows + n % 2;
    size_t out = n == 0 ? 0 : (n - 1) * ldo + dim, in = n == 0 ? 0 : (n - 1) * ldp + rows;
    float *v = ck_buf(0, rows * dim * sizeof(*v)), *p = ck_buf(1, in * sizeof(*p));
    float *want = ck_buf(2, out * sizeof(*want)), *got = ck_buf(3, out * sizeof(*got));

    ck_f32(v, rows * dim, kind);
    ck_f32(p, in, kind == CK_SPECIAL ? CK_RANDOM : kind);
    ck_f32(want, out, CK_RANDOM);
    memcpy(got, want, out * sizeof(*got));
    ck_ref()->wsum_f32(want, ldo, v, p, ldp, rows, dim, n);
    k->wsum_f32(got, ldo, v, p, ldp, rows, dim, n);
    ck_expect(ck_same_f32(got, want, out) && ck_intact(3), "dim %zu, %zu rows, %zu sums, %s", dim,
        rows, n, ck_kind_name(kind));
}

static void
tier(const struct moe_kernels *k)
{
    ck_begin("wsum_f32", k->tier);
    for (int kind = 0; kind < CK_KINDS; kind++) {
        for (size_t dim = 0; dim <= 70; dim++)
            for (size_t n = 0; n <= 9; n += n < 5 ? 1 : 4)
                case_of(k, kind, dim, (dim + 3 * n) % 37, n);
        case_of(k, kind, 128, 32, 16);
    }
    ck_end();
}

static void
run(void)
{
    const struct moe_kernels *k;

    by_axpy();
    for (size_t t = 0; (k = ck_tier(t)) != NULL; t++)
        tier(k);
}

const struct ck_check check_wsum = { "wsum", run, NULL };
