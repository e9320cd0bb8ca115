/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax in place, AVX2.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx2.h"

/* The largest number; the order of comparing does not matter, NaN loses. */
static float
largest(const float *x, size_t n)
{
    const __m256 least = _mm256_set1_ps(-INFINITY);
    __m256 max = least;
    float lane[8], m;

    for (size_t i = 0; i < n; i += 8) {
        __m256i mask = k_mask8(n - i);
        __m256 v = _mm256_blendv_ps(least, _mm256_maskload_ps(x + i, mask),
            _mm256_castsi256_ps(mask));

        max = _mm256_max_ps(v, max);
    }
    _mm256_storeu_ps(lane, max);
    m = lane[0];
    for (int i = 1; i < 8; i++)
        m = lane[i] > m ? lane[i] : m;
    return m;
}

/* x = exp(x - max) where the mask is set; gives it back with 0 elsewhere. */
K_INLINE __m256
exp_part(float *x, __m256i mask, __m256 max)
{
    __m256 e = k_exp8(_mm256_sub_ps(_mm256_maskload_ps(x, mask), max));

    _mm256_maskstore_ps(x, mask, e);
    return _mm256_and_ps(e, _mm256_castsi256_ps(mask));
}

static void
softmax_f32(float *x, size_t n)
{
    const __m256 max = _mm256_set1_ps(largest(x, n));
    __m256 lo = _mm256_setzero_ps(), hi = lo, sum;

    /* An exponential is never -0, so that adding 0 changes no lane. */
    for (size_t i = 0; i < n; i += 16) {
        lo = _mm256_add_ps(lo, exp_part(x + i, k_mask8(n - i), max));
        if (i + 8 < n)
            hi = _mm256_add_ps(hi, exp_part(x + i + 8, k_mask8(n - i - 8), max));
    }
    sum = _mm256_set1_ps(k_sum16(lo, hi));
    for (size_t i = 0; i < n; i += 8) {
        __m256i mask = k_mask8(n - i);

        _mm256_maskstore_ps(x + i, mask, _mm256_div_ps(_mm256_maskload_ps(x + i, mask), sum));
    }
}

void
k_softmax_avx2_init(struct moe_kernels *k)
{
    k->softmax_f32 = softmax_f32;
}
