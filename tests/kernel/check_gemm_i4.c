/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packed INT4 products and the INT8 activations they take: all groups, both
 * types of scale, whole, short and single steps, several tokens. The packing
 * here is written from moe-packed(5), apart from the kernels and the library.
 */
#include <math.h>
#include <string.h>

#include "tests/kernel/checkkern.h"

/* gemm_i4: a rounding for each column of a group and for each group. */
#define I4_EPS 0x1p-24
/* gemm_i4q: exact sums; product of the scales, and one a group. */
#define I4Q_EPS 0x1p-24
/* quant_act_i8: half a step, and the roundings of the scale and its inverse. */
#define ACT_STEP (0.5 + 0x1p-14)

#define MOST_BLOCKS 5
#define MOST_COLS 2080

struct shape {
    size_t blocks, cols, group, n, ldo, ldx;
    int f16;
};

/* The codes and scales as a plain matrix. */
static int8_t q[MOST_BLOCKS * 16][MOST_COLS];
static uint16_t scale[MOST_BLOCKS * 16][MOST_COLS / 32];

static struct shape
shape_of(size_t i)
{
    static const size_t cols[] = { 32, 64, 96, 128, 160, 256, 288, 384, 512, 544, 640, 768, 2048,
        2080 };
    struct shape s = { .blocks = i * 2 % (MOST_BLOCKS + 1), .cols = cols[i % 14],
        .n = i * 5 % 12, .f16 = i / 14 % 2 };

    for (s.group = 128; s.cols % s.group != 0;)
        s.group /= 2;
    for (size_t j = i / 28; j > 0 && s.group > 32; j--)
        s.group /= 2;
    s.ldo = 16 * s.blocks + i % 3;
    s.ldx = s.cols + i % 5;
    return s;
}

#define SHAPES (14 * 2 * 3)

static size_t
span(size_t n, size_t ld, size_t last)
{
    return n == 0 ? 0 : (n - 1) * ld + last;
}

static size_t
pad64(size_t n)
{
    return (n + 63) / 64 * 64;
}

/* One step of a block at p: scales, then codes; returns what follows it. */
static uint8_t *
pack_step(uint8_t *p, size_t row, size_t col, size_t cols, size_t group)
{
    size_t groups = cols / group, bytes = pad64(groups * 32);

    memset(p, 0, bytes);
    for (size_t g = 0; g < groups; g++)
        for (size_t r = 0; r < 16; r++)
            memcpy(p + g * 32 + r * 2, &scale[row + r][col / group + g], 2);
    p += bytes;
    for (size_t k = col; k < col + cols; k += 8)
        for (size_t r = 0; r < 16; r++)
            for (size_t i = 0; i < 4; i++)
                *p++ = (uint8_t)((q[row + r][k + i] + 8) | (q[row + r][k + 4 + i] + 8) << 4);
    return p;
}

static size_t
packed_bytes(struct shape s)
{
    size_t bytes = 0;

    for (size_t k = 0; k < s.cols; k += 256) {
        size_t cols = s.cols - k < 256 ? s.cols - k : 256;

        bytes += pad64(cols / s.group * 32) + cols * 8;
    }
    return bytes * s.blocks;
}

/* Random codes (or the largest), scales of a kind, packed into slot 0. */
static const uint8_t *
weights(struct shape s, enum ck_kind kind)
{
    uint8_t *w = ck_buf(0, packed_bytes(s)), *p = w;

    for (size_t r = 0; r < s.blocks * 16; r++) {
        for (size_t k = 0; k < s.cols; k++)
            q[r][k] = (int8_t)(kind == CK_EQUAL ? 7 : (int)(ck_rand() % 16) - 8);
        if (s.f16)
            ck_f16(scale[r], s.cols / s.group, kind);
        else
            ck_bf16(scale[r], s.cols / s.group, kind);
    }
    for (size_t b = 0; b < s.blocks; b++)
        for (size_t k = 0; k < s.cols; k += 256)
            p = pack_step(p, 16 * b, k, s.cols - k < 256 ? s.cols - k : 256, s.group);
    return w;
}

