/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the variants of group quantisation share: the kind of the input, the
 * rule of the scale, and single elements, which the vector kernels use for what
 * is left at the end of a group.
 */
#ifndef MOE_KERNELS_GROUPQ_H
#define MOE_KERNELS_GROUPQ_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/round.h"

/* For functions whose `kind` must become a constant. */
#define K_GROUPQ_INLINE static inline __attribute__((always_inline))

enum k_groupq { K_GROUPQ_BF16, K_GROUPQ_F16, K_GROUPQ_F32 };

/* Magnitude bits of element i: they order as the magnitudes do, infinity and NaN last. */
static inline uint32_t
k_groupq_abs(const void *x, size_t i, enum k_groupq kind)
{
    if (kind == K_GROUPQ_F32)
        return k_bits(((const float *)x)[i]) & 0x7fffffff;
    return ((const uint16_t *)x)[i] & 0x7fff;
}

static inline uint32_t
k_groupq_inf(enum k_groupq kind)
{
    return kind == K_GROUPQ_F32 ? 0x7f800000 : kind == K_GROUPQ_F16 ? 0x7c00 : 0x7f80;
}

static inline float
k_groupq_value(uint32_t bits, enum k_groupq kind)
{
    return kind == K_GROUPQ_F32 ? k_half_bits(bits) :
        kind == K_GROUPQ_F16 ? k_f16_f32((uint16_t)bits) : k_bf16_f32((uint16_t)bits);
}

static inline float
k_groupq_get(const void *x, size_t i, enum k_groupq kind)
{
    return kind == K_GROUPQ_F32 ? ((const float *)x)[i] :
        k_groupq_value(((const uint16_t *)x)[i], kind);
}

/* Values of a group that are infinite or NaN. */
static inline size_t
k_groupq_bad(const void *x, size_t n, enum k_groupq kind)
{
    size_t bad = 0;

    for (size_t i = 0; i < n; i++)
        bad += k_groupq_abs(x, i, kind) >= k_groupq_inf(kind);
    return bad;
}

static inline uint16_t
k_groupq_nan(enum k_groupq kind)
{
    return kind == K_GROUPQ_F16 ? 0x7e00 : 0x7fc0;
}

/*
 * The scale of a group whose largest magnitude is given; range is half the
 * span of the codes. One that rounds to 0 becomes the type's epsilon.
 */
static inline uint16_t
k_groupq_scale(float absmax, float range, enum k_groupq kind)
{
    float s = absmax / range;
    uint16_t b = kind == K_GROUPQ_F16 ? k_f32_f16(s) : k_f32_bf16(s);

    if (b != 0)
        return b;
    return kind == K_GROUPQ_F16 ? 0x1400 : 0x3c00;      /* 2^-10, 2^-7 */
}

static inline float
k_groupq_scale_f32(uint16_t b, enum k_groupq kind)
{
    return kind == K_GROUPQ_F16 ? k_f16_f32(b) : k_bf16_f32(b);
}

/* x / scale, to nearest even, within [lo, hi]. Division by the scale, not by its reciprocal. */
static inline int
k_groupq_code(float x, float scale, int lo, int hi)
{
    float q = rintf(x / scale);

    return q < (float)lo ? lo : q > (float)hi ? hi : (int)q;
}

#endif
