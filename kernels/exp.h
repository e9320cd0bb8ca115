/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exp() of the kernels: the constants, and in the scalar form below the order
 * of operations that every tier repeats step by step, so that all give the
 * same bits. Error under 1 unit in the last place over the normal range;
 * above 88.73 infinity, under -103.97 zero, gradual underflow between.
 *
 * x = n ln2 + r, |r| <= ln2 / 2, n by adding and taking off 1.5 * 2^23; ln2 as
 * two floats. e^r = 1 + r + r^2 q(r), q of degree 4 through the five Chebyshev
 * nodes of the interval (relative error 2e-9). 2^n as two factors, since n
 * runs past the exponents of a float at both ends.
 */
#ifndef MOE_KERNELS_EXP_H
#define MOE_KERNELS_EXP_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define K_EXP_MAX 89.0f
#define K_EXP_MIN (-104.0f)
#define K_EXP_LOG2E 0x1.715476p+0f
#define K_EXP_ROUND 0x1.8p+23f
#define K_EXP_LN2_HI 0x1.62e43p-1f
#define K_EXP_LN2_LO (-0x1.05c61p-29f)
#define K_EXP_C2 0.5f
#define K_EXP_C3 0x1.5554dep-3f
#define K_EXP_C4 0x1.55551ap-5f
#define K_EXP_C5 0x1.120b62p-7f
#define K_EXP_C6 0x1.6d10fcp-10f

static inline float
k_exp(float x)
{
    float t, n, r, p, s1, s2;
    int32_t i, half;
    uint32_t b1, b2;

    x = K_EXP_MAX < x ? K_EXP_MAX : x;
    x = K_EXP_MIN > x ? K_EXP_MIN : x;
    t = fmaf(x, K_EXP_LOG2E, K_EXP_ROUND);
    n = t - K_EXP_ROUND;
    r = fmaf(n, -K_EXP_LN2_HI, x);
    r = fmaf(n, -K_EXP_LN2_LO, r);
    p = fmaf(K_EXP_C6, r, K_EXP_C5);
    p = fmaf(p, r, K_EXP_C4);
    p = fmaf(p, r, K_EXP_C3);
    p = fmaf(p, r, K_EXP_C2);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    memcpy(&i, &t, sizeof(i));
    i = (int32_t)((uint32_t)i - 0x4b400000u);   /* the bits of K_EXP_ROUND */
    half = i >> 1;
    b1 = ((uint32_t)half + 127) << 23;
    b2 = ((uint32_t)i - (uint32_t)half + 127) << 23;
    memcpy(&s1, &b1, sizeof(s1));
    memcpy(&s2, &b2, sizeof(s2));
    return p * s1 * s2;
}

#endif
