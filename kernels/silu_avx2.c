/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gated activation of an expert, AVX2.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx2.h"

static void
silu_mul_f32(float *out, const float *g, const float *u, size_t n)
{
    size_t i = 0;

    for (; n - i >= 8; i += 8)
        _mm256_storeu_ps(out + i,
            _mm256_mul_ps(k_silu8(_mm256_loadu_ps(g + i)), _mm256_loadu_ps(u + i)));
    if (i < n) {
        __m256i mask = k_mask8(n - i);

        _mm256_maskstore_ps(out + i, mask,
            _mm256_mul_ps(k_silu8(_mm256_maskload_ps(g + i, mask)),
                _mm256_maskload_ps(u + i, mask)));
    }
}

static void
silu_mul_16(float *out, const float *gu, size_t blocks)
{
    for (; blocks > 0; blocks--, out += 16, gu += 32)
        for (int i = 0; i < 16; i += 8)
            _mm256_storeu_ps(out + i,
                _mm256_mul_ps(k_silu8(_mm256_loadu_ps(gu + i)), _mm256_loadu_ps(gu + 16 + i)));
}

void
k_silu_avx2_init(struct moe_kernels *k)
{
    k->silu_mul_f32 = silu_mul_f32;
    k->silu_mul_16 = silu_mul_16;
}
