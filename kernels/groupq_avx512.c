/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group quantisation to INT4 and INT8 and back, 32 values at a time, as in the
 * AVX2 variant with vectors twice as wide.
 */
#include <immintrin.h>
#include <string.h>

#include "kernels/groupq.h"
#include "kernels/groupq_vec.h"
#include "kernels/kernels_init.h"

K_GROUPQ_INLINE __m512
load16(const void *x, size_t i, enum k_groupq kind)
{
    if (kind == K_GROUPQ_F32)
        return _mm512_loadu_ps((const float *)x + i);
    __m256i h = _mm256_loadu_si256((const __m256i *)((const uint16_t *)x + i));
    if (kind == K_GROUPQ_F16)
        return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

/* The largest magnitude's bits of a group. */
K_GROUPQ_INLINE uint32_t
max_abs(const void *x, size_t n, enum k_groupq kind)
{
    __m512i m = _mm512_setzero_si512();
    uint32_t max;
    size_t i = 0;

    if (kind == K_GROUPQ_F32) {
        for (; i + 16 <= n; i += 16)
            m = _mm512_max_epu32(m, _mm512_and_si512(_mm512_loadu_si512((const float *)x + i),
                _mm512_set1_epi32(0x7fffffff)));
    } else {
        for (; i + 32 <= n; i += 32)
            m = _mm512_max_epu16(m,
                _mm512_and_si512(_mm512_loadu_si512((const uint16_t *)x + i),
                    _mm512_set1_epi16(0x7fff)));
        m = _mm512_max_epu32(_mm512_and_si512(m, _mm512_set1_epi32(0xffff)),
            _mm512_srli_epi32(m, 16));
    }
    max = _mm512_reduce_max_epu32(m);
    for (; i < n; i++) {
        uint32_t a = k_groupq_abs(x, i, kind);
        max = a > max ? a : max;
    }
    return max;
}

/* 32 codes as signed bytes, cut to the range of a byte. */
K_GROUPQ_INLINE __m256i
codes32(const void *x, size_t i, __m512 s, enum k_groupq kind)
{
    __m512i a = _mm512_cvtps_epi32(_mm512_div_ps(load16(x, i, kind), s));
    __m512i b = _mm512_cvtps_epi32(_mm512_div_ps(load16(x, i + 16, kind), s));

    return _mm256_set_m128i(_mm512_cvtsepi32_epi8(b), _mm512_cvtsepi32_epi8(a));
}

K_GROUPQ_INLINE void
group_i4(uint8_t *codes, const void *x, size_t n, float scale, enum k_groupq kind)
{
    const __m256i lo = _mm256_set1_epi8(-8), hi = _mm256_set1_epi8(7);
    __m512 s = _mm512_set1_ps(scale);
    size_t i = 0;

    for (; i + 32 <= n; i += 32) {
        __m256i q = _mm256_min_epi8(_mm256_max_epi8(codes32(x, i, s, kind), lo), hi);
        q = _mm256_maddubs_epi16(_mm256_sub_epi8(q, lo), _mm256_set1_epi16(0x1001));
        _mm_storeu_si128((__m128i *)(codes + i / 2), _mm256_cvtepi16_epi8(q));
    }
    for (; i < n; i += 2) {
        int a = k_groupq_code(k_groupq_get(x, i, kind), scale, -8, 7);
        int b = k_groupq_code(k_groupq_get(x, i + 1, kind), scale, -8, 7);
        codes[i / 2] = (uint8_t)((a + 8) | (b + 8) << 4);
    }
}

K_GROUPQ_INLINE void
group_i8(int8_t *codes, const void *x, size_t n, float scale, enum k_groupq kind)
{
    __m512 s = _mm512_set1_ps(scale);
    size_t i = 0;

    for (; i + 32 <= n; i += 32)
        _mm256_storeu_si256((__m256i *)(codes + i), codes32(x, i, s, kind));
    for (; i < n; i++)
        codes[i] = (int8_t)k_groupq_code(k_groupq_get(x, i, kind), scale, -128, 127);
}

static const struct k_groupq_vec vec = { max_abs, group_i4, group_i8 };

static size_t
quant_i4_bf16(uint8_t *codes, uint16_t *scale, const uint16_t *x, size_t n, size_t group)
{
    return k_groupq_walk(vec, codes, scale, x, n, group, 4, K_GROUPQ_BF16);
}

static size_t
quant_i4_f16(uint8_t *codes, uint16_t *scale, const uint16_t *x, size_t n, size_t group)
{
    return k_groupq_walk(vec, codes, scale, x, n, group, 4, K_GROUPQ_F16);
}

static size_t
quant_i4_f32(uint8_t *codes, uint16_t *scale, const float *x, size_t n, size_t group)
{
    return k_groupq_walk(vec, codes, scale, x, n, group, 4, K_GROUPQ_F32);
}

static size_t
quant_i8_bf16(int8_t *codes, uint16_t *scale, const uint16_t *x, size_t n, size_t group)
{
    return k_groupq_walk(vec, codes, scale, x, n, group, 8, K_GROUPQ_BF16);
}

static size_t
quant_i8_f16(int8_t *codes, uint16_t *scale, const uint16_t *x, size_t n, size_t group)
{
    return k_groupq_walk(vec, codes, scale, x, n, group, 8, K_GROUPQ_F16);
}

static size_t
quant_i8_f32(int8_t *codes, uint16_t *scale, const float *x, size_t n, size_t group)
{
    return k_groupq_walk(vec, codes, scale, x, n, group, 8, K_GROUPQ_F32);
}

/* Each lane shifts its own nibble out of the two words of eight. */
static void
dequant_i4(float *out, const uint8_t *codes, const uint16_t *scale, size_t n, size_t group,
    int f16)
{
    const __m512i shift = _mm512_broadcast_i32x8(_mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    const __m512i word = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);

    for (size_t g = 0; g < n / group; g++) {
        float s = f16 ? k_f16_f32(scale[g]) : k_bf16_f32(scale[g]);
        size_t i = g * group, end = i + group;
        for (; i + 16 <= end; i += 16) {
            __m128i w = _mm_loadl_epi64((const __m128i *)(codes + i / 2));
            __m512i q = _mm512_permutexvar_epi32(word, _mm512_castsi128_si512(w));
            q = _mm512_and_si512(_mm512_srlv_epi32(q, shift), _mm512_set1_epi32(15));
            q = _mm512_sub_epi32(q, _mm512_set1_epi32(8));
            _mm512_storeu_ps(out + i, _mm512_mul_ps(_mm512_cvtepi32_ps(q), _mm512_set1_ps(s)));
        }
        for (; i < end; i++)
            out[i] = (float)((codes[i / 2] >> i % 2 * 4 & 15) - 8) * s;
    }
}

void
k_groupq_avx512_init(struct moe_kernels *k)
{
    k->quant_i4_bf16 = quant_i4_bf16;
    k->quant_i4_f16 = quant_i4_f16;
    k->quant_i4_f32 = quant_i4_f32;
    k->quant_i8_bf16 = quant_i8_bf16;
    k->quant_i8_f16 = quant_i8_f16;
    k->quant_i8_f32 = quant_i8_f32;
    k->dequant_i4 = dequant_i4;
}
