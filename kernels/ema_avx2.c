/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step of an exponential average, AVX2.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx2.h"

/* Four elements; the residual of what comes back is in lo. */
K_INLINE __m128
step4(__m128 hi, __m128 *lo, __m128 x, __m256d w)
{
    __m256d e = _mm256_add_pd(_mm256_cvtps_pd(hi), _mm256_cvtps_pd(*lo));
    __m128 top;

    e = _mm256_fmadd_pd(w, _mm256_sub_pd(_mm256_cvtps_pd(x), e), e);
    top = _mm256_cvtpd_ps(e);
    *lo = _mm256_cvtpd_ps(_mm256_sub_pd(e, _mm256_cvtps_pd(top)));
    return top;
}

K_INLINE __m256
step8(__m256 hi, __m256 *lo, __m256 x, __m256d w)
{
    __m128 l0 = _mm256_castps256_ps128(*lo), l1 = _mm256_extractf128_ps(*lo, 1);
    __m128 h0 = step4(_mm256_castps256_ps128(hi), &l0, _mm256_castps256_ps128(x), w);
    __m128 h1 = step4(_mm256_extractf128_ps(hi, 1), &l1, _mm256_extractf128_ps(x, 1), w);

    *lo = _mm256_set_m128(l1, l0);
    return _mm256_set_m128(h1, h0);
}

/* Minus one in the lanes that hold NaN or infinity. */
K_INLINE __m256i
unfit(__m256 x)
{
    const __m256i top = _mm256_set1_epi32(0x7f800000);

    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_castps_si256(x), top), top);
}

static size_t
ema_f32(float *hi, float *lo, const float *x, double w, size_t n)
{
    const __m256d vw = _mm256_set1_pd(w);
    size_t i = 0, bad = 0;

    for (; n - i >= 8; i += 8) {
        __m256 v = _mm256_loadu_ps(x + i), l = _mm256_loadu_ps(lo + i);
        int mask = _mm256_movemask_ps(_mm256_castsi256_ps(unfit(v)));

        _mm256_storeu_ps(hi + i, step8(_mm256_loadu_ps(hi + i), &l, v, vw));
        _mm256_storeu_ps(lo + i, l);
        if (mask != 0)
            bad += (size_t)__builtin_popcount((unsigned)mask);
    }
    if (i < n) {
        __m256i mask = k_mask8(n - i);
        __m256 v = _mm256_maskload_ps(x + i, mask), l = _mm256_maskload_ps(lo + i, mask);

        _mm256_maskstore_ps(hi + i, mask, step8(_mm256_maskload_ps(hi + i, mask), &l, v, vw));
        _mm256_maskstore_ps(lo + i, mask, l);
        bad += (size_t)__builtin_popcount(
            (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(unfit(v))));
    }
    return bad;
}

void
k_ema_avx2_init(struct moe_kernels *k)
{
    k->ema_f32 = ema_f32;
}
