/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions: the reference against formats/dtype at every code, and around
 * every point where the rounding changes; the variants against the reference at
 * all lengths.
 */
#include <math.h>
#include <string.h>

#include "common/formats/dtype.h"
#include "tests/kernel/checkkern.h"

#define LENGTHS 300

static float
of_bits(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof(f));
    return f;
}

static uint32_t
to_bits(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof(u));
    return u;
}

/* All 2^16 codes, and E4M3's 2^8. */
static void
widen_all(void)
{
    ck_begin("bf16_f32 f16_f32 e4m3_f32", "ref against dtype");
    for (uint32_t i = 0; i < 0x10000; i++) {
        uint16_t h = (uint16_t)i;
        uint8_t b = (uint8_t)i;
        float got[3], want[3] = { moe_dtype_bf16_f32(h), moe_dtype_f16_f32(h),
            moe_dtype_e4m3_f32(b) };

        ck_ref()->bf16_f32(&got[0], &h, 1);
        ck_ref()->f16_f32(&got[1], &h, 1);
        ck_ref()->e4m3_f32(&got[2], &b, 1);
        ck_expect(ck_same_f32(got, want, 3), "code %04x", i);
    }
    ck_end();
}

static void
narrow_one(float x)
{
    uint16_t bf, h;
    uint8_t b;

    ck_ref()->f32_bf16(&bf, &x, 1);
    ck_ref()->f32_f16(&h, &x, 1);
    ck_ref()->f32_e4m3(&b, &x, 1);
    ck_expect(bf == moe_dtype_f32_bf16(x) && h == moe_dtype_f32_f16(x) &&
        b == moe_dtype_f32_e4m3(x), "%a: %04x %04x %02x", x, bf, h, b);
}

/* Between two neighbours: the halfway point and the floats beside it. */
static void
around(float lo, float hi)
{
    uint32_t mid = to_bits((float)(((double)lo + (double)hi) / 2));

    for (uint32_t u = mid - 1; u != mid + 2; u++) {
        narrow_one(of_bits(u));
        narrow_one(-of_bits(u));
    }
    narrow_one(lo);
    narrow_one(-lo);
}

static void
narrow_all(void)
{
    static const uint32_t odd[] = { 0, 0x80000000, 1, 0x007fffff, 0x7f7fffff, 0x7f800000,
        0xff800000, 0x7f800001, 0xffc12345, 0x7fffffff, 0x477fefff, 0x477ff000, 0x43e00000,
        0x43e7ffff, 0x43e80000, 0x43f00000 };

    ck_begin("f32_bf16 f32_f16 f32_e4m3", "ref against dtype");
    for (uint16_t h = 0; h < 0x7bff; h++)
        around(moe_dtype_f16_f32(h), moe_dtype_f16_f32((uint16_t)(h + 1)));
    for (uint16_t h = 0; h < 0x7f7f; h++)
        around(moe_dtype_bf16_f32(h), moe_dtype_bf16_f32((uint16_t)(h + 1)));
    for (uint8_t b = 0; b < 0x7e; b++)
        around(moe_dtype_e4m3_f32(b), moe_dtype_e4m3_f32((uint8_t)(b + 1)));
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
        narrow_one(of_bits(odd[i]));
    for (int i = 0; i < 100000; i++)
        narrow_one(of_bits(ck_rand()));
    ck_end();
}

static void
widen_tier(const struct moe_kernels *k)
{
    ck_begin("bf16_f32 f16_f32 e4m3_f32", k->tier);
    for (size_t n = 0; n <= LENGTHS; n++) {
        uint16_t *h = ck_buf(0, n * sizeof(*h));
        uint8_t *b = ck_buf(1, n);
        float *want = ck_buf(2, n * sizeof(*want)), *got = ck_buf(3, n * sizeof(*got));

        for (size_t i = 0; i < n; i++) {
            h[i] = (uint16_t)ck_rand();
            b[i] = (uint8_t)(i + n);
        }
        ck_ref()->bf16_f32(want, h, n);
        k->bf16_f32(got, h, n);
        ck_expect(ck_same_f32(got, want, n) && ck_intact(3), "bf16 n %zu", n);
        ck_ref()->f16_f32(want, h, n);
        k->f16_f32(got, h, n);
        ck_expect(memcmp(got, want, n * sizeof(*got)) == 0 && ck_intact(3), "f16 n %zu", n);
        ck_ref()->e4m3_f32(want, b, n);
        k->e4m3_f32(got, b, n);
        ck_expect(memcmp(got, want, n * sizeof(*got)) == 0 && ck_intact(3), "e4m3 n %zu", n);
    }
    ck_end();
}

/* Any bits; one in four halfway between two codes of F16 or E4M3. */
static void
fill(float *x, size_t n, enum ck_kind kind)
{
    ck_f32(x, n, kind);
    for (size_t i = 0; i < n; i++)
        switch (ck_rand() % 8) {
        case 0: x[i] = of_bits(ck_rand()); break;
        case 1: x[i] = of_bits((ck_rand() & 0xbfffe000) | 0x1000); break;
        case 2: x[i] = of_bits((ck_rand() & 0x87f00000) | 0x38080000); break;
        case 3: x[i] = of_bits((ck_rand() & 0x807fffff) | 0x33000000 | (ck_rand() % 24) << 23);
            break;
        }
}

static void
narrow_tier(const struct moe_kernels *k)
{
    ck_begin("f32_bf16 f32_f16 f32_e4m3", k->tier);
    for (int kind = 0; kind < CK_KINDS; kind++)
        for (size_t n = 0; n <= LENGTHS; n++) {
            float *x = ck_buf(0, n * sizeof(*x));
            uint16_t *want = ck_buf(1, n * sizeof(*want)), *got = ck_buf(2, n * sizeof(*got));
            uint8_t *want8 = ck_buf(3, n), *got8 = ck_buf(4, n);

            fill(x, n, (enum ck_kind)kind);
            ck_ref()->f32_bf16(want, x, n);
            k->f32_bf16(got, x, n);
            ck_expect(memcmp(got, want, 2 * n) == 0 && ck_intact(2), "bf16 n %zu", n);
            ck_ref()->f32_f16(want, x, n);
            k->f32_f16(got, x, n);
            ck_expect(memcmp(got, want, 2 * n) == 0 && ck_intact(2), "f16 n %zu", n);
            ck_ref()->f32_e4m3(want8, x, n);
            k->f32_e4m3(got8, x, n);
            ck_expect(memcmp(got8, want8, n) == 0 && ck_intact(4), "e4m3 n %zu", n);
        }
    ck_end();
}

static void
run(void)
{
    const struct moe_kernels *k;

    widen_all();
    narrow_all();
    for (size_t t = 0; (k = ck_tier(t)) != NULL; t++) {
        widen_tier(k);
        narrow_tier(k);
    }
}

const struct ck_check check_convert = { "convert", run, NULL };
