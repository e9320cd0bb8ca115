/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the table of element types and the exact conversion of single elements.
 * Does not check buffers; fast bulk conversions are kernels.
 */
#include <math.h>
#include <string.h>

#include "common/formats/dtype.h"

/* Encodings of real numbers with at most 8 bits: OCP MX v1.0 and OCP FP8 v1.0. */
struct small {
    int exp_bits, man_bits, bias;
    uint8_t nan;                /* code that is NaN, 0 = none */
    uint8_t max;                /* largest finite code without the sign */
};

static const struct small f4 = { 2, 1, 1, 0, 0x7 };
static const struct small f6_e2m3 = { 2, 3, 1, 0, 0x1f };
static const struct small f6_e3m2 = { 3, 2, 3, 0, 0x1f };
static const struct small e4m3 = { 4, 3, 7, 0x7f, 0x7e };
static const struct small e5m2 = { 5, 2, 15, 0x7f, 0x7b };
static const struct small e4m3fnuz = { 4, 3, 8, 0x80, 0x7f };
static const struct small e5m2fnuz = { 5, 2, 16, 0x80, 0x7f };

static const struct {
    const char *name;
    uint8_t bits;
    bool is_float;
} types[MOE_DTYPE_N] = {
    [MOE_BOOL] = { "BOOL", 8, false },
    [MOE_F4] = { "F4", 4, true },
    [MOE_F6_E2M3] = { "F6_E2M3", 6, true },
    [MOE_F6_E3M2] = { "F6_E3M2", 6, true },
    [MOE_U8] = { "U8", 8, false },
    [MOE_I8] = { "I8", 8, false },
    [MOE_F8_E5M2] = { "F8_E5M2", 8, true },
    [MOE_F8_E4M3] = { "F8_E4M3", 8, true },
    [MOE_F8_E8M0] = { "F8_E8M0", 8, true },
    [MOE_F8_E4M3FNUZ] = { "F8_E4M3FNUZ", 8, true },
    [MOE_F8_E5M2FNUZ] = { "F8_E5M2FNUZ", 8, true },
    [MOE_I16] = { "I16", 16, false },
    [MOE_U16] = { "U16", 16, false },
    [MOE_F16] = { "F16", 16, true },
    [MOE_BF16] = { "BF16", 16, true },
    [MOE_I32] = { "I32", 32, false },
    [MOE_U32] = { "U32", 32, false },
    [MOE_F32] = { "F32", 32, true },
    [MOE_C64] = { "C64", 64, false },
    [MOE_F64] = { "F64", 64, true },
    [MOE_I64] = { "I64", 64, false },
    [MOE_U64] = { "U64", 64, false },
};

static float
from_bits(uint32_t b)
{
    float f;

    memcpy(&f, &b, sizeof(f));
    return f;
}

static uint32_t
to_bits(float f)
{
    uint32_t b;

    memcpy(&b, &f, sizeof(b));
    return b;
}

/* A sign, exp_bits and man_bits; exponent 0 is subnormal. */
static float
small_f32(const struct small *s, uint8_t v)
{
    uint8_t sign = (uint8_t)(1u << (s->exp_bits + s->man_bits));
    int exp = (v & (sign - 1)) >> s->man_bits;
    int man = v & ((1 << s->man_bits) - 1);
    float f;

    if (exp > 0)
        man |= 1 << s->man_bits;
    else
        exp = 1;
    f = ldexpf((float)man, exp - s->bias - s->man_bits);
    return v & sign ? -f : f;
}

/*
 * Magnitude a (not NaN) to the code nearest, ties to the even code; codes past
 * max come out as such, so that the caller saturates or overflows. Scaling by a
 * power of two is exact, and rounding up into the next exponent carries by itself.
 */
static uint32_t
round_code(float a, int man_bits, int bias, uint32_t past)
{
    int exp;
    uint32_t q;

    if (a == 0)
        return 0;
    if (isinf(a))
        return past;
    exp = ilogbf(a);
    if (exp < 1 - bias)
        exp = 1 - bias;
    if (exp > bias + 1)
        return past;
    q = (uint32_t)rintf(ldexpf(a, man_bits - exp));
    return ((uint32_t)(exp + bias - 1) << man_bits) + q;
}

static uint8_t
small_from(const struct small *s, float v)
{
    uint8_t sign = signbit(v) ? (uint8_t)(1u << (s->exp_bits + s->man_bits)) : 0;
    uint32_t q;

    if (isnan(v))
        return s->nan;
    q = round_code(fabsf(v), s->man_bits, s->bias, 0xff);
    return (uint8_t)(sign | (q > s->max ? s->max : q));
}

const char *
moe_dtype_name(enum moe_dtype t)
{
    return types[t].name;
}