static double
scale_value(uint16_t h, int f16)
{
    int mant = f16 ? 10 : 7, e = h >> mant & (f16 ? 31 : 255);
    double m = (h & ((1 << mant) - 1)) + (e > 0 ? 1 << mant : 0);

    m = ldexp(m, (e > 0 ? e : 1) - (f16 ? 15 : 127) - mant);
    return h >> 15 ? -m : m;
}

/* Whether got is row r times x (float activations, or codes and scales when xs is there). */
static bool
near(struct shape s, size_t r, const float *x, const int8_t *xq, const float *xs, float got)
{
    double want = 0, size = 0, steps;

    for (size_t k = 0; k < s.cols; k++) {
        double w = q[r][k] * scale_value(scale[r][k / s.group], s.f16);
        double p = w * (xs != NULL ? (double)xq[k] * xs[k / s.group] : (double)x[k]);

        want += p;
        size += fabs(p);
    }
    steps = (double)(s.cols / s.group + 2);
    if (xs == NULL)
        return fabs(got - want) <= I4_EPS * (steps + (double)s.group) * size;
    return fabs(got - want) <= I4Q_EPS * (steps + 1) * size;
}

/* Activations of a shape in slots 1 (float) and 4, 5, 6 (INT8, scales, sums), by the reference. */
struct act {
    float *x, *xs;
    int8_t *xq;
    int32_t *xsum;
};

static struct act
activations(struct shape s, enum ck_kind kind)
{
    size_t groups = s.n * (s.cols / s.group);
    struct act a;

    a.x = ck_buf(1, span(s.n, s.ldx, s.cols) * sizeof(*a.x));
    a.xq = ck_buf(4, s.n * s.cols);
    a.xs = ck_buf(5, groups * sizeof(*a.xs));
    a.xsum = ck_buf(6, groups * sizeof(*a.xsum));
    ck_f32(a.x, span(s.n, s.ldx, s.cols), kind);
    ck_ref()->quant_act_i8(a.xq, a.xs, a.xsum, a.x, s.ldx, s.cols, s.group, s.n);
    return a;
}

static void
against_double(bool quant)
{
    ck_begin(quant ? "gemm_i4q" : "gemm_i4", "ref against double");
    for (size_t i = 0; i < SHAPES; i++) {
        struct shape s = shape_of(i);
        const uint8_t *w = weights(s, CK_RANDOM);
        struct act a = activations(s, CK_RANDOM);
        float *out = ck_buf(2, span(s.n, s.ldo, 16 * s.blocks) * sizeof(*out));

        if (quant)
            ck_ref()->gemm_i4q(out, s.ldo, w, s.blocks, s.cols, s.group, s.f16, a.xq, a.xs,
                a.xsum, s.n);
        else
            ck_ref()->gemm_i4(out, s.ldo, w, s.blocks, s.cols, s.group, s.f16, a.x, s.ldx, s.n);
        for (size_t j = 0; j < s.n; j += 3)
            for (size_t r = 0; r < 16 * s.blocks; r++)
                ck_expect(near(s, r, a.x + j * s.ldx, a.xq + j * s.cols,
                        quant ? a.xs + j * (s.cols / s.group) : NULL, out[j * s.ldo + r]),
                    "row %zu of %zu x %zu, group %zu", r, 16 * s.blocks, s.cols, s.group);
    }
    ck_end();
}

static void
tier(const struct moe_kernels *k, bool quant)
{
    ck_begin(quant ? "gemm_i4q" : "gemm_i4", k->tier);
    for (int kind = 0; kind < CK_KINDS; kind++)
        for (size_t i = 0; i < SHAPES; i++) {
            struct shape s = shape_of(i);
            size_t no = span(s.n, s.ldo, 16 * s.blocks);
            const uint8_t *w = weights(s, kind);
            struct act a = activations(s, kind);
            float *want = ck_buf(2, no * sizeof(*want)), *got = ck_buf(3, no * sizeof(*got));

            if (quant) {
                ck_ref()->gemm_i4q(want, s.ldo, w, s.blocks, s.cols, s.group, s.f16, a.xq, a.xs,
                    a.xsum, s.n);
                k->gemm_i4q(got, s.ldo, w, s.blocks, s.cols, s.group, s.f16, a.xq, a.xs, a.xsum,
                    s.n);
            } else {
                ck_ref()->gemm_i4(want, s.ldo, w, s.blocks, s.cols, s.group, s.f16, a.x, s.ldx,
                    s.n);
                k->gemm_i4(got, s.ldo, w, s.blocks, s.cols, s.group, s.f16, a.x, s.ldx, s.n);
            }
            ck_expect(ck_same_f32(got, want, no) && ck_intact(3),
                "%zu blocks x %zu, group %zu, %zu tokens, %s", s.blocks, s.cols, s.group, s.n,
                ck_kind_name(kind));
        }
    ck_end();
}

