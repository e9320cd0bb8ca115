/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activations to INT8 with one scale a group, AVX2.
 */
#include <string.h>

#include "kernels/kernels_init.h"
#include "kernels/vec_avx2.h"

/* The largest magnitude as bits, by which infinity and NaN are larger than all numbers. */
static uint32_t
magnitude(const float *x, size_t n)
{
    const __m256i bits = _mm256_set1_epi32(0x7fffffff);
    __m256i max = _mm256_setzero_si256();
    uint32_t lane[8], m = 0;

    for (size_t i = 0; i < n; i += 8)
        max = _mm256_max_epi32(max,
            _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(x + i)), bits));
    _mm256_storeu_si256((__m256i *)lane, max);
    for (int i = 0; i < 8; i++)
        m = lane[i] > m ? lane[i] : m;
    return m;
}

/* 8 elements as rounded integers. */
K_INLINE __m256i
round8(const float *x, __m256 inv)
{
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inv));
}

static void
quant_group(int8_t *xq, float *xs, int32_t *xsum, const float *x, size_t n)
{
    /* Packing two vectors of two halves each leaves their quarters in this order. */
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    uint32_t bits = magnitude(x, n);
    __m256i sum = _mm256_setzero_si256();
    int32_t lane[8], total = 0;
    __m256 inv;
    float max;

    memcpy(&max, &bits, sizeof(max));
    *xs = max / 127;
    *xsum = 0;
    if (!(*xs >= 0x1p-126f && max < INFINITY)) {
        *xs = bits >= 0x7f800000 ? NAN : 0;
        memset(xq, 0, n);
        return;
    }
    inv = _mm256_set1_ps(1 / *xs);
    for (size_t i = 0; i < n; i += 32) {
        __m256i a = round8(x + i, inv), b = round8(x + i + 8, inv);
        __m256i c = round8(x + i + 16, inv), d = round8(x + i + 24, inv), q;

        sum = _mm256_add_epi32(sum, _mm256_add_epi32(_mm256_add_epi32(a, b),
            _mm256_add_epi32(c, d)));
        q = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        _mm256_storeu_si256((__m256i *)(xq + i), _mm256_permutevar8x32_epi32(q, order));
    }
    _mm256_storeu_si256((__m256i *)lane, sum);
    for (int i = 0; i < 8; i++)
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
k_quant_act_avx2_init(struct moe_kernels *k)
{
    k->quant_act_i8 = quant_act_i8;
}
