/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One float to one short float and back, where half.h stops: the rounding, to
 * nearest even throughout, and E4M3. The vector kernels use it for the one
 * scale of a group and for what is left at the end of a row.
 */
#ifndef MOE_KERNELS_ROUND_H
#define MOE_KERNELS_ROUND_H

#include <stdint.h>
#include <string.h>

#include "kernels/half.h"

static inline uint32_t
k_bits(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof(u));
    return u;
}

static inline uint16_t
k_f32_bf16(float f)
{
    uint32_t u = k_bits(f);

    if ((u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline uint16_t
k_f32_f16(float f)
{
    uint32_t u = k_bits(f), a = u & 0x7fffffff;
    uint16_t sign = (uint16_t)(u >> 16 & 0x8000);

    if (a > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x1ff));
    if (a >= 0x477ff000)        /* 65520 and more: halfway past the largest */
        return (uint16_t)(sign | 0x7c00);
    if (a < 0x38800000)         /* below 2^-14: adding 2^-1 leaves multiples of 2^-24 */
        return (uint16_t)(sign | (k_bits(k_half_bits(a) + 0.5f) - 0x3f000000));
    a += 0xfff + (a >> 13 & 1);
    return (uint16_t)(sign | ((a >> 13) - (112 << 10)));
}

/* E4M3FN: bias 7, no infinity, NaN 7F and FF. */
static inline float
k_e4m3_f32(uint8_t v)
{
    uint32_t sign = (uint32_t)(v & 0x80) << 24, a = v & 0x7f;

    if (a == 0x7f)
        return k_half_bits(0x7fc00000);
    return k_half_bits(sign | k_bits(k_half_bits(a << 20) * 0x1p120f));
}

/* Saturates at 448; a NaN of either sign is 7F. */
static inline uint8_t
k_f32_e4m3(float f)
{
    uint32_t u = k_bits(f), a = u & 0x7fffffff;
    uint8_t sign = (uint8_t)(u >> 24 & 0x80);

    if (a > 0x7f800000)
        return 0x7f;
    if (a > 0x43e00000)
        a = 0x43e00000;
    if (a < 0x3c800000)         /* below 2^-6: adding 2^14 leaves multiples of 2^-9 */
        return (uint8_t)(sign | (k_bits(k_half_bits(a) + 16384.0f) - 0x46800000));
    a += 0x7ffff + (a >> 20 & 1);
    return (uint8_t)(sign | ((a >> 20) - (120 << 3)));
}

#endif
