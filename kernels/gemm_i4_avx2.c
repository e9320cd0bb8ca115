/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed INT4 matrix product with float activations, AVX2. The lanes are the
 * rows of a block, so that no sum crosses lanes; a column's codes become float
 * once for up to four tokens, or two blocks run side by side for one token,
 * which keeps more than one chain of additions going.
 */
#include "kernels/kernels_init.h"
#include "kernels/packed.h"
#include "kernels/vec_avx2.h"

/*
 * q of the nibble at bit `at` (up to 16) of each 32-bit lane as float: the
 * nibble becomes the last bits of a float whose unit is 1, the rest is taken
 * off. Exact.
 */
K_INLINE __m256
nibble(__m256i v, int at)
{
    const __m256i mask = _mm256_set1_epi32(15 << at);
    const __m256 base = _mm256_castsi256_ps(_mm256_set1_epi32((127 + 23 - at) << 23));
    const __m256 zero = _mm256_set1_ps((float)(1 << (23 - at)) + K_PACKED_ZERO);

    v = _mm256_and_si256(v, mask);
    return _mm256_sub_ps(_mm256_or_ps(_mm256_castsi256_ps(v), base), zero);
}

/* Columns 0..7 of a chunk are the nibbles 0 2 4 6 1 3 5 7; those above bit 16 come shifted. */
K_INLINE __m256
column(__m256i v, int i)
{
    int at = (i < 4 ? i * 2 : i * 2 - 7) * 4;

    return at <= 16 ? nibble(v, at) : nibble(_mm256_srli_epi32(v, 16), at - 16);
}

/* 8 of 16 scales as float. */
K_INLINE __m256
scale8(const uint8_t *p, int f16)
{
    __m128i v = _mm_loadu_si128((const __m128i *)p);

    if (f16)
        return _mm256_cvtph_ps(v);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
}

/* s[b][j] of one group; w[b] are its codes. */
K_INLINE void
group_sums(int blocks, int tokens, __m256 s[2][4][2], const uint8_t *const w[2], size_t group,
    const float *x, size_t ldx)
{
    K_UNROLL
    for (int b = 0; b < blocks; b++)
        K_UNROLL
        for (int j = 0; j < tokens; j++)
            s[b][j][0] = s[b][j][1] = _mm256_setzero_ps();
    for (size_t k = 0; k < group; k += 8) {
        __m256i v[2][2];

        K_UNROLL
        for (int b = 0; b < blocks; b++) {
            v[b][0] = _mm256_load_si256((const __m256i *)(w[b] + k * 8));
            v[b][1] = _mm256_load_si256((const __m256i *)(w[b] + k * 8 + 32));
        }
        K_UNROLL
        for (int i = 0; i < 8; i++)
            K_UNROLL
            for (int b = 0; b < blocks; b++) {
                __m256 lo = column(v[b][0], i), hi = column(v[b][1], i);

                K_UNROLL
                for (int j = 0; j < tokens; j++) {
                    __m256 y = _mm256_broadcast_ss(x + (size_t)j * ldx + k + (size_t)i);

                    s[b][j][0] = _mm256_fmadd_ps(lo, y, s[b][j][0]);
                    s[b][j][1] = _mm256_fmadd_ps(hi, y, s[b][j][1]);
                }
            }
    }
}

/* `blocks` blocks for `tokens` tokens; both are constants where it is called. */
K_INLINE void
tile(int blocks, int tokens, float *out, size_t ldo, const uint8_t *weights, size_t cols,
    size_t group, int f16, const float *x, size_t ldx)
{
    __m256 acc[2][4][2], s[2][4][2];
    const uint8_t *w[2] = { weights, weights + k_packed_block(cols, group) };

    K_UNROLL
    for (int b = 0; b < blocks; b++)
        K_UNROLL
        for (int j = 0; j < tokens; j++)
            acc[b][j][0] = acc[b][j][1] = _mm256_setzero_ps();
    for (size_t k = 0; k < cols;) {
        size_t groups = k_packed_groups(cols - k, group);
        const uint8_t *scales[2] = { w[0], w[1] };

        w[0] += k_packed_scales(groups);
        w[1] += k_packed_scales(groups);
        for (size_t g = 0; g < groups; g++, k += group) {
            group_sums(blocks, tokens, s, w, group, x + k, ldx);
            w[0] += k_packed_codes(group);
            w[1] += k_packed_codes(group);
            K_UNROLL
            for (int b = 0; b < blocks; b++)
                K_UNROLL
                for (int h = 0; h < 2; h++) {
                    __m256 f = scale8(scales[b] + 32 * g + 16 * (size_t)h, f16);

                    K_UNROLL
                    for (int j = 0; j < tokens; j++)
                        acc[b][j][h] = _mm256_fmadd_ps(s[b][j][h], f, acc[b][j][h]);
                }
        }
    }
    K_UNROLL
    for (int b = 0; b < blocks; b++)
        K_UNROLL
        for (int j = 0; j < tokens; j++) {
            float *o = out + (size_t)j * ldo + K_PACKED_ROWS * (size_t)b;

            _mm256_storeu_ps(o, acc[b][j][0]);
            _mm256_storeu_ps(o + 8, acc[b][j][1]);
        }
}

static void
gemm_i4(float *out, size_t ldo, const void *w, size_t blocks, size_t cols, size_t group, int f16,
    const float *x, size_t ldx, size_t n)
{
    const uint8_t *block = w;
    size_t bytes = k_packed_block(cols, group), b = 0;

    for (; n == 1 && blocks - b >= 2; b += 2, block += 2 * bytes, out += 2 * K_PACKED_ROWS)
        tile(2, 1, out, ldo, block, cols, group, f16, x, ldx);
    for (; b < blocks; b++, block += bytes, out += K_PACKED_ROWS) {
        size_t j = 0;

        for (; n - j >= 4; j += 4)
            tile(1, 4, out + j * ldo, ldo, block, cols, group, f16, x + j * ldx, ldx);
        for (; n - j >= 2; j += 2)
            tile(1, 2, out + j * ldo, ldo, block, cols, group, f16, x + j * ldx, ldx);
        if (j < n)
            tile(1, 1, out + j * ldo, ldo, block, cols, group, f16, x + j * ldx, ldx);
    }
}

void
k_gemm_i4_avx2_init(struct moe_kernels *k)
{
    k->gemm_i4 = gemm_i4;
}
