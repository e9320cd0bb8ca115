/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed matrix product with INT8 activations, AVX2. The lanes are the rows of a
 * block: a byte of weights times a byte of activations, four columns a lane, so
 * that no sum crosses lanes. 4-bit codes stay unsigned; 8-bit ones go as
 * magnitudes, their signs to the activations. A block is read as one ascending
 * stream.
 */
#include "kernels/kernels_init.h"
#include "kernels/packed.h"
#include "kernels/vec_avx2.h"

/*
 * Units whose products fit 16 bits: of I4 one adds two pairs of 15 * 127 to a
 * lane, 7620, and four make 30480; of E2M1 two pairs of 24 * 127, and two make
 * 24384.
 */
#define UNITS_I4 4
#define UNITS_E2M1 2
#define E2M1_ZERO 12            /* what is added to twice a value of E2M1 */

/* What is constant where it is called. */
struct kind { int codes, zeros; };

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
scale8(const struct moe_blocks *f, const uint8_t *p, int h)
{
    __m128i v;

    if (f->scale == MOE_SCALE_F32)
        return _mm256_load_ps((const float *)(const void *)p + (size_t)8 * (size_t)h);
    v = _mm_load_si128((const __m128i *)p + h);
    if (f->scale == MOE_SCALE_F16)
        return _mm256_cvtph_ps(v);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
}

/* The bytes that nibbles stand for: themselves, or E2M1_ZERO + twice the value. */
K_INLINE __m256i
bytes_of(int codes, __m256i nibbles)
{
    const __m256i table = _mm256_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4,
        0, 12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);

    return codes == MOE_CODES_E2M1 ? _mm256_shuffle_epi8(table, nibbles) : nibbles;
}

/* s[j][h] += the products of some units of 4-bit codes, rows 8 h .. 8 h + 7. */
K_INLINE void
units4(int codes, int tokens, __m256i s[4][2], const uint8_t *w, const int8_t *x, size_t ldx)
{
    const __m256i low = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
    const int units = codes == MOE_CODES_I4 ? UNITS_I4 : UNITS_E2M1;
    __m256i t[4][2];

    K_UNROLL
    for (int j = 0; j < tokens; j++)
        t[j][0] = t[j][1] = _mm256_setzero_si256();
    K_UNROLL
    for (int c = 0; c < units; c++, w += 64, x += 8) {
        __m256i v0 = _mm256_load_si256((const __m256i *)w);
        __m256i v1 = _mm256_load_si256((const __m256i *)(w + 32));
        __m256i a0 = bytes_of(codes, _mm256_and_si256(v0, low));
        __m256i a1 = bytes_of(codes, _mm256_and_si256(v1, low));
        __m256i b0 = bytes_of(codes, _mm256_and_si256(_mm256_srli_epi16(v0, 4), low));
        __m256i b1 = bytes_of(codes, _mm256_and_si256(_mm256_srli_epi16(v1, 4), low));

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

/* The same of one unit of 8-bit codes. A pair of 128 * 127 is 32512. */
K_INLINE void
unit8(int tokens, __m256i s[4][2], const uint8_t *w, const int8_t *x, size_t ldx)
{
    const __m256i top = _mm256_set1_epi8(-128), ones = _mm256_set1_epi16(1);

    _mm_prefetch((const char *)w + K_PREFETCH, _MM_HINT_T0);
    K_UNROLL
    for (int h = 0; h < 2; h++) {
        __m256i q = _mm256_xor_si256(_mm256_load_si256((const __m256i *)w + h), top);
        __m256i a = _mm256_abs_epi8(q);

        K_UNROLL
        for (int j = 0; j < tokens; j++) {
            __m256i y = _mm256_sign_epi8(four(x + (size_t)j * ldx), q);

            s[j][h] = _mm256_add_epi32(s[j][h],
                _mm256_madd_epi16(_mm256_maddubs_epi16(a, y), ones));
        }
    }
}

/* What the products of a group begin with: minus the zero point times the sum of activations. */
K_INLINE __m256i
start(struct kind t, const uint8_t *zeros, int h, int32_t xsum)
{
    const __m256i sum = _mm256_set1_epi32(-xsum);
    __m256i z;

    if (!t.zeros)
        return t.codes == MOE_CODES_I8 ? _mm256_setzero_si256() :
            _mm256_mullo_epi32(sum, _mm256_set1_epi32(
                t.codes == MOE_CODES_I4 ? k_packed_zero(MOE_CODES_I4) : E2M1_ZERO));
    z = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(zeros + (size_t)8 * (size_t)h)));
    if (t.codes == MOE_CODES_I8)    /* whose products are of q already */
        z = _mm256_sub_epi32(z, _mm256_set1_epi32(k_packed_zero(MOE_CODES_I8)));
    return _mm256_mullo_epi32(sum, z);
}

