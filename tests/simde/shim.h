/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AVX-512 without AVX-512: included before an AVX-512 kernel, it makes the
 * intrinsics calls of SIMDe, and adds those that SIMDe 0.7.4 lacks, lane by lane
 * after the Intel Intrinsics Guide. A kernel that needs another one gets a
 * compiler error here; add it.
 */
#ifndef TESTS_SIMDE_SHIM_H
#define TESTS_SIMDE_SHIM_H

#define SIMDE_ENABLE_NATIVE_ALIASES
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wpsabi"
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>
#pragma GCC diagnostic pop

#include <stdint.h>
#include <string.h>

#define SHIM static inline

/* A vector as lanes of any kind. */
union shim {
    simde__m512 f;
    simde__m512d d;
    simde__m512i i;
    __m256 half_f[2];
    __m256i half_i[2];
    float f32[16];
    double f64[8];
    int32_t i32[16];
    uint32_t u32[16];
    uint16_t u16[32];
};

/* Copies of the lanes of `size` bytes that mask names; no other memory is touched. */
SHIM void
shim_copy(void *to, const void *from, uint64_t mask, int lanes, size_t size)
{
    for (int l = 0; l < lanes; l++)
        if (mask >> l & 1)
            memcpy((uint8_t *)to + (size_t)l * size, (const uint8_t *)from + (size_t)l * size,
                size);
}

SHIM __m256
shim_cvtpd_ps(simde__m512d a)
{
    union shim v = { .d = a }, r = { .i = simde_mm512_setzero_si512() };

    for (int l = 0; l < 8; l++)
        r.f32[l] = (float)v.f64[l];
    return r.half_f[0];
}

SHIM simde__m512
shim_maskz_loadu_ps(simde__mmask16 mask, const void *p)
{
    union shim v = { .i = simde_mm512_setzero_si512() };

    shim_copy(&v, p, mask, 16, 4);
    return v.f;
}

SHIM simde__m512i
shim_maskz_loadu_epi32(simde__mmask16 mask, const void *p)
{
    union shim v = { .i = simde_mm512_setzero_si512() };

    shim_copy(&v, p, mask, 16, 4);
    return v.i;
}

SHIM __m256
shim_256_maskz_loadu_ps(simde__mmask8 mask, const void *p)
{
    union shim v = { .i = simde_mm512_setzero_si512() };

    shim_copy(&v, p, mask, 8, 4);
    return v.half_f[0];
}

SHIM __m256i
shim_256_maskz_loadu_epi16(simde__mmask16 mask, const void *p)
{
    union shim v = { .i = simde_mm512_setzero_si512() };

    shim_copy(&v, p, mask, 16, 2);
    return v.half_i[0];
}

SHIM __m128i
shim_128_maskz_loadu_epi8(simde__mmask16 mask, const void *p)
{
    __m128i v = _mm_setzero_si128();

    shim_copy(&v, p, mask, 16, 1);
    return v;
}

SHIM void
shim_mask_storeu_ps(void *p, simde__mmask16 mask, simde__m512 a)
{
    shim_copy(p, &a, mask, 16, 4);
}

SHIM void
shim_mask_storeu_epi32(void *p, simde__mmask16 mask, simde__m512i a)
{
    shim_copy(p, &a, mask, 16, 4);
}

SHIM void
shim_256_mask_storeu_epi16(void *p, simde__mmask16 mask, __m256i a)
{
    shim_copy(p, &a, mask, 16, 2);
}

SHIM void
shim_128_mask_storeu_epi8(void *p, simde__mmask16 mask, __m128i a)
{
    shim_copy(p, &a, mask, 16, 1);
}

SHIM simde__m512
shim_mask3_fmadd_ps(simde__m512 a, simde__m512 b, simde__m512 c, simde__mmask16 mask)
{
    return simde_mm512_mask_mov_ps(c, mask, simde_mm512_fmadd_ps(a, b, c));
}

