/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed INT4 matrix product with float activations, AVX-512. The lanes are the
 * rows of a block, so that no sum crosses lanes; a column's codes become float
 * once for up to eight tokens, or four blocks run side by side for one token,
 * which keeps more than one chain of additions going.
 */
#include "kernels/kernels_init.h"
#include "kernels/packed.h"
#include "kernels/vec_avx512.h"

/*
 * Columns 0..7 of a chunk are the nibbles 0 2 4 6 1 3 5 7 of each 32-bit lane.
 * The permutation looks at 4 bits of an index only: it is the table of q.
 */
K_INLINE __m512
column(__m512i v, int i, __m512 table)
{
    return _mm512_permutexvar_ps(
        _mm512_srli_epi32(v, (unsigned)(i < 4 ? i * 2 : i * 2 - 7) * 4), table);
}

K_INLINE __m512
scale16(const uint8_t *p, int f16)
{
    __m256i v = _mm256_loadu_si256((const __m256i *)p);

    if (f16)
        return _mm512_cvtph_ps(v);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}

/* s[b][j] of one group; w[b] are its codes. */
K_INLINE void
group_sums(int blocks, int tokens, __m512 s[4][8], const uint8_t *const w[4], size_t group,
    const float *x, size_t ldx)
{
    const __m512 table =
        _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);

    K_UNROLL
    for (int b = 0; b < blocks; b++)
        K_UNROLL
        for (int j = 0; j < tokens; j++)
            s[b][j] = _mm512_setzero_ps();
    for (size_t k = 0; k < group; k += 8) {
        __m512i v[4];

        K_UNROLL
        for (int b = 0; b < blocks; b++)
            v[b] = _mm512_load_si512(w[b] + k * 8);
        K_UNROLL
        for (int i = 0; i < 8; i++)
            K_UNROLL
            for (int b = 0; b < blocks; b++) {
                __m512 q = column(v[b], i, table);

                K_UNROLL
                for (int j = 0; j < tokens; j++)
                    s[b][j] = _mm512_fmadd_ps(q,
                        _mm512_set1_ps(x[(size_t)j * ldx + k + (size_t)i]), s[b][j]);
            }
    }
}

/* `blocks` blocks for `tokens` tokens; both are constants where it is called. */
K_INLINE void
tile(int blocks, int tokens, float *out, size_t ldo, const uint8_t *weights, size_t cols,
    size_t group, int f16, const float *x, size_t ldx)
{
    __m512 acc[4][8], s[4][8];
    const uint8_t *w[4], *scales[4];

    K_UNROLL
    for (int b = 0; b < blocks; b++) {
        w[b] = weights + k_packed_block(cols, group) * (size_t)b;
        K_UNROLL
        for (int j = 0; j < tokens; j++)
            acc[b][j] = _mm512_setzero_ps();
    }
    for (size_t k = 0; k < cols;) {
        size_t groups = k_packed_groups(cols - k, group);

        K_UNROLL
        for (int b = 0; b < blocks; b++) {
            scales[b] = w[b];
            w[b] += k_packed_scales(groups);
        }
        for (size_t g = 0; g < groups; g++, k += group) {
            group_sums(blocks, tokens, s, w, group, x + k, ldx);
            K_UNROLL
            for (int b = 0; b < blocks; b++) {
                __m512 f = scale16(scales[b] + 32 * g, f16);

                w[b] += k_packed_codes(group);
                K_UNROLL
                for (int j = 0; j < tokens; j++)
                    acc[b][j] = _mm512_fmadd_ps(s[b][j], f, acc[b][j]);
            }
        }
    }
    K_UNROLL
    for (int b = 0; b < blocks; b++)
        K_UNROLL
        for (int j = 0; j < tokens; j++)
            _mm512_storeu_ps(out + (size_t)j * ldo + K_PACKED_ROWS * (size_t)b, acc[b][j]);
}

static void
gemm_i4(float *out, size_t ldo, const void *w, size_t blocks, size_t cols, size_t group, int f16,
    const float *x, size_t ldx, size_t n)
{
    const uint8_t *block = w;
    size_t bytes = k_packed_block(cols, group), b = 0;

    for (; n == 1 && blocks - b >= 4; b += 4, block += 4 * bytes, out += 4 * K_PACKED_ROWS)
        tile(4, 1, out, ldo, block, cols, group, f16, x, ldx);
    for (; b < blocks; b++, block += bytes, out += K_PACKED_ROWS) {
        size_t j = 0;

        for (; n - j >= 8; j += 8)
            tile(1, 8, out + j * ldo, ldo, block, cols, group, f16, x + j * ldx, ldx);
        for (; n - j >= 4; j += 4)
            tile(1, 4, out + j * ldo, ldo, block, cols, group, f16, x + j * ldx, ldx);
        for (; j < n; j++)
            tile(1, 1, out + j * ldo, ldo, block, cols, group, f16, x + j * ldx, ldx);
    }
}

void
k_gemm_i4_avx512_init(struct moe_kernels *k)
{
    k->gemm_i4 = gemm_i4;
}
