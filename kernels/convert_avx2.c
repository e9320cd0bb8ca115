/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions between float and the short formats, eight at a time; what is
 * left at the end goes one by one, as in the reference.
 */
#include <immintrin.h>

#include "kernels/kernels_init.h"
#include "kernels/round.h"

static inline __m128i
load128(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

static void
bf16_f32(float *out, const uint16_t *x, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        __m256i w = _mm256_slli_epi32(_mm256_cvtepu16_epi32(load128(x + i)), 16);
        _mm256_storeu_ps(out + i, _mm256_castsi256_ps(w));
    }
    for (; i < n; i++)
        out[i] = k_bf16_f32(x[i]);
}

static void
f16_f32(float *out, const uint16_t *x, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(load128(x + i)));
    for (; i < n; i++)
        out[i] = k_f16_f32(x[i]);
}

/* Read as an F16 of the same digits, whose bias is 8 more. */
static void
e4m3_f32(float *out, const uint8_t *x, size_t n)
{
    const __m128i low = _mm_set1_epi16(0x7f), sign = _mm_set1_epi16((short)0x8000);
    const __m256 scale = _mm256_set1_ps(256.0f), top = _mm256_set1_ps(480.0f);
    const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        __m128i v = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)(x + i)));
        __m128i a = _mm_slli_epi16(_mm_and_si128(v, low), 7);
        __m128i s = _mm_and_si128(_mm_slli_epi16(v, 8), sign);
        __m256 f = _mm256_mul_ps(_mm256_cvtph_ps(_mm_or_si128(a, s)), scale);
        __m256 m = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), f);
        f = _mm256_blendv_ps(f, nan, _mm256_cmp_ps(m, top, _CMP_EQ_OQ));
        _mm256_storeu_ps(out + i, f);
    }
    for (; i < n; i++)
        out[i] = k_e4m3_f32(x[i]);
}

/* Eight floats as BF16 in the low half of each word. */
static inline __m256i
round_bf16(const float *x)
{
    __m256i u = _mm256_loadu_si256((const __m256i *)x);
    __m256i a = _mm256_and_si256(u, _mm256_set1_epi32(0x7fffffff));
    __m256i nan = _mm256_cmpgt_epi32(a, _mm256_set1_epi32(0x7f800000));
    __m256i hi = _mm256_srli_epi32(u, 16);
    __m256i odd = _mm256_and_si256(hi, _mm256_set1_epi32(1));
    __m256i r = _mm256_add_epi32(u, _mm256_add_epi32(_mm256_set1_epi32(0x7fff), odd));

    return _mm256_blendv_epi8(_mm256_srli_epi32(r, 16),
        _mm256_or_si256(hi, _mm256_set1_epi32(0x40)), nan);
}

static void
f32_bf16(uint16_t *out, const float *x, size_t n)
{
    size_t i = 0;

    for (; i + 16 <= n; i += 16) {
        __m256i w = _mm256_packus_epi32(round_bf16(x + i), round_bf16(x + i + 8));
        _mm256_storeu_si256((__m256i *)(out + i), _mm256_permute4x64_epi64(w, 0xd8));
    }
    for (; i < n; i++)
        out[i] = k_f32_bf16(x[i]);
}

static void
f32_f16(uint16_t *out, const float *x, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        __m256 v = _mm256_loadu_ps(x + i);
        _mm_storeu_si128((__m128i *)(out + i), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    }
    for (; i < n; i++)
        out[i] = k_f32_f16(x[i]);
}

/* Eight floats as E4M3 codes, one a word; the steps are those of k_f32_e4m3(). */
static inline __m256i
round_e4m3(const float *x)
{
    __m256i u = _mm256_loadu_si256((const __m256i *)x);
    __m256i abs = _mm256_and_si256(u, _mm256_set1_epi32(0x7fffffff));
    __m256i nan = _mm256_cmpgt_epi32(abs, _mm256_set1_epi32(0x7f800000));
    __m256i a = _mm256_min_epi32(abs, _mm256_set1_epi32(0x43e00000));
    __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x3c800000), a);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(a, 20), _mm256_set1_epi32(1));
    __m256i r = _mm256_add_epi32(a, _mm256_add_epi32(_mm256_set1_epi32(0x7ffff), odd));
    __m256 m = _mm256_add_ps(_mm256_castsi256_ps(a), _mm256_set1_ps(16384.0f));
    __m256i sign = _mm256_and_si256(_mm256_srli_epi32(u, 24), _mm256_set1_epi32(0x80));

    r = _mm256_sub_epi32(_mm256_srli_epi32(r, 20), _mm256_set1_epi32(120 << 3));
    r = _mm256_blendv_epi8(r,
        _mm256_sub_epi32(_mm256_castps_si256(m), _mm256_set1_epi32(0x46800000)), small);
    return _mm256_blendv_epi8(_mm256_or_si256(r, sign), _mm256_set1_epi32(0x7f), nan);
}

static void
f32_e4m3(uint8_t *out, const float *x, size_t n)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    size_t i = 0;

    for (; i + 32 <= n; i += 32) {
        __m256i a = _mm256_packus_epi32(round_e4m3(x + i), round_e4m3(x + i + 8));
        __m256i b = _mm256_packus_epi32(round_e4m3(x + i + 16), round_e4m3(x + i + 24));
        __m256i w = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, b), order);
        _mm256_storeu_si256((__m256i *)(out + i), w);
    }
    for (; i < n; i++)
        out[i] = k_f32_e4m3(x[i]);
}

void
k_convert_avx2_init(struct moe_kernels *k)
{
    k->bf16_f32 = bf16_f32;
    k->f16_f32 = f16_f32;
    k->e4m3_f32 = e4m3_f32;
    k->f32_bf16 = f32_bf16;
    k->f32_f16 = f32_f16;
    k->f32_e4m3 = f32_e4m3;
}
