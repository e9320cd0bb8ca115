/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grids with a given scale: AVX2. Lanes 0 to 7 and 8 to 15 of a sum are a
 * vector each.
 */
#include <immintrin.h>

#include "kernels/grid.h"
#include "kernels/kernels_init.h"

struct grid8 { __m256 inv, scale, lo, hi; };

static inline __m256
weigh(__m256 acc, const float *h, size_t i, __m256 d)
{
    d = _mm256_mul_ps(d, d);
    if (h != NULL)
        d = _mm256_mul_ps(_mm256_loadu_ps(h + i), d);
    return _mm256_add_ps(acc, d);
}

static inline __m256
term_int(__m256 acc, const float *x, const float *h, size_t i, const struct grid8 *g)
{
    __m256 v = _mm256_loadu_ps(x + i), y = _mm256_mul_ps(v, g->inv);

    y = _mm256_min_ps(_mm256_max_ps(y, g->lo), g->hi);
    y = _mm256_round_ps(y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return weigh(acc, h, i, _mm256_sub_ps(v, _mm256_mul_ps(y, g->scale)));
}

static inline __m256
step(__m256 sum, __m256 a, float limit, int strict, float add)
{
    __m256 m = strict ? _mm256_cmp_ps(a, _mm256_set1_ps(limit), _CMP_GT_OQ) :
        _mm256_cmp_ps(a, _mm256_set1_ps(limit), _CMP_GE_OQ);

    return _mm256_add_ps(sum, _mm256_and_ps(m, _mm256_set1_ps(add)));
}

static inline __m256
term_e2m1(__m256 acc, const float *x, const float *h, size_t i, const struct grid8 *g)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 v = _mm256_loadu_ps(x + i), q = _mm256_setzero_ps();
    __m256 a = _mm256_andnot_ps(sign, _mm256_mul_ps(v, g->inv));

    q = step(step(q, a, 0.25f, 1, 0.5f), a, 0.75f, 0, 0.5f);
    q = step(step(q, a, 1.25f, 1, 0.5f), a, 1.75f, 0, 0.5f);
    q = step(step(q, a, 2.5f, 1, 1), a, 3.5f, 0, 1);
    q = step(q, a, 5, 1, 2);
    return weigh(acc, h, i, _mm256_sub_ps(_mm256_andnot_ps(sign, v), _mm256_mul_ps(q, g->scale)));
}

static float
err_int(const float *x, const float *h, size_t n, float scale, float lo, float hi)
{
    const struct grid8 g = { _mm256_set1_ps(1 / scale), _mm256_set1_ps(scale),
        _mm256_set1_ps(lo), _mm256_set1_ps(hi) };
    __m256 a = _mm256_setzero_ps(), b = a;
    float lane[K_LANES], inv = 1 / scale;
    size_t i = 0;

    for (; i + 16 <= n; i += 16) {
        a = term_int(a, x, h, i, &g);
        b = term_int(b, x, h, i + 8, &g);
    }
    _mm256_storeu_ps(lane, a);
    _mm256_storeu_ps(lane + 8, b);
    for (; i < n; i++)
        lane[i % K_LANES] += k_grid_term_int(x[i], h != NULL ? h[i] : 1, inv, scale, lo, hi);
    return k_lanes_sum(lane);
}

static float
err_e2m1(const float *x, const float *h, size_t n, float scale)
{
    const __m256 s = _mm256_set1_ps(scale < 0 ? -scale : scale);
    const struct grid8 g = { _mm256_set1_ps(1 / scale), s, s, s };
    __m256 a = _mm256_setzero_ps(), b = a;
    float lane[K_LANES], inv = 1 / scale;
    size_t i = 0;

    for (; i + 16 <= n; i += 16) {
        a = term_e2m1(a, x, h, i, &g);
        b = term_e2m1(b, x, h, i + 8, &g);
    }
    _mm256_storeu_ps(lane, a);
    _mm256_storeu_ps(lane + 8, b);
    for (; i < n; i++)
        lane[i % K_LANES] += k_grid_term_e2m1(x[i], h != NULL ? h[i] : 1, inv, scale);
    return k_lanes_sum(lane);
}

void
k_grid_avx2_init(struct moe_kernels *k)
{
    k->range_f32 = k_grid_range;
    k->codes_int = k_grid_int;
    k->codes_e2m1 = k_grid_e2m1;
    k->err_int = err_int;
    k->err_e2m1 = err_e2m1;
}
