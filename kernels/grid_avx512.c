/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grids with a given scale: AVX-512. A vector holds the 16 lanes of a sum.
 */
#include <immintrin.h>

#include "kernels/grid.h"
#include "kernels/kernels_init.h"

static inline __m512
weigh(__m512 acc, const float *h, size_t i, __m512 d)
{
    d = _mm512_mul_ps(d, d);
    if (h != NULL)
        d = _mm512_mul_ps(_mm512_loadu_ps(h + i), d);
    return _mm512_add_ps(acc, d);
}

static inline __m512
step(__m512 sum, __mmask16 passed, float add)
{
    return _mm512_mask_add_ps(sum, passed, sum, _mm512_set1_ps(add));
}

static inline __m512
fp4(__m512 a)
{
    __m512 q = _mm512_setzero_ps();

    q = step(q, _mm512_cmp_ps_mask(a, _mm512_set1_ps(0.25f), _CMP_GT_OQ), 0.5f);
    q = step(q, _mm512_cmp_ps_mask(a, _mm512_set1_ps(0.75f), _CMP_GE_OQ), 0.5f);
    q = step(q, _mm512_cmp_ps_mask(a, _mm512_set1_ps(1.25f), _CMP_GT_OQ), 0.5f);
    q = step(q, _mm512_cmp_ps_mask(a, _mm512_set1_ps(1.75f), _CMP_GE_OQ), 0.5f);
    q = step(q, _mm512_cmp_ps_mask(a, _mm512_set1_ps(2.5f), _CMP_GT_OQ), 1);
    q = step(q, _mm512_cmp_ps_mask(a, _mm512_set1_ps(3.5f), _CMP_GE_OQ), 1);
    return step(q, _mm512_cmp_ps_mask(a, _mm512_set1_ps(5), _CMP_GT_OQ), 2);
}

static float
err_int(const float *x, const float *h, size_t n, float scale, float lo, float hi)
{
    const __m512 s = _mm512_set1_ps(scale), inv = _mm512_set1_ps(1 / scale);
    const __m512 low = _mm512_set1_ps(lo), high = _mm512_set1_ps(hi);
    const __m512 magic = _mm512_set1_ps(K_GRID_ROUND);
    __m512 acc = _mm512_setzero_ps();
    float lane[K_LANES];
    size_t i = 0;

    for (; i + 16 <= n; i += 16) {
        __m512 v = _mm512_loadu_ps(x + i), y = _mm512_mul_ps(v, inv);

        y = _mm512_min_ps(_mm512_max_ps(y, low), high);
        y = _mm512_sub_ps(_mm512_add_ps(y, magic), magic);
        acc = weigh(acc, h, i, _mm512_sub_ps(v, _mm512_mul_ps(y, s)));
    }
    _mm512_storeu_ps(lane, acc);
    for (; i < n; i++)
        lane[i % K_LANES] += k_grid_term_int(x[i], h != NULL ? h[i] : 1, 1 / scale, scale, lo,
            hi);
    return k_lanes_sum(lane);
}

static float
err_e2m1(const float *x, const float *h, size_t n, float scale)
{
    const __m512 s = _mm512_set1_ps(scale < 0 ? -scale : scale);
    const __m512 inv = _mm512_set1_ps(1 / scale);
    __m512 acc = _mm512_setzero_ps();
    float lane[K_LANES];
    size_t i = 0;

    for (; i + 16 <= n; i += 16) {
        __m512 v = _mm512_loadu_ps(x + i), y = _mm512_abs_ps(_mm512_mul_ps(v, inv));

        acc = weigh(acc, h, i, _mm512_sub_ps(_mm512_abs_ps(v), _mm512_mul_ps(fp4(y), s)));
    }
    _mm512_storeu_ps(lane, acc);
    for (; i < n; i++)
        lane[i % K_LANES] += k_grid_term_e2m1(x[i], h != NULL ? h[i] : 1, 1 / scale, scale);
    return k_lanes_sum(lane);
}

void
k_grid_avx512_init(struct moe_kernels *k)
{
    k->range_f32 = k_grid_range;
    k->codes_int = k_grid_int;
    k->codes_e2m1 = k_grid_e2m1;
    k->err_int = err_int;
    k->err_e2m1 = err_e2m1;
}
