/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weighted sums of rows, AVX-512: up to 4 sums of 32 elements stay in registers
 * over all rows, so that a row's elements are read once for the 4.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx512.h"

/* `sums` outputs of 32 elements. */
K_INLINE void
tile(int sums, float *out, size_t ldo, const float *v, size_t dim, const float *p, size_t ldp,
    size_t rows)
{
    __m512 lo[4], hi[4];

    K_UNROLL
    for (int j = 0; j < sums; j++) {
        lo[j] = _mm512_loadu_ps(out + (size_t)j * ldo);
        hi[j] = _mm512_loadu_ps(out + (size_t)j * ldo + 16);
    }
    for (size_t t = 0; t < rows; t++) {
        __m512 vl = _mm512_loadu_ps(v + t * dim), vh = _mm512_loadu_ps(v + t * dim + 16);

        K_UNROLL
        for (int j = 0; j < sums; j++) {
            __m512 w = _mm512_set1_ps(p[(size_t)j * ldp + t]);

            lo[j] = _mm512_fmadd_ps(w, vl, lo[j]);
            hi[j] = _mm512_fmadd_ps(w, vh, hi[j]);
        }
    }
    K_UNROLL
    for (int j = 0; j < sums; j++) {
        _mm512_storeu_ps(out + (size_t)j * ldo, lo[j]);
        _mm512_storeu_ps(out + (size_t)j * ldo + 16, hi[j]);
    }
}

/* The last elements, those of mask, of one sum. */
static void
edge(float *out, const float *v, size_t dim, const float *p, size_t rows, __mmask16 mask)
{
    __m512 acc = _mm512_maskz_loadu_ps(mask, out);

    for (size_t t = 0; t < rows; t++)
        acc = _mm512_fmadd_ps(_mm512_set1_ps(p[t]), _mm512_maskz_loadu_ps(mask, v + t * dim),
            acc);
    _mm512_mask_storeu_ps(out, mask, acc);
}

static void
wsum_f32(float *out, size_t ldo, const float *v, const float *p, size_t ldp, size_t rows,
    size_t dim, size_t n)
{
    size_t d = 0;

    for (; dim - d >= 32; d += 32) {
        size_t j = 0;

        for (; n - j >= 4; j += 4)
            tile(4, out + j * ldo + d, ldo, v + d, dim, p + j * ldp, ldp, rows);
        for (; n - j >= 2; j += 2)
            tile(2, out + j * ldo + d, ldo, v + d, dim, p + j * ldp, ldp, rows);
        if (j < n)
            tile(1, out + j * ldo + d, ldo, v + d, dim, p + j * ldp, ldp, rows);
    }
    for (; d < dim; d += 16) {
        __mmask16 mask = dim - d < 16 ? k_mask16(dim - d) : (__mmask16)0xffff;

        for (size_t j = 0; j < n; j++)
            edge(out + j * ldo + d, v + d, dim, p + j * ldp, rows, mask);
    }
}

void
k_wsum_avx512_init(struct moe_kernels *k)
{
    k->wsum_f32 = wsum_f32;
}
