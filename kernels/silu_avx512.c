/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gated activation of an expert, AVX-512.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx512.h"

static void
silu_mul_f32(float *out, const float *g, const float *u, size_t n)
{
    __mmask16 mask = k_mask16(n % 16);
    size_t i = 0;

    for (; n - i >= 16; i += 16)
        _mm512_storeu_ps(out + i,
            _mm512_mul_ps(k_silu16(_mm512_loadu_ps(g + i)), _mm512_loadu_ps(u + i)));
    if (i < n)
        _mm512_mask_storeu_ps(out + i, mask,
            _mm512_mul_ps(k_silu16(_mm512_maskz_loadu_ps(mask, g + i)),
                _mm512_maskz_loadu_ps(mask, u + i)));
}

static void
silu_mul_16(float *out, const float *gu, size_t blocks)
{
    for (; blocks > 0; blocks--, out += 16, gu += 32)
        _mm512_storeu_ps(out,
            _mm512_mul_ps(k_silu16(_mm512_loadu_ps(gu)), _mm512_loadu_ps(gu + 16)));
}

void
k_silu_avx512_init(struct moe_kernels *k)
{
    k->silu_mul_f32 = silu_mul_f32;
    k->silu_mul_16 = silu_mul_16;
}
