/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax in place, AVX-512.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx512.h"

static __mmask16
part(size_t n)
{
    return n < 16 ? k_mask16(n) : 0xffff;
}

/* The largest number; the order of comparing does not matter, NaN loses. */
static float
largest(const float *x, size_t n)
{
    const __m512 least = _mm512_set1_ps(-INFINITY);
    __m512 max = least;
    float lane[16], m;

    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = part(n - i);
        __m512 v = _mm512_mask_mov_ps(least, mask, _mm512_maskz_loadu_ps(mask, x + i));

        max = _mm512_max_ps(v, max);
    }
    _mm512_storeu_ps(lane, max);
    m = lane[0];
    for (int i = 1; i < 16; i++)
        m = lane[i] > m ? lane[i] : m;
    return m;
}

static void
softmax_f32(float *x, size_t n)
{
    const __m512 max = _mm512_set1_ps(largest(x, n));
    __m512 acc = _mm512_setzero_ps(), sum;

    /* An exponential is never -0, so that adding 0 changes no lane. */
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = part(n - i);
        __m512 e = k_exp16(_mm512_sub_ps(_mm512_maskz_loadu_ps(mask, x + i), max));

        _mm512_mask_storeu_ps(x + i, mask, e);
        acc = _mm512_add_ps(acc, _mm512_maskz_mov_ps(mask, e));
    }
    sum = _mm512_set1_ps(k_sum16(acc));
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = part(n - i);

        _mm512_mask_storeu_ps(x + i, mask, _mm512_div_ps(_mm512_maskz_loadu_ps(mask, x + i), sum));
    }
}

void
k_softmax_avx512_init(struct moe_kernels *k)
{
    k->softmax_f32 = softmax_f32;
}
