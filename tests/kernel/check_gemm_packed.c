/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packed products and the INT8 activations they take: every kind of codes
 * with and without zero points and a head, all groups, all types of scale, whole,
 * short and single steps, several tokens. The packing here is written from
 * moe-packed(5), apart from the kernels and the library.
 */
#include <math.h>
#include <string.h>

#include "tests/kernel/checkkern.h"

/* gemm_packed: a rounding for each column of a group and for each group. */
#define F32_EPS 0x1p-24
/* gemm_packedq: exact sums; product of the scales, and one a group. */
#define INT8_EPS 0x1p-24
/* quant_act_i8: half a step, and the roundings of the scale and its inverse. */
#define ACT_STEP (0.5 + 0x1p-14)

#define MOST_BLOCKS 5
#define MOST_COLS 2080

struct shape {
    size_t blocks, n, ldo, ldx;
    struct moe_blocks f;
};

/* Codes as stored, scales and zero points as a plain matrix. */
static uint8_t code[MOST_BLOCKS * 16][MOST_COLS];
static uint8_t zero[MOST_BLOCKS * 16][MOST_COLS / 32];
static uint16_t scale[MOST_BLOCKS * 16][MOST_COLS / 32];
static float scale32[MOST_BLOCKS * 16][MOST_COLS / 32];

