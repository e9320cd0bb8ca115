/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Row-major matrix products, reference: F32, BF16 and F16 weights, one dot
 * product after the other in the order of kernels.h.
 */
#include <math.h>

#include "kernels/half.h"
#include "kernels/kernels_init.h"
#include "kernels/lanes.h"

static float
dot_f32(const float *w, const float *x, size_t n)
{
    float lane[K_LANES] = { 0 };

    for (size_t k = 0; k < n; k++)
        lane[k % K_LANES] = fmaf(w[k], x[k], lane[k % K_LANES]);
    return k_lanes_sum(lane);
}

static float
dot_bf16(const uint16_t *w, const float *x, size_t n)
{
    float lane[K_LANES] = { 0 };

    for (size_t k = 0; k < n; k++)
        lane[k % K_LANES] = fmaf(k_bf16_f32(w[k]), x[k], lane[k % K_LANES]);
    return k_lanes_sum(lane);
}

static float
dot_f16(const uint16_t *w, const float *x, size_t n)
{
    float lane[K_LANES] = { 0 };

    for (size_t k = 0; k < n; k++)
        lane[k % K_LANES] = fmaf(k_f16_f32(w[k]), x[k], lane[k % K_LANES]);
    return k_lanes_sum(lane);
}

static void
gemm_f32(float *out, size_t ldo, const float *w, const float *x, size_t ldx, size_t rows,
    size_t cols, size_t n)
{
    for (size_t j = 0; j < n; j++)
        for (size_t r = 0; r < rows; r++)
            out[j * ldo + r] = dot_f32(w + r * cols, x + j * ldx, cols);
}

static void
gemm_bf16(float *out, size_t ldo, const uint16_t *w, const float *x, size_t ldx, size_t rows,
    size_t cols, size_t n)
{
    for (size_t j = 0; j < n; j++)
        for (size_t r = 0; r < rows; r++)
            out[j * ldo + r] = dot_bf16(w + r * cols, x + j * ldx, cols);
}

static void
gemm_f16(float *out, size_t ldo, const uint16_t *w, const float *x, size_t ldx, size_t rows,
    size_t cols, size_t n)
{
    for (size_t j = 0; j < n; j++)
        for (size_t r = 0; r < rows; r++)
            out[j * ldo + r] = dot_f16(w + r * cols, x + j * ldx, cols);
}

void
k_gemm_ref_init(struct moe_kernels *k)
{
    k->gemm_f32 = gemm_f32;
    k->gemm_bf16 = gemm_bf16;
    k->gemm_f16 = gemm_f16;
}
