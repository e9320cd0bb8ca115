/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activations to INT8 with one scale a group, AVX-512.
 */
#include <string.h>

#include "kernels/kernels_init.h"
#include "kernels/vec_avx512.h"

/* The largest magnitude as bits, by which infinity and NaN are larger than all numbers. */
static uint32_t
magnitude(const float *x, size_t n)
{
    const __m512i bits = _mm512_set1_epi32(0x7fffffff);
    __m512i max = _mm512_setzero_si512();
    uint32_t lane[16], m = 0;

    for (size_t i = 0; i < n; i += 16)
        max = _mm512_max_epi32(max, _mm512_and_si512(_mm512_loadu_si512(x + i), bits));
    _mm512_storeu_si512(lane, max);
    for (int i = 0; i < 16; i++)
        m = lane[i] > m ? lane[i] : m;
    return m;
}

static void
quant_group(int8_t *xq, float *xs, int32_t *xsum, const float *x, size_t n)
{
    uint32_t bits = magnitude(x, n);
    __m512i sum = _mm512_setzero_si512();
    int32_t lane[16], total = 0;
    __m512 inv;
    float max;

    memcpy(&max, &bits, sizeof(max));
    *xs = max / 127;
    *xsum = 0;
    if (!(*xs >= 0x1p-126f && max < INFINITY)) {
        *xs = bits >= 0x7f800000 ? NAN : 0;
        memset(xq, 0, n);
        return;
    }
    inv = _mm512_set1_ps(1 / *xs);
    for (size_t i = 0; i < n; i += 16) {
        __m512i q = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + i), inv));

        sum = _mm512_add_epi32(sum, q);
        _mm_storeu_si128((__m128i *)(xq + i), _mm512_cvtsepi32_epi8(q));
    }
    _mm512_storeu_si512(lane, sum);
    for (int i = 0; i < 16; i++)
        total += lane[i];
    *xsum = total;
}

static void
quant_act_i8(int8_t *xq, float *xs, int32_t *xsum, const float *x, size_t ldx, size_t cols,
    size_t group, size_t n)
{
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < cols; k += group)
            quant_group(xq + j * cols + k, xs++, xsum++, x + j * ldx + k, group);
}

void
k_quant_act_avx512_init(struct moe_kernels *k)
{
    k->quant_act_i8 = quant_act_i8;
}
