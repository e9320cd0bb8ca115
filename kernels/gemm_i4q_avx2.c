/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed INT4 matrix product with INT8 activations, AVX2. The lanes are the
 * rows of a block: a byte of weights times a byte of activations, four columns
 * a lane, so that no sum crosses lanes and the weights stay unsigned. A block
 * is read as one ascending stream.
 */
#include "kernels/kernels_init.h"
#include "kernels/packed.h"
#include "kernels/vec_avx2.h"

/*
 * Chunks whose products fit 16 bits: a chunk adds two pairs of 15 * 127 to a
 * lane, 7620; four make 30480. A group is a multiple of their 32 columns.
 */
#define CHUNKS 4

/* Four activations in every lane. */
K_INLINE __m256i
four(const int8_t *x)
{
    int32_t v;

    memcpy(&v, x, sizeof(v));
    return _mm256_set1_epi32(v);
}

/* 8 of 16 scales as float. */
K_INLINE __m256
scale8(const uint8_t *p, int f16)
{
    __m128i v = _mm_load_si128((const __m128i *)p);

    if (f16)
        return _mm256_cvtph_ps(v);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
}

/* s[j][h] += the products of 32 columns, rows 8 h .. 8 h + 7. */
K_INLINE void
columns32(int tokens, __m256i s[4][2], const uint8_t *w, const int8_t *x, size_t ldx)
{
    const __m256i low = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
    __m256i t[4][2];

    K_UNROLL
    for (int j = 0; j < tokens; j++)
        t[j][0] = t[j][1] = _mm256_setzero_si256();
    K_UNROLL
    for (int c = 0; c < CHUNKS; c++, w += 64, x += 8) {
        __m256i v0 = _mm256_load_si256((const __m256i *)w);
        __m256i v1 = _mm256_load_si256((const __m256i *)(w + 32));
        __m256i a0 = _mm256_and_si256(v0, low), a1 = _mm256_and_si256(v1, low);
        __m256i b0 = _mm256_and_si256(_mm256_srli_epi16(v0, 4), low);
        __m256i b1 = _mm256_and_si256(_mm256_srli_epi16(v1, 4), low);

        _mm_prefetch((const char *)w + K_PREFETCH, _MM_HINT_T0);
        K_UNROLL
        for (int j = 0; j < tokens; j++) {
            __m256i y = four(x + (size_t)j * ldx), z = four(x + (size_t)j * ldx + 4);

            t[j][0] = _mm256_add_epi16(t[j][0], _mm256_maddubs_epi16(a0, y));
            t[j][1] = _mm256_add_epi16(t[j][1], _mm256_maddubs_epi16(a1, y));
            t[j][0] = _mm256_add_epi16(t[j][0], _mm256_maddubs_epi16(b0, z));
            t[j][1] = _mm256_add_epi16(t[j][1], _mm256_maddubs_epi16(b1, z));
            K_HERE(t[j][0]);
            K_HERE(t[j][1]);
        }
    }
    K_UNROLL
    for (int j = 0; j < tokens; j++) {
        s[j][0] = _mm256_add_epi32(s[j][0], _mm256_madd_epi16(t[j][0], ones));
        s[j][1] = _mm256_add_epi32(s[j][1], _mm256_madd_epi16(t[j][1], ones));
    }
}

/* One block for `tokens` tokens, a constant where it is called; out is [tokens][ldo]. */
K_INLINE void
tile(int tokens, float *out, size_t ldo, const uint8_t *w, size_t cols, size_t group, int f16,
    const int8_t *xq, const float *xs, const int32_t *xsum)
{
    size_t ldg = cols / group;
    __m256 acc[4][2];

    K_UNROLL
    for (int j = 0; j < tokens; j++)
        acc[j][0] = acc[j][1] = _mm256_setzero_ps();
    for (size_t left = cols; left > 0;) {
        size_t groups = k_packed_groups(left, group);
        const uint8_t *scales = w;

        w += k_packed_scales(groups);
        left -= groups * group;
        for (size_t g = 0; g < groups; g++, xs++, xsum++, scales += 32) {
            __m256i s[4][2];

            K_UNROLL
            for (int j = 0; j < tokens; j++)
                s[j][0] = s[j][1] =
                    _mm256_set1_epi32(-K_PACKED_ZERO * xsum[(size_t)j * ldg]);
            for (size_t k = 0; k < group; k += 32, w += 64 * CHUNKS, xq += 32)
                columns32(tokens, s, w, xq, cols);
            K_UNROLL
            for (int j = 0; j < tokens; j++) {
                __m256 f = _mm256_set1_ps(xs[(size_t)j * ldg]);

                K_UNROLL
                for (int h = 0; h < 2; h++)
                    acc[j][h] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(s[j][h]),
                        _mm256_mul_ps(scale8(scales + 16 * h, f16), f), acc[j][h]);
            }
        }
    }
    K_UNROLL
    for (int j = 0; j < tokens; j++) {
        _mm256_storeu_ps(out + (size_t)j * ldo, acc[j][0]);
        _mm256_storeu_ps(out + (size_t)j * ldo + 8, acc[j][1]);
    }
}

static void
gemm_i4q(float *out, size_t ldo, const void *w, size_t blocks, size_t cols, size_t group, int f16,
    const int8_t *xq, const float *xs, const int32_t *xsum, size_t n)
{
    const uint8_t *block = w;
    size_t bytes = k_packed_block(cols, group), ldg = cols / group;

    for (size_t b = 0; b < blocks; b++, block += bytes, out += K_PACKED_ROWS) {
        size_t j = 0;

        for (; n - j >= 4; j += 4)
            tile(4, out + j * ldo, ldo, block, cols, group, f16, xq + j * cols, xs + j * ldg,
                xsum + j * ldg);
        for (; n - j >= 2; j += 2)
            tile(2, out + j * ldo, ldo, block, cols, group, f16, xq + j * cols, xs + j * ldg,
                xsum + j * ldg);
        if (j < n)
            tile(1, out + j * ldo, ldo, block, cols, group, f16, xq + j * cols, xs + j * ldg,
                xsum + j * ldg);
    }
}

void
k_gemm_i4q_avx2_init(struct moe_kernels *k)
{
    k->gemm_i4q = gemm_i4q;
}
