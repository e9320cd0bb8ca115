/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placing floats on a grid with a given scale, element by element: loops that
 * the compiler makes vectors of, so that every variant file includes the same
 * text. Sums, whose order matters, are the variants' own.
 */
#ifndef MOE_KERNELS_GRID_H
#define MOE_KERNELS_GRID_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/lanes.h"
#include "kernels/round.h"

/* Adding and taking it away again rounds to whole numbers, ties to even, below 2^22. */
#define K_GRID_ROUND 12582912.0f

/* A float's bits as a number that orders as the floats do; its own inverse. */
static inline int32_t
k_grid_key(uint32_t bits)
{
    return (int32_t)(bits ^ ((uint32_t)((int32_t)bits >> 31) & 0x7fffffff));
}

static inline size_t
k_grid_range(float mm[static 2], const float *x, size_t n)
{
    int32_t lo = 0, hi = 0;         /* the key of 0 */
    uint32_t bad = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t u = k_bits(x[i]);
        int32_t k = k_grid_key(u);

        lo = k < lo ? k : lo;
        hi = k > hi ? k : hi;
        bad += (u & 0x7fffffff) >= 0x7f800000;
    }
    mm[0] = k_half_bits((uint32_t)k_grid_key((uint32_t)lo));
    mm[1] = k_half_bits((uint32_t)hi);
    return bad;
}

static inline void
k_grid_int(int8_t *q, const float *x, size_t n, float scale, float zero, float lo, float hi)
{
    for (size_t i = 0; i < n; i++) {
        float y = x[i] / scale + zero;

        y = y < lo ? lo : y;
        y = y > hi ? hi : y;
        q[i] = (int8_t)(int32_t)(y + K_GRID_ROUND - K_GRID_ROUND);
    }
}

/* The code of a magnitude: how many midpoints it passes; those whose lower end is odd count. */
static inline uint32_t
k_grid_fp4(float a)
{
    return (uint32_t)(a > 0.25f) + (uint32_t)(a >= 0.75f) + (uint32_t)(a > 1.25f) +
        (uint32_t)(a >= 1.75f) + (uint32_t)(a > 2.5f) + (uint32_t)(a >= 3.5f) +
        (uint32_t)(a > 5.0f);
}

static inline void
k_grid_e2m1(uint8_t *q, const float *x, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++) {
        float y = x[i] / scale;

        q[i] = (uint8_t)(k_grid_fp4(y < 0 ? -y : y) | (uint32_t)(y < 0) << 3);
    }
}

/* One term of the error of a whole-number grid, and of E2M1. */
static inline float
k_grid_term_int(float x, float h, float inv, float scale, float lo, float hi)
{
    float y = x * inv, d;

    y = y < lo ? lo : y;
    y = y > hi ? hi : y;
    d = x - (y + K_GRID_ROUND - K_GRID_ROUND) * scale;
    return h * (d * d);
}

static inline float
k_grid_term_e2m1(float x, float h, float inv, float scale)
{
    static const float value[8] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };
    float y = x * inv, d;

    y = y < 0 ? -y : y;
    d = (x < 0 ? -x : x) - value[k_grid_fp4(y)] * (scale < 0 ? -scale : scale);
    return h * (d * d);
}

#endif
