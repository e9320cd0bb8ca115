/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed INT4 matrix product with float activations, AVX-512. The lanes are the
 * rows of a block, so that no sum crosses lanes. One token takes four blocks
 * side by side, which keeps more chains of additions going; for several tokens a
 * group's codes become float once and stay in the first-level cache.
 */
#include "kernels/kernels_init.h"
#include "kernels/packed.h"
#include "kernels/vec_avx512.h"

#define MOST_GROUP 128

/*
 * Columns 0..7 of a chunk are the nibbles 0 2 4 6 1 3 5 7 of each 32-bit lane.
 * The permutation looks at 4 bits of an index only: it is the table of q.
 */
K_INLINE __m512
column(__m512i v, int i)
{
    const __m512 table = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);

    return _mm512_permutexvar_ps(
        _mm512_srli_epi32(v, (unsigned)(i < 4 ? i * 2 : i * 2 - 7) * 4), table);
}

K_INLINE __m512
scale16(const uint8_t *p, int f16)
{
    __m256i v = _mm256_load_si256((const __m256i *)p);

    if (f16)
        return _mm512_cvtph_ps(v);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}

/* ---- One token ------------------------------------------------------------------ */

/* s[b] = the sums of one group of block b; w[b] are its codes. */
K_INLINE void
group_sums(int blocks, __m512 s[4], const uint8_t *const w[4], size_t group, const float *x)
{
    K_UNROLL
    for (int b = 0; b < blocks; b++)
        s[b] = _mm512_setzero_ps();
    for (size_t k = 0; k < group; k += 8) {
        __m512i v[4];

        K_UNROLL
        for (int b = 0; b < blocks; b++)
            v[b] = _mm512_load_si512(w[b] + k * 8);
        K_UNROLL
        for (int i = 0; i < 8; i++) {
            __m512 y = _mm512_set1_ps(x[k + (size_t)i]);

            K_UNROLL
            for (int b = 0; b < blocks; b++)
                s[b] = _mm512_fmadd_ps(column(v[b], i), y, s[b]);
        }
    }
}

/* Some blocks, a constant where it is called, times one token. */
K_INLINE void
one_token(int blocks, float *out, const uint8_t *weights, size_t cols, size_t group, int f16,
    const float *x)
{
    const uint8_t *w[4], *scales[4];
    __m512 acc[4], s[4];

    K_UNROLL
    for (int b = 0; b < blocks; b++) {
        w[b] = weights + k_packed_block(cols, group) * (size_t)b;
        acc[b] = _mm512_setzero_ps();
    }
    for (size_t k = 0; k < cols;) {
        size_t groups = k_packed_groups(cols - k, group);

        K_UNROLL
        for (int b = 0; b < blocks; b++) {
            scales[b] = w[b];
            w[b] += k_packed_scales(groups);
        }
        for (size_t g = 0; g < groups; g++, k += group) {
            group_sums(blocks, s, w, group, x + k);
            K_UNROLL
            for (int b = 0; b < blocks; b++) {
                acc[b] = _mm512_fmadd_ps(s[b], scale16(scales[b] + 32 * g, f16), acc[b]);
                w[b] += k_packed_codes(group);
            }
        }
    }
    K_UNROLL
    for (int b = 0; b < blocks; b++)
        _mm512_storeu_ps(out + K_PACKED_ROWS * b, acc[b]);
}

/* ---- Several tokens ------------------------------------------------------------- */

/* The codes of a group as float, [group][16]. */
static void
unpack(float *q, const uint8_t *w, size_t group)
{
    for (size_t k = 0; k < group; k += 8, w += 64, q += 8 * K_PACKED_ROWS) {
        __m512i v = _mm512_load_si512(w);

        K_UNROLL
        for (int i = 0; i < 8; i++)
            _mm512_store_ps(q + K_PACKED_ROWS * i, column(v, i));
    }
}

/* Add a group to the outputs of some tokens, a constant where it is called. */
K_INLINE void
add_group(int tokens, float *out, size_t ldo, const float *q, size_t group, __m512 scale,
    const float *x, size_t ldx)
{
    __m512 s[12];

    K_UNROLL
    for (int j = 0; j < tokens; j++)
        s[j] = _mm512_setzero_ps();
    for (size_t k = 0; k < group; k++, q += K_PACKED_ROWS) {
        __m512 v = _mm512_load_ps(q);

        K_UNROLL
        for (int j = 0; j < tokens; j++)
            s[j] = _mm512_fmadd_ps(v, _mm512_set1_ps(x[(size_t)j * ldx + k]), s[j]);
    }
    K_UNROLL
    for (int j = 0; j < tokens; j++) {
        float *o = out + (size_t)j * ldo;

        _mm512_storeu_ps(o, _mm512_fmadd_ps(s[j], scale, _mm512_loadu_ps(o)));
    }
}

/* One block times n tokens; the outputs themselves carry the sum over the groups. */
static void
many_tokens(float *out, size_t ldo, const uint8_t *w, size_t cols, size_t group, int f16,
    const float *x, size_t ldx, size_t n)
{
    _Alignas(64) float q[MOST_GROUP * K_PACKED_ROWS];

    for (size_t j = 0; j < n; j++)
        memset(out + j * ldo, 0, K_PACKED_ROWS * sizeof(*out));
    for (size_t left = cols; left > 0;) {
        size_t groups = k_packed_groups(left, group);
        const uint8_t *scales = w;

        w += k_packed_scales(groups);
        left -= groups * group;
        for (size_t g = 0; g < groups; g++, w += k_packed_codes(group), x += group, scales += 32) {
            const __m512 scale = scale16(scales, f16);
            size_t j = 0;

            unpack(q, w, group);
            for (; n - j >= 12; j += 12)
                add_group(12, out + j * ldo, ldo, q, group, scale, x + j * ldx, ldx);
            for (; n - j >= 4; j += 4)
                add_group(4, out + j * ldo, ldo, q, group, scale, x + j * ldx, ldx);
            for (; j < n; j++)
                add_group(1, out + j * ldo, ldo, q, group, scale, x + j * ldx, ldx);
        }
    }
}

static void
gemm_i4(float *out, size_t ldo, const void *w, size_t blocks, size_t cols, size_t group, int f16,
    const float *x, size_t ldx, size_t n)
{
    const uint8_t *block = w;
    size_t bytes = k_packed_block(cols, group), b = 0;

    for (; n == 1 && blocks - b >= 4; b += 4, block += 4 * bytes, out += 4 * K_PACKED_ROWS)
        one_token(4, out, block, cols, group, f16, x);
    for (; b < blocks; b++, block += bytes, out += K_PACKED_ROWS)
        if (n == 1)
            one_token(1, out, block, cols, group, f16, x);
        else
            many_tokens(out, ldo, block, cols, group, f16, x, ldx, n);
}

void
k_gemm_i4_avx512_init(struct moe_kernels *k)
{
    k->gemm_i4 = gemm_i4;
}