bool
moe_dtype_find(const char *name, size_t n, enum moe_dtype *t)
{
    for (int i = 0; i < MOE_DTYPE_N; i++) {
        if (strlen(types[i].name) == n && memcmp(types[i].name, name, n) == 0) {
            *t = (enum moe_dtype)i;
            return true;
        }
    }
    return false;
}

unsigned
moe_dtype_bits(enum moe_dtype t)
{
    return types[t].bits;
}

bool
moe_dtype_is_float(enum moe_dtype t)
{
    return types[t].is_float;
}

float
moe_dtype_bf16_f32(uint16_t v)
{
    return from_bits((uint32_t)v << 16);
}

float
moe_dtype_f16_f32(uint16_t v)
{
    uint32_t sign = (uint32_t)(v & 0x8000) << 16;
    uint32_t exp = v >> 10 & 31, man = v & 0x3ff;

    if (exp == 31)
        return from_bits(sign | 0x7f800000 | man << 13);
    if (exp > 0)
        return from_bits(sign | (exp + 112) << 23 | man << 13);
    return from_bits(sign | to_bits(ldexpf((float)man, -24)));
}

float
moe_dtype_e4m3_f32(uint8_t v)
{
    return (v & 0x7f) == 0x7f ? NAN : small_f32(&e4m3, v);
}

float
moe_dtype_e5m2_f32(uint8_t v)
{
    return moe_dtype_f16_f32((uint16_t)(v << 8));
}

float
moe_dtype_e8m0_f32(uint8_t v)
{
    return v == 0xff ? NAN : ldexpf(1, v - 127);
}

float
moe_dtype_f4_f32(uint8_t v)
{
    return small_f32(&f4, v & 15);
}

uint16_t
moe_dtype_f32_bf16(float v)
{
    uint32_t b = to_bits(v);

    if (isnan(v))
        return (uint16_t)(b >> 16 | 0x40);
    return (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

uint16_t
moe_dtype_f32_f16(float v)
{
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    uint32_t q;

    if (isnan(v))
        return (uint16_t)(sign | 0x7e00 | (to_bits(v) >> 13 & 0x1ff));
    q = round_code(fabsf(v), 10, 15, 0x7c00);
    return (uint16_t)(sign | (q > 0x7c00 ? 0x7c00 : q));
}

uint8_t
moe_dtype_f32_e4m3(float v)
{
    return small_from(&e4m3, v);
}

uint8_t
moe_dtype_f32_e5m2(float v)
{
    return small_from(&e5m2, v);
}

uint8_t
moe_dtype_f32_f4(float v)
{
    return small_from(&f4, v);
}

/* Element i of a packed run of 6-bit codes. */
static uint8_t
six(const uint8_t *p, size_t i)
{
    size_t bit = 6 * i;
    unsigned w = p[bit / 8];

    if (bit % 8 > 2)
        w |= (unsigned)p[bit / 8 + 1] << 8;
    return w >> bit % 8 & 63;
}

static float
fnuz(const struct small *s, uint8_t v)
{
    return v == s->nan ? NAN : small_f32(s, v);
}

static void
wide_to_f32(enum moe_dtype t, const uint8_t *p, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t h;
        double d;

        switch (t) {
        case MOE_F16:
            memcpy(&h, p + 2 * i, 2);
            out[i] = moe_dtype_f16_f32(h);
            break;
        case MOE_BF16:
            memcpy(&h, p + 2 * i, 2);
            out[i] = moe_dtype_bf16_f32(h);
            break;
        case MOE_F32:
            memcpy(&out[i], p + 4 * i, 4);
            break;
        default:
            memcpy(&d, p + 8 * i, 8);
            out[i] = (float)d;
        }
    }
}

bool
moe_dtype_to_f32(enum moe_dtype t, const void *from, size_t n, float *out)
{
    const uint8_t *p = from;

    if (!types[t].is_float)
        return false;
    if (types[t].bits >= 16) {
        wide_to_f32(t, p, n, out);
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        switch (t) {
        case MOE_F4:
            out[i] = small_f32(&f4, p[i / 2] >> 4 * (i % 2) & 15);
            break;
        case MOE_F6_E2M3: out[i] = small_f32(&f6_e2m3, six(p, i)); break;
        case MOE_F6_E3M2: out[i] = small_f32(&f6_e3m2, six(p, i)); break;
        case MOE_F8_E4M3: out[i] = moe_dtype_e4m3_f32(p[i]); break;
        case MOE_F8_E5M2: out[i] = moe_dtype_e5m2_f32(p[i]); break;
        case MOE_F8_E8M0: out[i] = moe_dtype_e8m0_f32(p[i]); break;
        case MOE_F8_E4M3FNUZ: out[i] = fnuz(&e4m3fnuz, p[i]); break;
        default: out[i] = fnuz(&e5m2fnuz, p[i]);
        }
    }
    return true;
}
