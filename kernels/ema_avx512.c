/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step of an exponential average, AVX-512.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx512.h"

K_INLINE __m256
upper(__m512 v)
{
    return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
}

K_INLINE __m512
both(__m256 lo, __m256 hi)
{
    return _mm512_castpd_ps(_mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_castps_pd(lo)),
        _mm256_castps_pd(hi), 1));
}

/* Eight elements; the residual of what comes back is in lo, how many x are no numbers in bad. */
K_INLINE __m256
step8(__m256 hi, __m256 *lo, __m256 x, __m512d w, size_t *bad)
{
    __m512d e = _mm512_add_pd(_mm512_cvtps_pd(hi), _mm512_cvtps_pd(*lo));
    __m512d wide = _mm512_cvtps_pd(x), none = _mm512_sub_pd(wide, wide);
    __m256 top;

    e = _mm512_fmadd_pd(w, _mm512_sub_pd(wide, e), e);
    top = _mm512_cvtpd_ps(e);
    *lo = _mm512_cvtpd_ps(_mm512_sub_pd(e, _mm512_cvtps_pd(top)));
    *bad += (size_t)__builtin_popcount(_mm512_cmp_pd_mask(none, none, _CMP_UNORD_Q));
    return top;
}

static size_t
ema_f32(float *hi, float *lo, const float *x, double w, size_t n)
{
    const __m512d vw = _mm512_set1_pd(w);
    size_t bad = 0;

    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = k_mask16(n - i < 16 ? n - i : 16);
        __m512 h = _mm512_maskz_loadu_ps(mask, hi + i), l = _mm512_maskz_loadu_ps(mask, lo + i);
        __m512 v = _mm512_maskz_loadu_ps(mask, x + i);
        __m256 l0 = _mm512_castps512_ps256(l), l1 = upper(l);
        __m256 h0 = step8(_mm512_castps512_ps256(h), &l0, _mm512_castps512_ps256(v), vw, &bad);
        __m256 h1 = step8(upper(h), &l1, upper(v), vw,
            &bad);

        _mm512_mask_storeu_ps(hi + i, mask,
            both(h0, h1));
        _mm512_mask_storeu_ps(lo + i, mask,
            both(l0, l1));
    }
    return bad;
}

void
k_ema_avx512_init(struct moe_kernels *k)
{
    k->ema_f32 = ema_f32;
}
