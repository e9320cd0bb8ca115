/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activations to INT8 with one scale a group, reference.
 */
#include <math.h>
#include <string.h>

#include "kernels/kernels_init.h"

/* The largest magnitude as bits, by which infinity and NaN are larger than all numbers. */
static uint32_t
magnitude(const float *x, size_t n)
{
    uint32_t max = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t u;

        memcpy(&u, &x[i], sizeof(u));
        u &= 0x7fffffff;
        max = u > max ? u : max;
    }
    return max;
}

static void
quant_group(int8_t *xq, float *xs, int32_t *xsum, const float *x, size_t n)
{
    uint32_t bits = magnitude(x, n);
    float max, inv;

    memcpy(&max, &bits, sizeof(max));
    *xs = max / 127;
    *xsum = 0;
    if (!(*xs >= 0x1p-126f && max < INFINITY)) {
        *xs = bits >= 0x7f800000 ? NAN : 0;
        memset(xq, 0, n);
        return;
    }
    inv = 1 / *xs;
    for (size_t i = 0; i < n; i++) {
        xq[i] = (int8_t)rintf(x[i] * inv);
        *xsum += xq[i];
    }
}

static void
quant_act_i8(int8_t *xq, float *xs, int32_t *xsum, const float *x, size_t ldx, size_t cols,
    size_t group, size_t n)
{
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < cols; k += group)
            quant_group(xq + j * cols + k, xs++, xsum++, x + j * ldx + k, group);
}

void
k_quant_act_ref_init(struct moe_kernels *k)
{
    k->quant_act_i8 = quant_act_i8;
}