SHIM simde__m512
shim_fmaddsub_ps(simde__m512 a, simde__m512 b, simde__m512 c)
{
    union shim x = { .f = a }, y = { .f = b }, z = { .f = c };

    for (int h = 0; h < 2; h++)
        x.half_f[h] = _mm256_fmaddsub_ps(x.half_f[h], y.half_f[h], z.half_f[h]);
    return x.f;
}

SHIM simde__m512
shim_permute_ps(simde__m512 a, int imm)
{
    union shim x = { .f = a }, y;

    for (int l = 0; l < 16; l++)
        y.f32[l] = x.f32[(l & ~3) + (imm >> 2 * (l & 3) & 3)];
    return y.f;
}

SHIM simde__m512
shim_cvtepi32_ps(simde__m512i a)
{
    union shim x = { .i = a };

    for (int h = 0; h < 2; h++)
        x.half_f[h] = _mm256_cvtepi32_ps(x.half_i[h]);
    return x.f;
}

SHIM simde__m512i
shim_cvtps_epi32(simde__m512 a)
{
    union shim x = { .f = a };

    for (int h = 0; h < 2; h++)
        x.half_i[h] = _mm256_cvtps_epi32(x.half_f[h]);
    return x.i;
}

SHIM simde__m512i
shim_cvtepu16_epi32(__m256i a)
{
    union shim x = { .half_i = { a, a } }, y;

    for (int l = 0; l < 16; l++)
        y.u32[l] = x.u16[l];
    return y.i;
}

SHIM simde__m512i
shim_cvtepu8_epi32(__m128i a)
{
    union shim y;
    uint8_t x[16];

    memcpy(x, &a, sizeof(x));
    for (int l = 0; l < 16; l++)
        y.u32[l] = x[l];
    return y.i;
}

SHIM __m256i
shim_cvtepi32_epi16(simde__m512i a)
{
    union shim x = { .i = a }, y;

    for (int l = 0; l < 16; l++)
        y.u16[l] = (uint16_t)x.u32[l];
    return y.half_i[0];
}

SHIM __m128i
shim_cvtepi32_epi8(simde__m512i a)
{
    union shim x = { .i = a };
    uint8_t y[16];

    for (int l = 0; l < 16; l++)
        y[l] = (uint8_t)x.u32[l];
    return _mm_loadu_si128((const __m128i *)y);
}

SHIM __m128i
shim_256_cvtepi16_epi8(__m256i a)
{
    union shim x = { .half_i = { a, a } };
    uint8_t y[16];

    for (int l = 0; l < 16; l++)
        y[l] = (uint8_t)x.u16[l];
    return _mm_loadu_si128((const __m128i *)y);
}

SHIM simde__m512
shim_cvtph_ps(__m256i a)
{
    union shim x;

    x.half_f[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(a));
    x.half_f[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1));
    return x.f;
}

/* Rounding as the environment says, to nearest even, which is all the kernels ask for. */
SHIM __m256i
shim_cvtps_ph(simde__m512 a)
{
    union shim x = { .f = a };

    return _mm256_set_m128i(_mm256_cvtps_ph(x.half_f[1], _MM_FROUND_TO_NEAREST_INT),
        _mm256_cvtps_ph(x.half_f[0], _MM_FROUND_TO_NEAREST_INT));
}

SHIM simde__m512d
shim_cvtps_pd(__m256 a)
{
    union shim x = { .half_f = { a, a } }, y;

    for (int l = 0; l < 8; l++)
        y.f64[l] = x.f32[l];
    return y.d;
}

SHIM simde__m512i
shim_srai_epi32(simde__m512i a, unsigned n)
{
    union shim x = { .i = a };

    for (int l = 0; l < 16; l++)
        x.i32[l] >>= n;
    return x.i;
}

SHIM simde__m512i
shim_broadcast_i32x8(__m256i a)
{
    union shim x = { .half_i = { a, a } };

    return x.i;
}

SHIM uint32_t
shim_reduce_max_epu32(simde__m512i a)
{
    union shim x = { .i = a };
    uint32_t max = 0;

    for (int l = 0; l < 16; l++)
        max = x.u32[l] > max ? x.u32[l] : max;
    return max;
}

