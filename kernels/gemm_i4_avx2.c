/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed INT4 matrix product with float activations, AVX2. The lanes are the
 * rows of a block, so that no sum crosses lanes. One token takes two blocks side
 * by side, which keeps more chains of additions going; for several tokens a
 * group's codes become float once and stay in the first-level cache.
 */
#include "kernels/kernels_init.h"
#include "kernels/packed.h"
#include "kernels/vec_avx2.h"

#define MOST_GROUP 128

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
    __m128i v = _mm_load_si128((const __m128i *)p);

    if (f16)
        return _mm256_cvtph_ps(v);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
}

/* ---- One token ------------------------------------------------------------------ */

/* s[b] = the sums of one group of block b; w[b] are its codes. */
K_INLINE void
group_sums(int blocks, __m256 s[2][2], const uint8_t *const w[2], size_t group, const float *x)
{
    K_UNROLL
    for (int b = 0; b < blocks; b++)
        s[b][0] = s[b][1] = _mm256_setzero_ps();
    for (size_t k = 0; k < group; k += 8) {
        __m256i v[2][2];

        K_UNROLL
        for (int b = 0; b < blocks; b++) {
            v[b][0] = _mm256_load_si256((const __m256i *)(w[b] + k * 8));
            v[b][1] = _mm256_load_si256((const __m256i *)(w[b] + k * 8 + 32));
            _mm_prefetch((const char *)w[b] + k * 8 + K_PREFETCH, _MM_HINT_T0);
        }
        K_UNROLL
        for (int i = 0; i < 8; i++) {
            __m256 y = _mm256_broadcast_ss(x + k + (size_t)i);

            K_UNROLL
            for (int b = 0; b < blocks; b++) {
                s[b][0] = _mm256_fmadd_ps(column(v[b][0], i), y, s[b][0]);
                s[b][1] = _mm256_fmadd_ps(column(v[b][1], i), y, s[b][1]);
            }
        }
    }
}

/* Some blocks, a constant where it is called, times one token. */
K_INLINE void
one_token(int blocks, float *out, const uint8_t *weights, size_t cols, size_t group, int f16,
    const float *x)
{
    const uint8_t *w[2] = { weights, weights + k_packed_block(cols, group) };
    __m256 acc[2][2], s[2][2];

    K_UNROLL
    for (int b = 0; b < blocks; b++)
        acc[b][0] = acc[b][1] = _mm256_setzero_ps();
    for (size_t k = 0; k < cols;) {
        size_t groups = k_packed_groups(cols - k, group);
        const uint8_t *scales[2] = { w[0], w[1] };

        w[0] += k_packed_scales(groups);
        w[1] += k_packed_scales(groups);
        for (size_t g = 0; g < groups; g++, k += group) {
            group_sums(blocks, s, w, group, x + k);
            w[0] += k_packed_codes(group);
            w[1] += k_packed_codes(group);
            K_UNROLL
            for (int b = 0; b < blocks; b++) {
                const uint8_t *p = scales[b] + 32 * g;

                acc[b][0] = _mm256_fmadd_ps(s[b][0], scale8(p, f16), acc[b][0]);
                acc[b][1] = _mm256_fmadd_ps(s[b][1], scale8(p + 16, f16), acc[b][1]);
            }
        }
    }
    K_UNROLL
    for (int b = 0; b < blocks; b++) {
        _mm256_storeu_ps(out + K_PACKED_ROWS * b, acc[b][0]);
        _mm256_storeu_ps(out + K_PACKED_ROWS * b + 8, acc[b][1]);
    }
}

/* ---- Several tokens ------------------------------------------------------------- */

/* The codes of a group as float, [group][16]. */
static void
unpack(float *q, const uint8_t *w, size_t group)
{
    for (size_t k = 0; k < group; k += 8, w += 64, q += 8 * K_PACKED_ROWS) {
        __m256i lo = _mm256_load_si256((const __m256i *)w);
        __m256i hi = _mm256_load_si256((const __m256i *)(w + 32));

        K_UNROLL
        for (int i = 0; i < 8; i++) {
            _mm256_store_ps(q + K_PACKED_ROWS * i, column(lo, i));
            _mm256_store_ps(q + K_PACKED_ROWS * i + 8, column(hi, i));
        }
    }
}

/* Add a group to the outputs of some tokens, a constant where it is called. */
K_INLINE void
add_group(int tokens, float *out, size_t ldo, const float *q, size_t group, const __m256 scale[2],
    const float *x, size_t ldx)
{
    __m256 s[6][2];

    K_UNROLL
    for (int j = 0; j < tokens; j++)
        s[j][0] = s[j][1] = _mm256_setzero_ps();
    for (size_t k = 0; k < group; k++, q += K_PACKED_ROWS) {
        __m256 lo = _mm256_load_ps(q), hi = _mm256_load_ps(q + 8);

        K_UNROLL
        for (int j = 0; j < tokens; j++) {
            __m256 y = _mm256_broadcast_ss(x + (size_t)j * ldx + k);

            s[j][0] = _mm256_fmadd_ps(lo, y, s[j][0]);
            s[j][1] = _mm256_fmadd_ps(hi, y, s[j][1]);
        }
    }
    K_UNROLL
    for (int j = 0; j < tokens; j++)
        K_UNROLL
        for (int h = 0; h < 2; h++) {
            float *o = out + (size_t)j * ldo + 8 * h;

            _mm256_storeu_ps(o, _mm256_fmadd_ps(s[j][h], scale[h], _mm256_loadu_ps(o)));
        }
}

/* One block times n tokens; the outputs themselves carry the sum over the groups. */
static void
many_tokens(float *out, size_t ldo, const uint8_t *w, size_t cols, size_t group, int f16,
    const float *x, size_t ldx, size_t n)
{
    _Alignas(32) float q[MOST_GROUP * K_PACKED_ROWS];

    for (size_t j = 0; j < n; j++)
        memset(out + j * ldo, 0, K_PACKED_ROWS * sizeof(*out));
    for (size_t left = cols; left > 0;) {
        size_t groups = k_packed_groups(left, group);
        const uint8_t *scales = w;

        w += k_packed_scales(groups);
        left -= groups * group;
        for (size_t g = 0; g < groups; g++, w += k_packed_codes(group), x += group, scales += 32) {
            const __m256 scale[2] = { scale8(scales, f16), scale8(scales + 16, f16) };
            size_t j = 0;

            unpack(q, w, group);
            for (; n - j >= 6; j += 6)
                add_group(6, out + j * ldo, ldo, q, group, scale, x + j * ldx, ldx);
            if (n - j >= 4) {
                add_group(4, out + j * ldo, ldo, q, group, scale, x + j * ldx, ldx);
                j += 4;
            }
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

    for (; n == 1 && blocks - b >= 2; b += 2, block += 2 * bytes, out += 2 * K_PACKED_ROWS)
        one_token(2, out, block, cols, group, f16, x);
    for (; b < blocks; b++, block += bytes, out += K_PACKED_ROWS)
        if (n == 1)
            one_token(1, out, block, cols, group, f16, x);
        else
            many_tokens(out, ldo, block, cols, group, f16, x, ldx, n);
}

void
k_gemm_i4_avx2_init(struct moe_kernels *k)
{
    k->gemm_i4 = gemm_i4;
}