static void
act_against_double(void)
{
    struct shape s = { .cols = 2048, .group = 64, .n = 3, .ldx = 2051 };
    struct act a = activations(s, CK_RANDOM);

    ck_begin("quant_act_i8", "ref against double");
    for (size_t j = 0; j < s.n; j++)
        for (size_t g = 0; g < s.cols / s.group; g++) {
            const float *x = a.x + j * s.ldx + g * s.group;
            const int8_t *xq = a.xq + j * s.cols + g * s.group;
            double step = a.xs[j * (s.cols / s.group) + g], max = 0;
            int sum = 0;

            for (size_t i = 0; i < s.group; i++) {
                max = fmax(max, fabs(x[i]));
                sum += xq[i];
                ck_expect(fabs(x[i] - xq[i] * step) <= ACT_STEP * step, "%g is %d * %g", x[i],
                    xq[i], step);
            }
            ck_expect(fabs(max / 127 - step) <= 0x1p-23 * step, "scale of %g", max);
            ck_expect(sum == a.xsum[j * (s.cols / s.group) + g], "sum");
        }
    ck_end();
}

static void
act_tier(const struct moe_kernels *k)
{
    ck_begin("quant_act_i8", k->tier);
    for (int kind = 0; kind < CK_KINDS; kind++)
        for (size_t i = 0; i < SHAPES; i++) {
            struct shape s = shape_of(i);
            size_t groups = s.n * (s.cols / s.group);
            struct act a = activations(s, kind);
            int8_t *xq = ck_buf(7, s.n * s.cols);
            float *xs = ck_buf(8, groups * sizeof(*xs));
            int32_t *xsum = ck_buf(9, groups * sizeof(*xsum));

            k->quant_act_i8(xq, xs, xsum, a.x, s.ldx, s.cols, s.group, s.n);
            ck_expect(memcmp(xq, a.xq, s.n * s.cols) == 0 && ck_same_f32(xs, a.xs, groups) &&
                    memcmp(xsum, a.xsum, groups * sizeof(*xsum)) == 0 && ck_intact(7) &&
                    ck_intact(8) && ck_intact(9),
                "%zu x %zu, group %zu, %s", s.n, s.cols, s.group, ck_kind_name(kind));
        }
    ck_end();
}

/* What cannot be scaled: nothing there, too small, no numbers. */
static void
act_edges(void)
{
    static const float lone[] = { 0, 0x1p-149f, 0x1p-126f, 1, 0x1.fffffep+127f, INFINITY, NAN };
    float x[32] = { 0 }, xs;
    int8_t xq[32];
    int32_t xsum;

    ck_begin("quant_act_i8", "edges");
    for (size_t i = 0; i < sizeof(lone) / sizeof(lone[0]); i++) {
        bool tiny = i < 3, bad = i > 4;

        x[5] = lone[i];
        ck_ref()->quant_act_i8(xq, &xs, &xsum, x, 32, 32, 32, 1);
        ck_expect(xq[5] == (tiny || bad ? 0 : 127) && xsum == xq[5] && xq[0] == 0, "%g", lone[i]);
        ck_expect(bad ? isnan(xs) : (xs == 0) == tiny, "%g has scale %g", lone[i], xs);
    }
    ck_end();
}

static void
run(void)
{
    const struct moe_kernels *k;

    act_against_double();
    act_edges();
    against_double(false);
    against_double(true);
    for (size_t t = 0; (k = ck_tier(t)) != NULL; t++) {
        act_tier(k);
        tier(k, false);
        tier(k, true);
    }
}

const struct ck_check check_gemm_i4 = { "gemm_i4", run, NULL };
