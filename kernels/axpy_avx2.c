/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vector times a number added to a vector, AVX2.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx2.h"

static void
axpy_f32(float *out, const float *x, float a, size_t n)
{
    const __m256 va = _mm256_set1_ps(a);
    size_t i = 0;

    for (; n - i >= 8; i += 8)
        _mm256_storeu_ps(out + i,
            _mm256_fmadd_ps(va, _mm256_loadu_ps(x + i), _mm256_loadu_ps(out + i)));
    if (i < n) {
        __m256i mask = k_mask8(n - i);
        __m256 v = _mm256_fmadd_ps(va, _mm256_maskload_ps(x + i, mask),
            _mm256_maskload_ps(out + i, mask));

        _mm256_maskstore_ps(out + i, mask, v);
    }
}

void
k_axpy_avx2_init(struct moe_kernels *k)
{
    k->axpy_f32 = axpy_f32;
}
