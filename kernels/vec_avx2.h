/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the AVX2 kernels share: tails by mask, the tree of a 16-lane sum held in
 * two vectors, and exp. For *_avx2.c only.
 */
#ifndef MOE_KERNELS_VEC_AVX2_H
#define MOE_KERNELS_VEC_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/exp.h"

#define K_INLINE static inline __attribute__((always_inline))
/* Before a loop over a tile's rows or tokens: unrolled, its array is registers. */
#define K_UNROLL _Pragma("GCC unroll 16")
/*
 * v is in a register at this point. Between unrolled steps it keeps GCC from
 * moving their additions apart and their operands to the stack.
 */
#define K_HERE(v) __asm__("" : "+x"(v))

/*
 * How far ahead a product asks for packed weights. Its instructions for a byte
 * are so many that the window of a Zen 3 sees no more than ten lines ahead, and
 * the memory would wait in between; measured there, 768 to 2048 do about alike.
 * AVX-512 needs half the instructions and is better off without.
 */
#define K_PREFETCH 1536

/* Ones in the first n of 8 lanes; n may be larger. */
K_INLINE __m256i
k_mask8(size_t n)
{
    static const int32_t edge[16] = { -1, -1, -1, -1, -1, -1, -1, -1 };

    return _mm256_loadu_si256((const __m256i *)(edge + 8 - (n < 8 ? n : 8)));
}

/* a * b + acc where the mask is set; elsewhere acc stays as it is, even -0 or beside infinity. */
K_INLINE __m256
k_fma8_where(__m256i mask, __m256 a, __m256 b, __m256 acc)
{
    return _mm256_blendv_ps(acc, _mm256_fmadd_ps(a, b, acc), _mm256_castsi256_ps(mask));
}

/* Sum of lanes 0..7 and 8..15 in the order of kernels.h. */
K_INLINE float
k_sum16(__m256 lo, __m256 hi)
{
    __m256 s8 = _mm256_add_ps(lo, hi);
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));

    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* exp of 8 floats: k_exp() step by step. */
K_INLINE __m256
k_exp8(__m256 x)
{
    const __m256 round = _mm256_set1_ps(K_EXP_ROUND), one = _mm256_set1_ps(1.0f);
    __m256 t, n, r, p;
    __m256i i, half, s1, s2;

    x = _mm256_min_ps(_mm256_set1_ps(K_EXP_MAX), x);
    x = _mm256_max_ps(_mm256_set1_ps(K_EXP_MIN), x);
    t = _mm256_fmadd_ps(x, _mm256_set1_ps(K_EXP_LOG2E), round);
    n = _mm256_sub_ps(t, round);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(K_EXP_LN2_HI), x);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(K_EXP_LN2_LO), r);
    p = _mm256_fmadd_ps(_mm256_set1_ps(K_EXP_C6), r, _mm256_set1_ps(K_EXP_C5));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(K_EXP_C4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(K_EXP_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(K_EXP_C2));
    p = _mm256_fmadd_ps(p, r, one);
    p = _mm256_fmadd_ps(p, r, one);
    i = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_castps_si256(round));
    half = _mm256_srai_epi32(i, 1);
    s1 = _mm256_slli_epi32(_mm256_add_epi32(half, _mm256_set1_epi32(127)), 23);
    s2 = _mm256_sub_epi32(i, half);
    s2 = _mm256_slli_epi32(_mm256_add_epi32(s2, _mm256_set1_epi32(127)), 23);
    p = _mm256_mul_ps(p, _mm256_castsi256_ps(s1));
    return _mm256_mul_ps(p, _mm256_castsi256_ps(s2));
}

/* silu of 8 floats. */
K_INLINE __m256
k_silu8(__m256 x)
{
    __m256 e = k_exp8(_mm256_xor_ps(x, _mm256_set1_ps(-0.0f)));

    return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), e));
}

#endif