static const struct { int codes, zeros; } kinds[] = {
    { MOE_CODES_I4, 0 }, { MOE_CODES_I4, 1 }, { MOE_CODES_I8, 0 }, { MOE_CODES_I8, 1 },
    { MOE_CODES_E2M1, 0 }, { MOE_CODES_E4M3, 0 },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct shape
shape_of(size_t kind, size_t i)
{
    static const size_t cols[] = { 32, 64, 96, 128, 160, 256, 288, 384, 512, 544, 640, 768, 2048,
        2080 };
    struct shape s = { .blocks = i * 2 % (MOST_BLOCKS + 1), .n = i * 5 % 12,
        .f = { .codes = kinds[kind].codes, .zeros = kinds[kind].zeros, .cols = cols[i % 14],
            .scale = (int)(i / 14 % 3), .head = i % 4 == 1 ? 64 : 0 } };

    for (s.f.group = 128; s.f.cols % s.f.group != 0;)
        s.f.group /= 2;
    for (size_t j = i / 28; j > 0 && s.f.group > 32; j--)
        s.f.group /= 2;
    s.ldo = 16 * s.blocks + i % 3;
    s.ldx = s.f.cols + i % 5;
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

static bool
is_nibbles(const struct moe_blocks *f)
{
    return f->codes == MOE_CODES_I4 || f->codes == MOE_CODES_E2M1;
}

/* Scales and zero points of a step. */
static size_t
front(const struct moe_blocks *f, size_t groups)
{
    return pad64(groups * 16 * ((f->scale == MOE_SCALE_F32 ? 4u : 2u) + (f->zeros ? 1u : 0u)));
}

/* The codes of a step's columns, unit by unit. */
static uint8_t *
pack_codes(uint8_t *p, const struct moe_blocks *f, size_t row, size_t col, size_t cols)
{
    size_t unit = is_nibbles(f) ? 8 : 4;

    for (size_t k = col; k < col + cols; k += unit, p += 64)
        for (size_t r = 0; r < 16; r++)
            for (size_t i = 0; i < 4; i++) {
                const uint8_t *c = &code[row + r][k];

                if (f->codes == MOE_CODES_E4M3)
                    p[16 * i + r] = c[i];
                else
                    p[4 * r + i] = is_nibbles(f) ? (uint8_t)(c[i] | c[i + 4] << 4) : c[i];
            }
    return p;
}

/* One step of a block at p; returns what follows it. */
static uint8_t *
pack_step(uint8_t *p, const struct moe_blocks *f, size_t row, size_t col, size_t cols)
{
    size_t groups = cols / f->group, each = f->scale == MOE_SCALE_F32 ? 4 : 2;

    memset(p, 0, front(f, groups));
    for (size_t g = 0; g < groups; g++)
        for (size_t r = 0; r < 16; r++) {
            size_t at = col / f->group + g;

            memcpy(p + (g * 16 + r) * each, each == 4 ? (const void *)&scale32[row + r][at] :
                (const void *)&scale[row + r][at], each);
            if (f->zeros)
                p[groups * 16 * each + g * 16 + r] = zero[row + r][at];
        }
    return pack_codes(p + front(f, groups), f, row, col, cols);
}

static size_t
packed_bytes(const struct shape *s)
{
    size_t bytes = s->f.head;

    for (size_t k = 0; k < s->f.cols; k += 256) {
        size_t cols = s->f.cols - k < 256 ? s->f.cols - k : 256;

        bytes += front(&s->f, cols / s->f.group) + cols * (is_nibbles(&s->f) ? 8 : 16);
    }
    return bytes * s->blocks;
}

/* A code of a kind: the largest of them, or any but NaN. */
static uint8_t
any_code(const struct moe_blocks *f, enum ck_kind kind)
{
    uint8_t c = (uint8_t)(is_nibbles(f) ? ck_rand() % 16 : ck_rand() % 256);

    if (kind == CK_EQUAL)
        c = f->codes == MOE_CODES_I4 ? 15 : f->codes == MOE_CODES_E2M1 ? 7 :
            f->codes == MOE_CODES_I8 ? 0 : 0x7e;
    return f->codes == MOE_CODES_E4M3 && (c & 0x7f) == 0x7f ? 0x40 : c;
}

/* Random codes (or the largest), scales of a kind, packed into slot 0. */
static const uint8_t *
weights(const struct shape *s, enum ck_kind kind)
{
    uint8_t *w = ck_buf(0, packed_bytes(s)), *p = w;
    const struct moe_blocks *f = &s->f;

    for (size_t r = 0; r < s->blocks * 16; r++) {
        for (size_t k = 0; k < f->cols; k++)
            code[r][k] = any_code(f, kind);
        for (size_t g = 0; g < f->cols / f->group; g++)
            zero[r][g] = (uint8_t)(kind == CK_EQUAL ? (is_nibbles(f) ? 0 : 255) :
                ck_rand() % (is_nibbles(f) ? 16 : 256));
        if (f->scale == MOE_SCALE_F32)
            ck_f32(scale32[r], f->cols / f->group, kind);
        else if (f->scale == MOE_SCALE_F16)
            ck_f16(scale[r], f->cols / f->group, kind);
        else
            ck_bf16(scale[r], f->cols / f->group, kind);
    }
    for (size_t b = 0; b < s->blocks; b++) {
        p += f->head;
        for (size_t k = 0; k < f->cols; k += 256)
            p = pack_step(p, f, 16 * b, k, f->cols - k < 256 ? f->cols - k : 256);
    }
    return w;
}

static double
scale_value(const struct moe_blocks *f, size_t r, size_t g)
{
    bool f16 = f->scale == MOE_SCALE_F16;
    uint16_t h = scale[r][g];
    int mant = f16 ? 10 : 7, e = h >> mant & (f16 ? 31 : 255);
    double m = (h & ((1 << mant) - 1)) + (e > 0 ? 1 << mant : 0);

    if (f->scale == MOE_SCALE_F32)
        return (double)scale32[r][g];
    m = ldexp(m, (e > 0 ? e : 1) - (f16 ? 15 : 127) - mant);
    return h >> 15 ? -m : m;
}

/* What a code stands for. */
static double
code_value(const struct moe_blocks *f, size_t r, size_t k)
{
    static const double e2m1[8] = { 0, 1, 2, 3, 4, 6, 8, 12 };
    int c = code[r][k], e = c >> 3 & 15, less = f->codes == MOE_CODES_I4 ? 8 : 128;
    double m;

    if (f->codes == MOE_CODES_E2M1)
        return c < 8 ? e2m1[c] : -e2m1[c - 8];
    if (f->codes == MOE_CODES_E4M3) {
        m = ldexp((c & 7) + (e > 0 ? 8 : 0), (e > 0 ? e : 1) - 7 - 3);
        return c >> 7 ? -m : m;
    }
    return c - (f->zeros ? zero[r][k / f->group] : less);
}

/* Whether got is row r times x (float activations, or codes and scales when xs is there). */
static bool
near(const struct shape *s, size_t r, const float *x, const int8_t *xq, const float *xs, float got)
{
    double want = 0, size = 0, steps;

    for (size_t k = 0; k < s->f.cols; k++) {
        double w = code_value(&s->f, r, k) * scale_value(&s->f, r, k / s->f.group);
        double p = w * (xs != NULL ? (double)xq[k] * xs[k / s->f.group] : (double)x[k]);

        want += p;
        size += fabs(p);
    }
    steps = (double)(s->f.cols / s->f.group + 2);
    if (xs == NULL)
        return fabs(got - want) <= F32_EPS * (steps + (double)s->f.group) * size;
    return fabs(got - want) <= INT8_EPS * (steps + 1) * size;
}

/* Activations of a shape in slots 1 (float) and 4, 5, 6 (INT8, scales, sums), by the reference. */
struct act {
    float *x, *xs;
    int8_t *xq;
    int32_t *xsum;
};

static struct act
activations(const struct shape *s, enum ck_kind kind)
{
    size_t groups = s->n * (s->f.cols / s->f.group);
    struct act a;

    a.x = ck_buf(1, span(s->n, s->ldx, s->f.cols) * sizeof(*a.x));
    a.xq = ck_buf(4, s->n * s->f.cols);
    a.xs = ck_buf(5, groups * sizeof(*a.xs));
    a.xsum = ck_buf(6, groups * sizeof(*a.xsum));
    ck_f32(a.x, span(s->n, s->ldx, s->f.cols), kind);
    ck_ref()->quant_act_i8(a.xq, a.xs, a.xsum, a.x, s->ldx, s->f.cols, s->f.group, s->n);
    return a;
}

static bool
skips(bool quant, size_t kind)
{
    return quant && kinds[kind].codes == MOE_CODES_E4M3;
}

static void
against_double(bool quant, size_t kind)
{
    for (size_t i = 0; i < SHAPES; i++) {
        struct shape s = shape_of(kind, i);
        const uint8_t *w = weights(&s, CK_RANDOM);
        struct act a = activations(&s, CK_RANDOM);
        float *out = ck_buf(2, span(s.n, s.ldo, 16 * s.blocks) * sizeof(*out));

        if (quant)
            ck_ref()->gemm_packedq(out, s.ldo, w, s.blocks, &s.f, a.xq, a.xs, a.xsum, s.n);
        else
            ck_ref()->gemm_packed(out, s.ldo, w, s.blocks, &s.f, a.x, s.ldx, s.n);
        for (size_t j = 0; j < s.n; j += 5)
            for (size_t r = 0; r < 16 * s.blocks; r += 1 + i % 3)
                ck_expect(near(&s, r, a.x + j * s.ldx, a.xq + j * s.f.cols,
                        quant ? a.xs + j * (s.f.cols / s.f.group) : NULL, out[j * s.ldo + r]),
                    "row %zu of %zu x %zu, group %zu, kind %zu", r, 16 * s.blocks, s.f.cols,
                    s.f.group, kind);
    }
}

/* One shape of one kind of numbers. */
static void
tier_shape(const struct moe_kernels *k, bool quant, size_t kind, enum ck_kind numbers, size_t i)
{
    struct shape s = shape_of(kind, i);
    size_t no = span(s.n, s.ldo, 16 * s.blocks);
    const uint8_t *w = weights(&s, numbers);
    struct act a = activations(&s, numbers);
    float *want = ck_buf(2, no * sizeof(*want)), *got = ck_buf(3, no * sizeof(*got));

    if (quant) {
        ck_ref()->gemm_packedq(want, s.ldo, w, s.blocks, &s.f, a.xq, a.xs, a.xsum, s.n);
        k->gemm_packedq(got, s.ldo, w, s.blocks, &s.f, a.xq, a.xs, a.xsum, s.n);
    } else {
        ck_ref()->gemm_packed(want, s.ldo, w, s.blocks, &s.f, a.x, s.ldx, s.n);
        k->gemm_packed(got, s.ldo, w, s.blocks, &s.f, a.x, s.ldx, s.n);
    }
    ck_expect(ck_same_f32(got, want, no) && ck_intact(3),
        "%zu blocks x %zu, group %zu, %zu tokens, kind %zu, scale %d, %s", s.blocks, s.f.cols,
        s.f.group, s.n, kind, s.f.scale, ck_kind_name(numbers));
}

/* Every shape, and of each kind of codes every kind of numbers in turn. */
static void
tier(const struct moe_kernels *k, bool quant)
{
    ck_begin(quant ? "gemm_packedq" : "gemm_packed", k->tier);
    for (size_t kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < SHAPES && !skips(quant, kind); i++) {
            tier_shape(k, quant, kind, CK_RANDOM, i);
            tier_shape(k, quant, kind, (enum ck_kind)(1 + i % (CK_KINDS - 1)), i);
        }
    ck_end();
}

static void
reference(bool quant)
{
    ck_begin(quant ? "gemm_packedq" : "gemm_packed", "ref against double");
    for (size_t kind = 0; kind < KINDS; kind++)
        if (!skips(quant, kind))
            against_double(quant, kind);
    ck_end();
}

static void
act_against_double(void)
{
    struct shape s = { .n = 3, .ldx = 2051, .f = { .cols = 2048, .group = 64 } };
    struct act a = activations(&s, CK_RANDOM);

    ck_begin("quant_act_i8", "ref against double");
    for (size_t j = 0; j < s.n; j++)
        for (size_t g = 0; g < s.f.cols / s.f.group; g++) {
            const float *x = a.x + j * s.ldx + g * s.f.group;
            const int8_t *xq = a.xq + j * s.f.cols + g * s.f.group;
            double step = a.xs[j * (s.f.cols / s.f.group) + g], max = 0;
            int sum = 0;

            for (size_t i = 0; i < s.f.group; i++) {
                max = fmax(max, fabs(x[i]));
                sum += xq[i];
                ck_expect(fabs(x[i] - xq[i] * step) <= ACT_STEP * step, "%g is %d * %g", x[i],
                    xq[i], step);
            }
            ck_expect(fabs(max / 127 - step) <= 0x1p-23 * step, "scale of %g", max);
            ck_expect(sum == a.xsum[j * (s.f.cols / s.f.group) + g], "sum");
        }
    ck_end();
}

static void
act_tier(const struct moe_kernels *k)
{
    ck_begin("quant_act_i8", k->tier);
    for (int kind = 0; kind < CK_KINDS; kind++)
        for (size_t i = 0; i < SHAPES; i++) {
            struct shape s = shape_of(0, i);
            size_t groups = s.n * (s.f.cols / s.f.group);
            struct act a = activations(&s, kind);
            int8_t *xq = ck_buf(7, s.n * s.f.cols);
            float *xs = ck_buf(8, groups * sizeof(*xs));
            int32_t *xsum = ck_buf(9, groups * sizeof(*xsum));

            k->quant_act_i8(xq, xs, xsum, a.x, s.ldx, s.f.cols, s.f.group, s.n);
            ck_expect(memcmp(xq, a.xq, s.n * s.f.cols) == 0 && ck_same_f32(xs, a.xs, groups) &&
                    memcmp(xsum, a.xsum, groups * sizeof(*xsum)) == 0 && ck_intact(7) &&
                    ck_intact(8) && ck_intact(9),
                "%zu x %zu, group %zu, %s", s.n, s.f.cols, s.f.group, ck_kind_name(kind));
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
    reference(false);
    reference(true);
    for (size_t t = 0; (k = ck_tier(t)) != NULL; t++) {
        act_tier(k);
        tier(k, false);
        tier(k, true);
    }
}

const struct ck_check check_gemm_packed = { "gemm_packed", run, NULL };
