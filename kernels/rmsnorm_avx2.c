/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMSNorm, AVX2.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx2.h"

static float
sum_squares(const float *x, size_t n)
{
    __m256 lo = _mm256_setzero_ps(), hi = lo, v;
    __m256i mask;
    size_t i = 0;

    for (; n - i >= 16; i += 16) {
        v = _mm256_loadu_ps(x + i);
        lo = _mm256_fmadd_ps(v, v, lo);
        v = _mm256_loadu_ps(x + i + 8);
        hi = _mm256_fmadd_ps(v, v, hi);
    }
    /* A square is never -0, so that adding the square of 0 changes no lane. */
    if (i < n) {
        mask = k_mask8(n - i);
        v = _mm256_maskload_ps(x + i, mask);
        lo = _mm256_fmadd_ps(v, v, lo);
    }
    if (i + 8 < n) {
        mask = k_mask8(n - i - 8);
        v = _mm256_maskload_ps(x + i + 8, mask);
        hi = _mm256_fmadd_ps(v, v, hi);
    }
    return k_sum16(lo, hi);
}

static void
rmsnorm_f32(float *out, const float *x, const float *w, size_t n, float eps)
{
    const __m256 r = _mm256_set1_ps(1.0f / sqrtf(sum_squares(x, n) / (float)n + eps));
    size_t i = 0;

    for (; n - i >= 8; i += 8) {
        __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x + i), r);

        _mm256_storeu_ps(out + i, _mm256_mul_ps(v, _mm256_loadu_ps(w + i)));
    }
    if (i < n) {
        __m256i mask = k_mask8(n - i);
        __m256 v = _mm256_mul_ps(_mm256_maskload_ps(x + i, mask), r);

        _mm256_maskstore_ps(out + i, mask, _mm256_mul_ps(v, _mm256_maskload_ps(w + i, mask)));
    }
}

void
k_rmsnorm_avx2_init(struct moe_kernels *k)
{
    k->rmsnorm_f32 = rmsnorm_f32;
}
