/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One 16-bit float to float, exactly, for the reference kernels. A NaN keeps
 * its payload and becomes quiet in F16, as the processor's conversion does.
 */
#ifndef MOE_KERNELS_HALF_H
#define MOE_KERNELS_HALF_H

#include <stdint.h>
#include <string.h>

static inline float
k_half_bits(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof(f));
    return f;
}

static inline float
k_bf16_f32(uint16_t v)
{
    return k_half_bits((uint32_t)v << 16);
}

static inline float
k_f16_f32(uint16_t v)
{
    uint32_t sign = (uint32_t)(v & 0x8000) << 16, e = v >> 10 & 31, m = v & 1023;
    float f;

    if (e == 31)
        return k_half_bits(sign | 0x7f800000 | m << 13 | (m != 0 ? 0x400000 : 0));
    if (e != 0)
        return k_half_bits(sign | (e + 112) << 23 | m << 13);
    f = (float)m * 0x1p-24f;
    return sign != 0 ? -f : f;
}

#endif