SHIM simde__mmask16
shim_cmplt_epi32_mask(simde__m512i a, simde__m512i b)
{
    return simde_mm512_cmpgt_epi32_mask(b, a);
}

SHIM simde__mmask16
shim_256_cmpeq_epi16_mask(__m256i a, __m256i b)
{
    union shim x = { .half_i = { _mm256_cmpeq_epi16(a, b), a } };
    unsigned mask = 0;

    for (int l = 0; l < 16; l++)
        mask |= (unsigned)(x.u16[l] & 1) << l;
    return (simde__mmask16)mask;
}

/* GCC has some of them as macros without optimisation. */
#undef _mm512_maskz_loadu_ps
#define _mm512_maskz_loadu_ps shim_maskz_loadu_ps
#undef _mm512_maskz_loadu_epi32
#define _mm512_maskz_loadu_epi32 shim_maskz_loadu_epi32
#undef _mm256_maskz_loadu_ps
#define _mm256_maskz_loadu_ps shim_256_maskz_loadu_ps
#undef _mm256_maskz_loadu_epi16
#define _mm256_maskz_loadu_epi16 shim_256_maskz_loadu_epi16
#undef _mm_maskz_loadu_epi8
#define _mm_maskz_loadu_epi8 shim_128_maskz_loadu_epi8
#undef _mm512_mask_storeu_ps
#define _mm512_mask_storeu_ps shim_mask_storeu_ps
#undef _mm512_mask_storeu_epi32
#define _mm512_mask_storeu_epi32 shim_mask_storeu_epi32
#undef _mm256_mask_storeu_epi16
#define _mm256_mask_storeu_epi16 shim_256_mask_storeu_epi16
#undef _mm_mask_storeu_epi8
#define _mm_mask_storeu_epi8 shim_128_mask_storeu_epi8
#undef _mm512_mask3_fmadd_ps
#define _mm512_mask3_fmadd_ps shim_mask3_fmadd_ps
#undef _mm512_fmaddsub_ps
#define _mm512_fmaddsub_ps shim_fmaddsub_ps
#undef _mm512_permute_ps
#define _mm512_permute_ps shim_permute_ps
#undef _mm512_cvtepi32_ps
#define _mm512_cvtepi32_ps shim_cvtepi32_ps
#undef _mm512_cvtps_epi32
#define _mm512_cvtps_epi32 shim_cvtps_epi32
#undef _mm512_cvtepu16_epi32
#define _mm512_cvtepu16_epi32 shim_cvtepu16_epi32
#undef _mm512_cvtepu8_epi32
#define _mm512_cvtepu8_epi32 shim_cvtepu8_epi32
#undef _mm512_cvtepi32_epi16
#define _mm512_cvtepi32_epi16 shim_cvtepi32_epi16
#undef _mm512_cvtepi32_epi8
#define _mm512_cvtepi32_epi8 shim_cvtepi32_epi8
#undef _mm256_cvtepi16_epi8
#define _mm256_cvtepi16_epi8 shim_256_cvtepi16_epi8
#undef _mm512_cvtph_ps
#define _mm512_cvtph_ps shim_cvtph_ps
#undef _mm512_cvtps_ph
#define _mm512_cvtps_ph(a, rounding) shim_cvtps_ph(a)
#undef _mm512_cvtpd_ps
#define _mm512_cvtpd_ps shim_cvtpd_ps
#undef _mm512_cvtps_pd
#define _mm512_cvtps_pd shim_cvtps_pd
#undef _mm512_srai_epi32
#define _mm512_srai_epi32 shim_srai_epi32
#undef _mm512_broadcast_i32x8
#define _mm512_broadcast_i32x8 shim_broadcast_i32x8
#undef _mm512_reduce_max_epu32
#define _mm512_reduce_max_epu32 shim_reduce_max_epu32
#undef _mm512_cmplt_epi32_mask
#define _mm512_cmplt_epi32_mask shim_cmplt_epi32_mask
#undef _mm256_cmpeq_epi16_mask
#define _mm256_cmpeq_epi16_mask shim_256_cmpeq_epi16_mask

#endif
