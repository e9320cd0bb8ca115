/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMSNorm, AVX-512.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx512.h"

static float
sum_squares(const float *x, size_t n)
{
    __m512 acc = _mm512_setzero_ps(), v;
    size_t i = 0;

    for (; n - i >= 16; i += 16) {
        v = _mm512_loadu_ps(x + i);
        acc = _mm512_fmadd_ps(v, v, acc);
    }
    /* A square is never -0, so that adding the square of 0 changes no lane. */
    v = _mm512_maskz_loadu_ps(k_mask16(n - i), x + i);
    return k_sum16(_mm512_fmadd_ps(v, v, acc));
}

static void
rmsnorm_f32(float *out, const float *x, const float *w, size_t n, float eps)
{
    const __m512 r = _mm512_set1_ps(1.0f / sqrtf(sum_squares(x, n) / (float)n + eps));
    __mmask16 mask = k_mask16(n % 16);
    __m512 v;
    size_t i = 0;

    for (; n - i >= 16; i += 16) {
        v = _mm512_mul_ps(_mm512_loadu_ps(x + i), r);
        _mm512_storeu_ps(out + i, _mm512_mul_ps(v, _mm512_loadu_ps(w + i)));
    }
    v = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + i), r);
    _mm512_mask_storeu_ps(out + i, mask, _mm512_mul_ps(v, _mm512_maskz_loadu_ps(mask, w + i)));
}

void
k_rmsnorm_avx512_init(struct moe_kernels *k)
{
    k->rmsnorm_f32 = rmsnorm_f32;
}
