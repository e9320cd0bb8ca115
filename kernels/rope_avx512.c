/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rotary position embedding, AVX-512.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx512.h"

static void
rope_half(float *x, const float *c, const float *s, size_t dim)
{
    size_t half = dim / 2;
    float *y = x + half;

    for (size_t i = 0; i < half; i += 16) {
        __mmask16 mask = half - i < 16 ? k_mask16(half - i) : 0xffff;
        __m512 vc = _mm512_maskz_loadu_ps(mask, c + i), vs = _mm512_maskz_loadu_ps(mask, s + i);
        __m512 a = _mm512_maskz_loadu_ps(mask, x + i), b = _mm512_maskz_loadu_ps(mask, y + i);

        _mm512_mask_storeu_ps(x + i, mask, _mm512_fmsub_ps(a, vc, _mm512_mul_ps(b, vs)));
        _mm512_mask_storeu_ps(y + i, mask, _mm512_fmadd_ps(b, vc, _mm512_mul_ps(a, vs)));
    }
}

/* Eight pairs a step: c and s doubled, the pairs swapped, even lanes minus, odd lanes plus. */
static void
rope_pair(float *x, const float *c, const float *s, size_t dim)
{
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    size_t half = dim / 2;

    for (size_t i = 0; i < half; i += 8) {
        size_t pairs = half - i < 8 ? half - i : 8;
        __mmask16 one = k_mask16(pairs), mask = (__mmask16)((1u << 2 * pairs) - 1);
        __m512 v = _mm512_maskz_loadu_ps(mask, x + 2 * i);
        __m512 vc = _mm512_permutexvar_ps(twice, _mm512_maskz_loadu_ps(one, c + i));
        __m512 vs = _mm512_permutexvar_ps(twice, _mm512_maskz_loadu_ps(one, s + i));

        vs = _mm512_mul_ps(_mm512_permute_ps(v, 0xb1), vs);
        _mm512_mask_storeu_ps(x + 2 * i, mask, _mm512_fmaddsub_ps(v, vc, vs));
    }
}

void
k_rope_avx512_init(struct moe_kernels *k)
{
    k->rope_half = rope_half;
    k->rope_pair = rope_pair;
}
