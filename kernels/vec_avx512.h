/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the AVX-512 kernels share: tails by mask, the tree of a 16-lane sum, and
 * exp. For *_avx512.c only.
 */
#ifndef MOE_KERNELS_VEC_AVX512_H
#define MOE_KERNELS_VEC_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/exp.h"

#define K_INLINE static inline __attribute__((always_inline))
/* Before a loop over a tile's rows or tokens: unrolled, its array is registers. */
#define K_UNROLL _Pragma("GCC unroll 16")

/* Ones in the first n of 16 lanes, n < 16. */
K_INLINE __mmask16
k_mask16(size_t n)
{
    return (__mmask16)((1u << n) - 1);
}

/* Sum of the lanes in the order of kernels.h. */
K_INLINE float
k_sum16(__m512 v)
{
    __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(v),
        _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1)));
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));

    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* exp of 16 floats: k_exp() step by step. */
K_INLINE __m512
k_exp16(__m512 x)
{
    const __m512 round = _mm512_set1_ps(K_EXP_ROUND), one = _mm512_set1_ps(1.0f);
    __m512 t, n, r, p;
    __m512i i, half, s1, s2;

    x = _mm512_min_ps(_mm512_set1_ps(K_EXP_MAX), x);
    x = _mm512_max_ps(_mm512_set1_ps(K_EXP_MIN), x);
    t = _mm512_fmadd_ps(x, _mm512_set1_ps(K_EXP_LOG2E), round);
    n = _mm512_sub_ps(t, round);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(K_EXP_LN2_HI), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(K_EXP_LN2_LO), r);
    p = _mm512_fmadd_ps(_mm512_set1_ps(K_EXP_C6), r, _mm512_set1_ps(K_EXP_C5));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(K_EXP_C4));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(K_EXP_C3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(K_EXP_C2));
    p = _mm512_fmadd_ps(p, r, one);
    p = _mm512_fmadd_ps(p, r, one);
    i = _mm512_sub_epi32(_mm512_castps_si512(t), _mm512_castps_si512(round));
    half = _mm512_srai_epi32(i, 1);
    s1 = _mm512_slli_epi32(_mm512_add_epi32(half, _mm512_set1_epi32(127)), 23);
    s2 = _mm512_sub_epi32(i, half);
    s2 = _mm512_slli_epi32(_mm512_add_epi32(s2, _mm512_set1_epi32(127)), 23);
    p = _mm512_mul_ps(p, _mm512_castsi512_ps(s1));
    return _mm512_mul_ps(p, _mm512_castsi512_ps(s2));
}

/* silu of 16 floats. */
K_INLINE __m512
k_silu16(__m512 x)
{
    __m512 e = k_exp16(_mm512_xor_ps(x, _mm512_set1_ps(-0.0f)));

    return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), e));
}

#endif
