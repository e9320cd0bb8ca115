/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error sums of a reconstruction: the 16 lanes are four vectors of double. The
 * last, short step is filled up with zeros, which change no sum.
 */
#include <immintrin.h>
#include <string.h>

#include "kernels/kernels_init.h"

#define LANES 16

struct sums { __m256d square[4], error[4], max; };

static inline void
step(struct sums *s, const float *x, const float *y)
{
    const __m256d sign = _mm256_set1_pd(-0.0);

    for (int v = 0; v < 4; v++) {
        __m256d a = _mm256_cvtps_pd(_mm_loadu_ps(x + 4 * v));
        __m256d d = _mm256_sub_pd(a, _mm256_cvtps_pd(_mm_loadu_ps(y + 4 * v)));
        s->square[v] = _mm256_fmadd_pd(a, a, s->square[v]);
        s->error[v] = _mm256_fmadd_pd(d, d, s->error[v]);
        s->max = _mm256_max_pd(_mm256_andnot_pd(sign, d), s->max);  /* the old one if NaN */
    }
}

static inline double
tree(const __m256d v[4])
{
    __m256d a = _mm256_add_pd(_mm256_add_pd(v[0], v[2]), _mm256_add_pd(v[1], v[3]));
    __m128d b = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));

    return _mm_cvtsd_f64(_mm_add_sd(b, _mm_unpackhi_pd(b, b)));
}

static void
err_f32(double s[3], const float *x, const float *y, size_t n)
{
    struct sums t;
    float xs[LANES] = { 0 }, ys[LANES] = { 0 };
    double max[4];
    size_t i = 0;

    for (int v = 0; v < 4; v++)
        t.square[v] = t.error[v] = _mm256_setzero_pd();
    t.max = _mm256_setzero_pd();
    for (; i + LANES <= n; i += LANES)
        step(&t, x + i, y + i);
    if (i < n) {
        memcpy(xs, x + i, (n - i) * sizeof(*x));
        memcpy(ys, y + i, (n - i) * sizeof(*y));
        step(&t, xs, ys);
    }
    _mm256_storeu_pd(max, t.max);
    for (int v = 0; v < 4; v++)
        s[2] = max[v] > s[2] ? max[v] : s[2];
    s[0] += tree(t.square);
    s[1] += tree(t.error);
}

void
k_errsum_avx2_init(struct moe_kernels *k)
{
    k->err_f32 = err_f32;
}
