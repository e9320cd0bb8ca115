/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rotary position embedding, AVX2.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx2.h"

static void
rope_half(float *x, const float *c, const float *s, size_t dim)
{
    size_t half = dim / 2;
    float *y = x + half;

    for (size_t i = 0; i < half; i += 8) {
        __m256i mask = k_mask8(half - i);
        __m256 vc = _mm256_maskload_ps(c + i, mask), vs = _mm256_maskload_ps(s + i, mask);
        __m256 a = _mm256_maskload_ps(x + i, mask), b = _mm256_maskload_ps(y + i, mask);

        _mm256_maskstore_ps(x + i, mask, _mm256_fmsub_ps(a, vc, _mm256_mul_ps(b, vs)));
        _mm256_maskstore_ps(y + i, mask, _mm256_fmadd_ps(b, vc, _mm256_mul_ps(a, vs)));
    }
}

/* Four pairs a step: c and s doubled, the pairs swapped, even lanes minus, odd lanes plus. */
static void
rope_pair(float *x, const float *c, const float *s, size_t dim)
{
    const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    size_t half = dim / 2;

    for (size_t i = 0; i < half; i += 4) {
        __m256i mask = k_mask8(2 * (half - i));
        __m128i one = _mm256_castsi256_si128(k_mask8(half - i));
        __m256 v = _mm256_maskload_ps(x + 2 * i, mask);
        __m256 vc = _mm256_castps128_ps256(_mm_maskload_ps(c + i, one));
        __m256 vs = _mm256_castps128_ps256(_mm_maskload_ps(s + i, one));

        vc = _mm256_permutevar8x32_ps(vc, twice);
        vs = _mm256_permutevar8x32_ps(vs, twice);
        vs = _mm256_mul_ps(_mm256_permute_ps(v, 0xb1), vs);
        _mm256_maskstore_ps(x + 2 * i, mask, _mm256_fmaddsub_ps(v, vc, vs));
    }
}

void
k_rope_avx2_init(struct moe_kernels *k)
{
    k->rope_half = rope_half;
    k->rope_pair = rope_pair;
}
