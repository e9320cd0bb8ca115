/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weighted sums of rows, AVX2: up to 4 sums of 16 elements stay in registers
 * over all rows, so that a row's elements are read once for the 4.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx2.h"

/* `sums` outputs of 16 elements. */
K_INLINE void
tile(int sums, float *out, size_t ldo, const float *v, size_t dim, const float *p, size_t ldp,
    size_t rows)
{
    __m256 lo[4], hi[4];

    K_UNROLL
    for (int j = 0; j < sums; j++) {
        lo[j] = _mm256_loadu_ps(out + (size_t)j * ldo);
        hi[j] = _mm256_loadu_ps(out + (size_t)j * ldo + 8);
    }
    for (size_t t = 0; t < rows; t++) {
        __m256 vl = _mm256_loadu_ps(v + t * dim), vh = _mm256_loadu_ps(v + t * dim + 8);

        K_UNROLL
        for (int j = 0; j < sums; j++) {
            __m256 w = _mm256_broadcast_ss(p + (size_t)j * ldp + t);

            lo[j] = _mm256_fmadd_ps(w, vl, lo[j]);
            hi[j] = _mm256_fmadd_ps(w, vh, hi[j]);
        }
    }
    K_UNROLL
    for (int j = 0; j < sums; j++) {
        _mm256_storeu_ps(out + (size_t)j * ldo, lo[j]);
        _mm256_storeu_ps(out + (size_t)j * ldo + 8, hi[j]);
    }
}

/* The last elements, n of them (1 to 8), of one sum. */
static void
edge(float *out, const float *v, size_t dim, const float *p, size_t rows, size_t n)
{
    __m256i mask = k_mask8(n);
    __m256 acc = _mm256_maskload_ps(out, mask);

    for (size_t t = 0; t < rows; t++)
        acc = _mm256_fmadd_ps(_mm256_broadcast_ss(p + t), _mm256_maskload_ps(v + t * dim, mask),
            acc);
    _mm256_maskstore_ps(out, mask, acc);
}

static void
wsum_f32(float *out, size_t ldo, const float *v, const float *p, size_t ldp, size_t rows,
    size_t dim, size_t n)
{
    size_t d = 0;

    for (; dim - d >= 16; d += 16) {
        size_t j = 0;

        for (; n - j >= 4; j += 4)
            tile(4, out + j * ldo + d, ldo, v + d, dim, p + j * ldp, ldp, rows);
        for (; n - j >= 2; j += 2)
            tile(2, out + j * ldo + d, ldo, v + d, dim, p + j * ldp, ldp, rows);
        if (j < n)
            tile(1, out + j * ldo + d, ldo, v + d, dim, p + j * ldp, ldp, rows);
    }
    for (; d < dim; d += 8)
        for (size_t j = 0; j < n; j++)
            edge(out + j * ldo + d, v + d, dim, p + j * ldp, rows, dim - d < 8 ? dim - d : 8);
}

void
k_wsum_avx2_init(struct moe_kernels *k)
{
    k->wsum_f32 = wsum_f32;
}
