/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vector times a number added to a vector, AVX-512.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx512.h"

static void
axpy_f32(float *out, const float *x, float a, size_t n)
{
    const __m512 va = _mm512_set1_ps(a);
    __mmask16 mask = k_mask16(n % 16);
    size_t i = 0;

    for (; n - i >= 16; i += 16)
        _mm512_storeu_ps(out + i,
            _mm512_fmadd_ps(va, _mm512_loadu_ps(x + i), _mm512_loadu_ps(out + i)));
    _mm512_mask_storeu_ps(out + i, mask,
        _mm512_fmadd_ps(va, _mm512_maskz_loadu_ps(mask, x + i),
            _mm512_maskz_loadu_ps(mask, out + i)));
}

void
k_axpy_avx512_init(struct moe_kernels *k)
{
    k->axpy_f32 = axpy_f32;
}
