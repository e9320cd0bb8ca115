/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group quantisation to INT4 and INT8 and back, 32 values at a time. A group is
 * read twice, first for its largest magnitude as an integer, then for its
 * codes; it is in the first-level cache by then. The division is a division:
 * it costs about as much as all the rest.
 */
#include <immintrin.h>
#include <string.h>

#include "kernels/groupq.h"
#include "kernels/groupq_vec.h"
#include "kernels/kernels_init.h"

K_GROUPQ_INLINE __m256i
load256(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

K_GROUPQ_INLINE __m256
load8(const void *x, size_t i, enum k_groupq kind)
{
    if (kind == K_GROUPQ_F32)
        return _mm256_loadu_ps((const float *)x + i);
    __m128i h = _mm_loadu_si128((const __m128i *)((const uint16_t *)x + i));
    if (kind == K_GROUPQ_F16)
        return _mm256_cvtph_ps(h);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

K_GROUPQ_INLINE uint32_t
max_u16(__m256i v)
{
    __m128i m = _mm_max_epu16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    __m128i ones = _mm_set1_epi16(-1);

    /* minpos finds the smallest of eight: of the complements, the largest. */
    return 0xffffu ^ (uint32_t)_mm_extract_epi16(_mm_minpos_epu16(_mm_xor_si128(m, ones)), 0);
}

K_GROUPQ_INLINE uint32_t
max_u32(__m256i v)
{
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));

    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

/* The largest magnitude's bits of a group. */
K_GROUPQ_INLINE uint32_t
max_abs(const void *x, size_t n, enum k_groupq kind)
{
    __m256i m = _mm256_setzero_si256();
    uint32_t max;
    size_t i = 0;

    if (kind == K_GROUPQ_F32) {
        for (; i + 8 <= n; i += 8)
            m = _mm256_max_epu32(m, _mm256_and_si256(load256((const float *)x + i),
                _mm256_set1_epi32(0x7fffffff)));
        max = max_u32(m);
    } else {
        for (; i + 16 <= n; i += 16)
            m = _mm256_max_epu16(m, _mm256_and_si256(load256((const uint16_t *)x + i),
                _mm256_set1_epi16(0x7fff)));
        max = max_u16(m);
    }
    for (; i < n; i++) {
        uint32_t a = k_groupq_abs(x, i, kind);
        max = a > max ? a : max;
    }
    return max;
}

/* 32 codes as signed bytes: |x / s| stays far below the range of the packing steps. */
K_GROUPQ_INLINE __m256i
codes32(const void *x, size_t i, __m256 s, enum k_groupq kind)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i a = _mm256_cvtps_epi32(_mm256_div_ps(load8(x, i, kind), s));
    __m256i b = _mm256_cvtps_epi32(_mm256_div_ps(load8(x, i + 8, kind), s));
    __m256i c = _mm256_cvtps_epi32(_mm256_div_ps(load8(x, i + 16, kind), s));
    __m256i d = _mm256_cvtps_epi32(_mm256_div_ps(load8(x, i + 24, kind), s));

    a = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    return _mm256_permutevar8x32_epi32(a, order);
}

K_GROUPQ_INLINE void
group_i4(uint8_t *codes, const void *x, size_t n, float scale, enum k_groupq kind)
{
    const __m256i lo = _mm256_set1_epi8(-8), hi = _mm256_set1_epi8(7);
    __m256 s = _mm256_set1_ps(scale);
    size_t i = 0;

    for (; i + 32 <= n; i += 32) {
        __m256i q = _mm256_min_epi8(_mm256_max_epi8(codes32(x, i, s, kind), lo), hi);
        q = _mm256_sub_epi8(q, lo);
        q = _mm256_maddubs_epi16(q, _mm256_set1_epi16(0x1001));     /* even + 16 odd */
        q = _mm256_permute4x64_epi64(_mm256_packus_epi16(q, q), 0x08);
        _mm_storeu_si128((__m128i *)(codes + i / 2), _mm256_castsi256_si128(q));
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
    __m256 s = _mm256_set1_ps(scale);
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

/* Each lane shifts its own nibble out of the word of eight. */
static void
dequant_i4(float *out, const uint8_t *codes, const uint16_t *scale, size_t n, size_t group,
    int f16)
{
    const __m256i shift = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);

    for (size_t g = 0; g < n / group; g++) {
        float s = f16 ? k_f16_f32(scale[g]) : k_bf16_f32(scale[g]);
        size_t i = g * group, end = i + group;
        for (; i + 8 <= end; i += 8) {
            int32_t w;
            memcpy(&w, codes + i / 2, sizeof(w));
            __m256i q = _mm256_srlv_epi32(_mm256_set1_epi32(w), shift);
            q = _mm256_and_si256(q, _mm256_set1_epi32(15));
            q = _mm256_sub_epi32(q, _mm256_set1_epi32(8));
            _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_cvtepi32_ps(q), _mm256_set1_ps(s)));
        }
        for (; i < end; i++)
            out[i] = (float)((codes[i / 2] >> i % 2 * 4 & 15) - 8) * s;
    }
}

void
k_groupq_avx2_init(struct moe_kernels *k)
{
    k->quant_i4_bf16 = quant_i4_bf16;
    k->quant_i4_f16 = quant_i4_f16;
    k->quant_i4_f32 = quant_i4_f32;
    k->quant_i8_bf16 = quant_i8_bf16;
    k->quant_i8_f16 = quant_i8_f16;
    k->quant_i8_f32 = quant_i8_f32;
    k->dequant_i4 = dequant_i4;
}
