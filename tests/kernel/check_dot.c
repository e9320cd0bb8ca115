/* SPDX-License-Identifier: Apache-2.0 */
/* Dot product and axpy: all lengths to 300 and a long one. */
#include <math.h>
#include <string.h>

#include "tests/kernel/checkkern.h"

/* Roundings of a sum of n in 16 lanes: n / 16 steps and 4 of the tree, each half a unit. */
#define DOT_EPS 0x1p-24

static size_t
length(size_t i)
{
    return i <= 300 ? i : 4099;
}

static void
dot_double(void)
{
    ck_begin("dot_f32", "ref against double");
    for (size_t i = 0; i <= 301; i++) {
        size_t n = length(i);
        float *a = ck_buf(0, n * sizeof(*a)), *b = ck_buf(1, n * sizeof(*b));
        double want = 0, size = 0, bound;

        ck_f32(a, n, CK_RANDOM);
        ck_f32(b, n, CK_RANDOM);
        for (size_t k = 0; k < n; k++) {
            want += (double)a[k] * b[k];
            size += fabs((double)a[k] * b[k]);
        }
        bound = DOT_EPS * (double)(n / 16 + 6) * size;
        ck_expect(fabs(ck_ref()->dot_f32(a, b, n) - want) <= bound, "n %zu", n);
    }
    ck_end();
}

static void
dot_tier(const struct moe_kernels *k)
{
    ck_begin("dot_f32", k->tier);
    for (int kind = 0; kind < CK_KINDS; kind++)
        for (size_t i = 0; i <= 301; i++) {
            size_t n = length(i);
            float *a = ck_buf(0, n * sizeof(*a)), *b = ck_buf(1, n * sizeof(*b)), got, want;

            ck_f32(a, n, kind);
            ck_f32(b, n, kind == CK_SPECIAL ? CK_RANDOM : kind);
            want = ck_ref()->dot_f32(a, b, n);
            got = k->dot_f32(a, b, n);
            ck_expect(ck_same_f32(&got, &want, 1), "n %zu, %s", n, ck_kind_name(kind));
        }
    ck_end();
}

/* Products that vanish below zero leave -0 in all lanes; a lane without elements keeps it. */
static void
dot_minus_zero(const struct moe_kernels *k)
{
    ck_begin("dot_f32 of vanishing products", k->tier);
    for (size_t n = 16; n < 48; n++) {
        float a[48], b[48];

        for (size_t i = 0; i < n; i++) {
            a[i] = -0x1p-100f;
            b[i] = 0x1p-100f;
        }
        ck_expect(signbit(k->dot_f32(a, b, n)), "n %zu", n);
    }
    ck_end();
}

static void
axpy_tier(const struct moe_kernels *k)
{
    ck_begin("axpy_f32", k->tier);
    for (int kind = 0; kind < CK_KINDS; kind++)
        for (size_t i = 0; i <= 301; i++) {
            size_t n = length(i);
            float *x = ck_buf(0, n * sizeof(*x)), *want = ck_buf(1, n * sizeof(*want));
            float *got = ck_buf(2, n * sizeof(*got)), a = (float)i - 150;

            ck_f32(x, n, kind);
            ck_f32(want, n, kind);
            memcpy(got, want, n * sizeof(*got));
            ck_ref()->axpy_f32(want, x, a, n);
            k->axpy_f32(got, x, a, n);
            ck_expect(ck_same_f32(got, want, n) && ck_intact(2), "n %zu, %s", n,
                ck_kind_name(kind));
        }
    ck_end();
}

static void
run(void)
{
    const struct moe_kernels *k;

    dot_double();
    dot_minus_zero(ck_ref());
    for (size_t t = 0; (k = ck_tier(t)) != NULL; t++) {
        dot_tier(k);
        dot_minus_zero(k);
        axpy_tier(k);
    }
}

const struct ck_check check_dot = { "dot", run, NULL };
