/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gated activation of an expert, silu(gate) * up, reference: from two
 * vectors, and from the packed blocks' order (16 gate rows, 16 up rows).
 */
#include "kernels/exp.h"
#include "kernels/kernels_init.h"

static float
silu(float x)
{
    return x / (1.0f + k_exp(-x));
}

static void
silu_mul_f32(float *out, const float *g, const float *u, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = silu(g[i]) * u[i];
}

static void
silu_mul_16(float *out, const float *gu, size_t blocks)
{
    for (size_t b = 0; b < blocks; b++)
        silu_mul_f32(out + 16 * b, gu + 32 * b, gu + 32 * b + 16, 16);
}

void
k_silu_ref_init(struct moe_kernels *k)
{
    k->silu_mul_f32 = silu_mul_f32;
    k->silu_mul_16 = silu_mul_16;
}
