/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error sums of a reconstruction: the 16 lanes are two vectors of double. The
 * last, short step is filled up with zeros by the mask, which change no sum.
 */
#include <immintrin.h>

#include "kernels/kernels_init.h"

static inline double
tree(__m512d lo, __m512d hi)
{
    __m512d a = _mm512_add_pd(lo, hi);
    __m256d b = _mm256_add_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
    __m128d c = _mm_add_pd(_mm256_castpd256_pd128(b), _mm256_extractf128_pd(b, 1));

    return _mm_cvtsd_f64(_mm_add_sd(c, _mm_unpackhi_pd(c, c)));
}

static void
err_f32(double s[3], const float *x, const float *y, size_t n)
{
    __m512d square[2], error[2], max = _mm512_setzero_pd();
    double m[8];

    square[0] = square[1] = error[0] = error[1] = _mm512_setzero_pd();
    for (size_t i = 0; i < n; i += 16) {
        for (int v = 0; v < 2 && i + 8 * (size_t)v < n; v++) {
            size_t at = i + 8 * (size_t)v;
            __mmask8 k = n - at >= 8 ? 0xff : (__mmask8)((1u << (n - at)) - 1);
            __m512d a = _mm512_cvtps_pd(_mm256_maskz_loadu_ps(k, x + at));
            __m512d d = _mm512_sub_pd(a, _mm512_cvtps_pd(_mm256_maskz_loadu_ps(k, y + at)));
            square[v] = _mm512_fmadd_pd(a, a, square[v]);
            error[v] = _mm512_fmadd_pd(d, d, error[v]);
            max = _mm512_max_pd(_mm512_abs_pd(d), max);     /* the old one if NaN */
        }
    }
    _mm512_storeu_pd(m, max);
    for (int v = 0; v < 8; v++)
        s[2] = m[v] > s[2] ? m[v] : s[2];
    s[0] += tree(square[0], square[1]);
    s[1] += tree(error[0], error[1]);
}

void
k_errsum_avx512_init(struct moe_kernels *k)
{
    k->err_f32 = err_f32;
}