K_INLINE void
group_sums(struct kind t, int tokens, __m256i s[4][2], const uint8_t *w, size_t group,
    const int8_t *x, size_t ldx)
{
    if (t.codes == MOE_CODES_I8) {
        for (size_t k = 0; k < group; k += 4, w += 64)
            unit8(tokens, s, w, x + k, ldx);
    } else {
        const size_t units = t.codes == MOE_CODES_I4 ? UNITS_I4 : UNITS_E2M1;

        for (size_t k = 0; k < group; k += 8 * units, w += 64 * units)
            units4(t.codes, tokens, s, w, x + k, ldx);
    }
}

/* One block for `tokens` tokens, a constant where it is called; out is [tokens][ldo]. */
K_INLINE void
tile(struct kind t, int tokens, float *out, size_t ldo, const uint8_t *w,
    const struct moe_blocks *f, const int8_t *xq, const float *xs, const int32_t *xsum)
{
    const size_t group = f->group, per = k_packed_scale(f), ldg = f->cols / group;
    __m256 acc[4][2];

    K_UNROLL
    for (int j = 0; j < tokens; j++)
        acc[j][0] = acc[j][1] = _mm256_setzero_ps();
    w += f->head;
    for (size_t left = f->cols; left > 0;) {
        size_t groups = k_packed_groups(left, group);
        const uint8_t *scales = w, *zeros = w + per * groups;

        w += k_packed_scales(f, groups);
        left -= groups * group;
        for (size_t g = 0; g < groups; g++, xs++, xsum++, scales += per, zeros += K_PACKED_ROWS) {
            __m256i s[4][2];

            K_UNROLL
            for (int j = 0; j < tokens; j++) {
                s[j][0] = start(t, zeros, 0, xsum[(size_t)j * ldg]);
                s[j][1] = start(t, zeros, 1, xsum[(size_t)j * ldg]);
            }
            group_sums(t, tokens, s, w, group, xq, f->cols);
            w += k_packed_codes(t.codes, group);
            xq += group;
            K_UNROLL
            for (int j = 0; j < tokens; j++) {
                __m256 y = _mm256_set1_ps(xs[(size_t)j * ldg]);

                K_UNROLL
                for (int h = 0; h < 2; h++)
                    acc[j][h] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(s[j][h]),
                        _mm256_mul_ps(scale8(f, scales, h), y), acc[j][h]);
            }
        }
    }
    K_UNROLL
    for (int j = 0; j < tokens; j++) {
        _mm256_storeu_ps(out + (size_t)j * ldo, acc[j][0]);
        _mm256_storeu_ps(out + (size_t)j * ldo + 8, acc[j][1]);
    }
}

K_INLINE void
all_blocks(struct kind t, float *out, size_t ldo, const uint8_t *block, size_t blocks,
    const struct moe_blocks *f, const int8_t *xq, const float *xs, const int32_t *xsum, size_t n)
{
    size_t bytes = k_packed_block(f), cols = f->cols, ldg = cols / f->group;

    for (size_t b = 0; b < blocks; b++, block += bytes, out += K_PACKED_ROWS) {
        size_t j = 0;

        for (; n - j >= 4; j += 4)
            tile(t, 4, out + j * ldo, ldo, block, f, xq + j * cols, xs + j * ldg, xsum + j * ldg);
        for (; n - j >= 2; j += 2)
            tile(t, 2, out + j * ldo, ldo, block, f, xq + j * cols, xs + j * ldg, xsum + j * ldg);
        if (j < n)
            tile(t, 1, out + j * ldo, ldo, block, f, xq + j * cols, xs + j * ldg, xsum + j * ldg);
    }
}

static void
gemm_packedq(float *out, size_t ldo, const void *w, size_t blocks, const struct moe_blocks *f,
    const int8_t *xq, const float *xs, const int32_t *xsum, size_t n)
{
    if (f->codes == MOE_CODES_I4 && f->zeros)
        all_blocks((struct kind){ MOE_CODES_I4, 1 }, out, ldo, w, blocks, f, xq, xs, xsum, n);
    else if (f->codes == MOE_CODES_I4)
        all_blocks((struct kind){ MOE_CODES_I4, 0 }, out, ldo, w, blocks, f, xq, xs, xsum, n);
    else if (f->codes == MOE_CODES_I8 && f->zeros)
        all_blocks((struct kind){ MOE_CODES_I8, 1 }, out, ldo, w, blocks, f, xq, xs, xsum, n);
    else if (f->codes == MOE_CODES_I8)
        all_blocks((struct kind){ MOE_CODES_I8, 0 }, out, ldo, w, blocks, f, xq, xs, xsum, n);
    else
        all_blocks((struct kind){ MOE_CODES_E2M1, 0 }, out, ldo, w, blocks, f, xq, xs, xsum, n);
}

void
k_gemm_packedq_avx2_init(struct moe_kernels *k)
{
    k->gemm_packedq = gemm_packedq;
}
