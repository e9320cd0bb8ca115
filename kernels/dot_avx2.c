/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dot product of two vectors, AVX2.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx2.h"

static float
dot_f32(const float *a, const float *b, size_t n)
{
    __m256 lo = _mm256_setzero_ps(), hi = lo;
    __m256i mask;
    size_t i = 0;

    for (; n - i >= 16; i += 16) {
        lo = _mm256_fmadd_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i), lo);
        hi = _mm256_fmadd_ps(_mm256_loadu_ps(a + i + 8), _mm256_loadu_ps(b + i + 8), hi);
    }
    if (i < n) {
        mask = k_mask8(n - i);
        lo = k_fma8_where(mask, _mm256_maskload_ps(a + i, mask), _mm256_maskload_ps(b + i, mask),
            lo);
    }
    if (i + 8 < n) {
        mask = k_mask8(n - i - 8);
        hi = k_fma8_where(mask, _mm256_maskload_ps(a + i + 8, mask),
            _mm256_maskload_ps(b + i + 8, mask), hi);
    }
    return k_sum16(lo, hi);
}

void
k_dot_avx2_init(struct moe_kernels *k)
{
    k->dot_f32 = dot_f32;
}
