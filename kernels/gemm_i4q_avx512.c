/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed INT4 matrix product with INT8 activations, AVX-512 VNNI. The lanes are
 * the rows of a block: four columns a lane and instruction, so that no sum
 * crosses lanes and the weights stay unsigned. A block is read as one ascending
 * stream without prefetch instructions: they hold the few miss buffers and lose
 * to the hardware's own.
 */
#include "kernels/kernels_init.h"
#include "kernels/packed.h"
#include "kernels/vec_avx512.h"

/* Four activations in every lane. */
K_INLINE __m512i
four(const int8_t *x)
{
    int32_t v;

    memcpy(&v, x, sizeof(v));
    return _mm512_set1_epi32(v);
}

K_INLINE __m512
scale16(const uint8_t *p, int f16)
{
    __m256i v = _mm256_load_si256((const __m256i *)p);

    if (f16)
        return _mm512_cvtph_ps(v);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}

/*
 * The sums of one group, from minus the zero point times the sum of the
 * activations. Up to two tokens have two chains each, for the low and the high
 * nibbles; more tokens are chains enough.
 */
K_INLINE void
group_sums(int tokens, __m512i s[8], const uint8_t *w, size_t group, const int8_t *x,
    size_t ldx, const int32_t *xsum, size_t ldg)
{
    const __m512i low = _mm512_set1_epi8(15);
    __m512i t[8];

    K_UNROLL
    for (int j = 0; j < tokens; j++) {
        s[j] = _mm512_set1_epi32(-K_PACKED_ZERO * xsum[(size_t)j * ldg]);
        t[j] = _mm512_setzero_si512();
    }
    for (size_t k = 0; k < group; k += 8, w += 64, x += 8) {
        __m512i v = _mm512_load_si512(w), a = _mm512_and_si512(v, low);
        __m512i b = _mm512_and_si512(_mm512_srli_epi16(v, 4), low);

        K_UNROLL
        for (int j = 0; j < tokens; j++)
            s[j] = _mm512_dpbusd_epi32(s[j], a, four(x + (size_t)j * ldx));
        K_UNROLL
        for (int j = 0; j < tokens; j++)
            if (tokens <= 2)
                t[j] = _mm512_dpbusd_epi32(t[j], b, four(x + (size_t)j * ldx + 4));
            else
                s[j] = _mm512_dpbusd_epi32(s[j], b, four(x + (size_t)j * ldx + 4));
    }
    if (tokens > 2)
        return;
    K_UNROLL
    for (int j = 0; j < tokens; j++)
        s[j] = _mm512_add_epi32(s[j], t[j]);
}

/* One block for `tokens` tokens, a constant where it is called; out is [tokens][ldo]. */
K_INLINE void
tile(int tokens, float *out, size_t ldo, const uint8_t *w, size_t cols, size_t group, int f16,
    const int8_t *xq, const float *xs, const int32_t *xsum)
{
    size_t ldg = cols / group;
    __m512 acc[8];

    K_UNROLL
    for (int j = 0; j < tokens; j++)
        acc[j] = _mm512_setzero_ps();
    for (size_t left = cols; left > 0;) {
        size_t groups = k_packed_groups(left, group);
        const uint8_t *scales = w;

        w += k_packed_scales(groups);
        left -= groups * group;
        for (size_t g = 0; g < groups; g++, xs++, xsum++) {
            __m512 f = scale16(scales + 32 * g, f16);
            __m512i s[8];

            group_sums(tokens, s, w, group, xq, cols, xsum, ldg);
            w += k_packed_codes(group);
            xq += group;
            K_UNROLL
            for (int j = 0; j < tokens; j++)
                acc[j] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(s[j]),
                    _mm512_mul_ps(f, _mm512_set1_ps(xs[(size_t)j * ldg])), acc[j]);
        }
    }
    K_UNROLL
    for (int j = 0; j < tokens; j++)
        _mm512_storeu_ps(out + (size_t)j * ldo, acc[j]);
}

static void
gemm_i4q(float *out, size_t ldo, const void *w, size_t blocks, size_t cols, size_t group, int f16,
    const int8_t *xq, const float *xs, const int32_t *xsum, size_t n)
{
    const uint8_t *block = w;
    size_t bytes = k_packed_block(cols, group), ldg = cols / group;

    for (size_t b = 0; b < blocks; b++, block += bytes, out += K_PACKED_ROWS) {
        size_t j = 0;

        for (; n - j >= 8; j += 8)
            tile(8, out + j * ldo, ldo, block, cols, group, f16, xq + j * cols, xs + j * ldg,
                xsum + j * ldg);
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
k_gemm_i4q_avx512_init(struct moe_kernels *k)
{
    k->gemm_i4q = gemm_i4q;
}
