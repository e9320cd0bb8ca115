/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions between float and the short formats, sixteen at a time, the rest
 * under a mask.
 */
#include <immintrin.h>

#include "kernels/kernels_init.h"

/* The lanes of elements i .. n-1, sixteen at most. */
static inline __mmask16
lanes(size_t i, size_t n)
{
    return n - i >= 16 ? 0xffff : (__mmask16)((1u << (n - i)) - 1);
}

static void
bf16_f32(float *out, const uint16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(i, n);
        __m512i w = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, x + i));
        _mm512_mask_storeu_epi32(out + i, m, _mm512_slli_epi32(w, 16));
    }
}

static void
f16_f32(float *out, const uint16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(i, n);
        _mm512_mask_storeu_ps(out + i, m,
            _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, x + i)));
    }
}

/* Read as an F16 of the same digits, whose bias is 8 more. */
static void
e4m3_f32(float *out, const uint8_t *x, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(i, n);
        __m256i v = _mm256_cvtepu8_epi16(_mm_maskz_loadu_epi8(m, x + i));
        __m256i a = _mm256_and_si256(v, _mm256_set1_epi16(0x7f));
        __m256i s = _mm256_and_si256(_mm256_slli_epi16(v, 8), _mm256_set1_epi16((short)0x8000));
        __mmask16 nan = _mm256_cmpeq_epi16_mask(a, _mm256_set1_epi16(0x7f));
        __m512 f = _mm512_cvtph_ps(_mm256_or_si256(_mm256_slli_epi16(a, 7), s));

        f = _mm512_mul_ps(f, _mm512_set1_ps(256.0f));
        f = _mm512_mask_mov_ps(f, nan, _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)));
        _mm512_mask_storeu_ps(out + i, m, f);
    }
}

static void
f32_bf16(uint16_t *out, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(i, n);
        __m512i u = _mm512_maskz_loadu_epi32(m, x + i);
        __m512i abs = _mm512_and_si512(u, _mm512_set1_epi32(0x7fffffff));
        __mmask16 nan = _mm512_cmpgt_epi32_mask(abs, _mm512_set1_epi32(0x7f800000));
        __m512i hi = _mm512_srli_epi32(u, 16);
        __m512i odd = _mm512_and_si512(hi, _mm512_set1_epi32(1));
        __m512i r = _mm512_add_epi32(u, _mm512_add_epi32(_mm512_set1_epi32(0x7fff), odd));

        r = _mm512_mask_or_epi32(_mm512_srli_epi32(r, 16), nan, hi, _mm512_set1_epi32(0x40));
        _mm256_mask_storeu_epi16(out + i, m, _mm512_cvtepi32_epi16(r));
    }
}

static void
f32_f16(uint16_t *out, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(i, n);
        _mm256_mask_storeu_epi16(out + i, m,
            _mm512_cvtps_ph(_mm512_maskz_loadu_ps(m, x + i), _MM_FROUND_TO_NEAREST_INT));
    }
}

/* The steps are those of k_f32_e4m3(). */
static void
f32_e4m3(uint8_t *out, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(i, n);
        __m512i u = _mm512_maskz_loadu_epi32(m, x + i);
        __m512i abs = _mm512_and_si512(u, _mm512_set1_epi32(0x7fffffff));
        __mmask16 nan = _mm512_cmpgt_epi32_mask(abs, _mm512_set1_epi32(0x7f800000));
        __m512i a = _mm512_min_epi32(abs, _mm512_set1_epi32(0x43e00000));
        __mmask16 small = _mm512_cmplt_epi32_mask(a, _mm512_set1_epi32(0x3c800000));
        __m512i odd = _mm512_and_si512(_mm512_srli_epi32(a, 20), _mm512_set1_epi32(1));
        __m512i r = _mm512_add_epi32(a, _mm512_add_epi32(_mm512_set1_epi32(0x7ffff), odd));
        __m512 low = _mm512_add_ps(_mm512_castsi512_ps(a), _mm512_set1_ps(16384.0f));

        r = _mm512_sub_epi32(_mm512_srli_epi32(r, 20), _mm512_set1_epi32(120 << 3));
        r = _mm512_mask_sub_epi32(r, small, _mm512_castps_si512(low),
            _mm512_set1_epi32(0x46800000));
        r = _mm512_or_si512(r,
            _mm512_and_si512(_mm512_srli_epi32(u, 24), _mm512_set1_epi32(0x80)));
        r = _mm512_mask_mov_epi32(r, nan, _mm512_set1_epi32(0x7f));
        _mm_mask_storeu_epi8(out + i, m, _mm512_cvtepi32_epi8(r));
    }
}

void
k_convert_avx512_init(struct moe_kernels *k)
{
    k->bf16_f32 = bf16_f32;
    k->f16_f32 = f16_f32;
    k->e4m3_f32 = e4m3_f32;
    k->f32_bf16 = f32_bf16;
    k->f32_f16 = f32_f16;
    k->f32_e4m3 = f32_e4m3;
}
