/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dot product of two vectors, AVX-512.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx512.h"

static float
dot_f32(const float *a, const float *b, size_t n)
{
    __m512 acc = _mm512_setzero_ps();
    __mmask16 mask = k_mask16(n % 16);
    size_t i = 0;

    for (; n - i >= 16; i += 16)
        acc = _mm512_fmadd_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i), acc);
    acc = _mm512_mask3_fmadd_ps(_mm512_maskz_loadu_ps(mask, a + i),
        _mm512_maskz_loadu_ps(mask, b + i), acc, mask);
    return k_sum16(acc);
}

void
k_dot_avx512_init(struct moe_kernels *k)
{
    k->dot_f32 = dot_f32;
}
