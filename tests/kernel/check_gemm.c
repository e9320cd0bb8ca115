/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Row-major matrix products: every number of columns to 300 with changing
 * numbers of rows and tokens, wider strides, and a shape of several strips.
 */
#include <math.h>

#include "tests/kernel/checkkern.h"

/* Half a unit for each of the n / 16 steps of a lane and the 4 of the tree. */
#define GEMM_EPS 0x1p-24

enum type { F32, BF16, F16, TYPES };

static const char *const names[TYPES] = { "gemm_f32", "gemm_bf16", "gemm_f16" };

struct shape {
    size_t rows, cols, n, ldo, ldx;
};

static size_t
width(enum type t)
{
    return t == F32 ? sizeof(float) : sizeof(uint16_t);
}

/* All combinations of rows and tokens come round as the columns grow. */
static struct shape
shape_of(size_t i)
{
    static const struct shape large[] = { { 133, 700, 7, 140, 701 }, { 40, 2048, 13, 40, 2048 },
        { 3, 9000, 2, 5, 9000 } };
    struct shape s = { .rows = i * 7 % 13, .cols = i % 301, .n = i * 3 % 11 };

    if (i >= 602)
        return large[i - 602];
    s.ldo = s.rows + i % 3;
    s.ldx = s.cols + i % 5;
    return s;
}

#define SHAPES 605

static void *
weights(enum type t, struct shape s, enum ck_kind kind)
{
    void *w = ck_buf(0, s.rows * s.cols * width(t));

    if (t == F32)
        ck_f32(w, s.rows * s.cols, kind);
    else if (t == BF16)
        ck_bf16(w, s.rows * s.cols, kind);
    else
        ck_f16(w, s.rows * s.cols, kind);
    return w;
}

static size_t
span(size_t n, size_t ld, size_t last)
{
    return n == 0 ? 0 : (n - 1) * ld + last;
}

static void
call(const struct moe_kernels *k, enum type t, float *out, const void *w, const float *x,
    struct shape s)
{
    if (t == F32)
        k->gemm_f32(out, s.ldo, w, x, s.ldx, s.rows, s.cols, s.n);
    else if (t == BF16)
        k->gemm_bf16(out, s.ldo, w, x, s.ldx, s.rows, s.cols, s.n);
    else
        k->gemm_f16(out, s.ldo, w, x, s.ldx, s.rows, s.cols, s.n);
}

/* Weight i in double, decoded without the kernels. */
static double
weight(enum type t, const void *w, size_t i)
{
    uint16_t h = t == F32 ? 0 : ((const uint16_t *)w)[i];
    unsigned mant = t == BF16 ? 7 : 10, e = h >> mant & (t == BF16 ? 255 : 31);
    double m = (h & ((1u << mant) - 1)) + (e > 0 ? 1 << mant : 0);

    if (t == F32)
        return ((const float *)w)[i];
    m = ldexp(m, (int)(e > 0 ? e : 1) - (t == BF16 ? 127 : 15) - (int)mant);
    return h >> 15 ? -m : m;
}

static bool
near(enum type t, const void *w, const float *x, size_t cols, size_t r, float got)
{
    double want = 0, size = 0;

    for (size_t k = 0; k < cols; k++) {
        double p = weight(t, w, r * cols + k) * x[k];

        want += p;
        size += fabs(p);
    }
    return fabs(got - want) <= GEMM_EPS * (double)(cols / 16 + 6) * size;
}

static void
against_double(enum type t)
{
    ck_begin(names[t], "ref against double");
    for (size_t i = 0; i < SHAPES; i += i < 602 ? 5 : 1) {
        struct shape s = shape_of(i);
        const void *w = weights(t, s, CK_RANDOM);
        float *x = ck_buf(1, span(s.n, s.ldx, s.cols) * sizeof(*x));
        float *out = ck_buf(2, span(s.n, s.ldo, s.rows) * sizeof(*out));

        ck_f32(x, span(s.n, s.ldx, s.cols), CK_RANDOM);
        call(ck_ref(), t, out, w, x, s);
        for (size_t j = 0; j < s.n; j++)
            for (size_t r = 0; r < s.rows; r++)
                ck_expect(near(t, w, x + j * s.ldx, s.cols, r, out[j * s.ldo + r]),
                    "row %zu of %zu, %zu columns", r, s.rows, s.cols);
    }
    ck_end();
}

static void
tier(enum type t, const struct moe_kernels *k)
{
    ck_begin(names[t], k->tier);
    for (int kind = 0; kind < CK_KINDS; kind++)
        for (size_t i = 0; i < SHAPES; i++) {
            struct shape s = shape_of(i);
            size_t nx = span(s.n, s.ldx, s.cols), no = span(s.n, s.ldo, s.rows);
            const void *w = weights(t, s, kind);
            float *x = ck_buf(1, nx * sizeof(*x)), *want = ck_buf(2, no * sizeof(*want));
            float *got = ck_buf(3, no * sizeof(*got));

            ck_f32(x, nx, kind);
            call(ck_ref(), t, want, w, x, s);
            call(k, t, got, w, x, s);
            ck_expect(ck_same_f32(got, want, no) && ck_intact(3),
                "%zu x %zu, %zu tokens, strides %zu %zu, %s", s.rows, s.cols, s.n, s.ldo, s.ldx,
                ck_kind_name(kind));
        }
    ck_end();
}

static void
run(void)
{
    const struct moe_kernels *k;

    for (int t = 0; t < TYPES; t++) {
        against_double(t);
        for (size_t i = 0; (k = ck_tier(i)) != NULL; i++)
            tier(t, k);
    }
}

const struct ck_check check_gemm = { "gemm", run, NULL };
