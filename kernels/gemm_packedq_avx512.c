/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed matrix product with INT8 activations, AVX-512 VNNI. The lanes are the
 * rows of a block: four columns a lane and instruction, so that no sum crosses
 * lanes and the weights stay unsigned. A block is read as one ascending stream
 * without prefetch instructions: they hold the few miss buffers and lose to the
 * hardware's own.
 */
#include "kernels/kernels_init.h"
#include "kernels/packed.h"
#include "kernels/vec_avx512.h"

#define E2M1_ZERO 12            /* what is added to twice a value of E2M1 */

/* What is constant where it is called. */
struct kind { int codes, zeros; };

/* Four activations in every lane. */
K_INLINE __m512i
four(const int8_t *x)
{
    int32_t v;

    memcpy(&v, x, sizeof(v));
    return _mm512_set1_epi32(v);
}

K_INLINE __m512
scale16(const struct moe_blocks *f, const uint8_t *p)
{
    __m256i v;

    if (f->scale == MOE_SCALE_F32)
        return _mm512_castsi512_ps(_mm512_loadu_si512(p));
    v = _mm256_load_si256((const __m256i *)p);
    if (f->scale == MOE_SCALE_F16)
        return _mm512_cvtph_ps(v);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}

/* The bytes that nibbles stand for: themselves, or E2M1_ZERO + twice the value. */
K_INLINE __m512i
bytes_of(int codes, __m512i nibbles)
{
    const __m512i table = _mm512_set4_epi32(0x00040608, 0x090a0b0c, 0x18141210, 0x0f0e0d0c);

    return codes == MOE_CODES_E2M1 ? _mm512_shuffle_epi8(table, nibbles) : nibbles;
}

/* What the products of a group begin with: minus the zero point times the sum of activations. */
K_INLINE __m512i
start(struct kind t, const uint8_t *zeros, int32_t xsum)
{
    const int zero = t.codes == MOE_CODES_E2M1 ? E2M1_ZERO : k_packed_zero(t.codes);

    if (!t.zeros)
        return _mm512_set1_epi32(-zero * xsum);
    return _mm512_mullo_epi32(_mm512_set1_epi32(-xsum),
        _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i *)zeros)));
}

/*
 * The sums of one group. Up to two tokens have two chains each, for the low and
 * the high nibbles or for units in turn; more tokens are chains enough.
 */
K_INLINE void
group_sums(struct kind t, int tokens, __m512i s[8], const uint8_t *w, size_t group,
    const int8_t *x, size_t ldx)
{
    const __m512i low = _mm512_set1_epi8(15);
    __m512i u[8];

    K_UNROLL
    for (int j = 0; j < tokens; j++)
        u[j] = _mm512_setzero_si512();
    for (size_t k = 0; k < group; k += 8, x += 8) {
        __m512i v = _mm512_load_si512(w), a = v, b;

        if (t.codes == MOE_CODES_I8) {
            b = _mm512_load_si512(w + 64);
            w += 128;
        } else {
            a = bytes_of(t.codes, _mm512_and_si512(v, low));
            b = bytes_of(t.codes, _mm512_and_si512(_mm512_srli_epi16(v, 4), low));
            w += 64;
        }
        K_UNROLL
        for (int j = 0; j < tokens; j++)
            s[j] = _mm512_dpbusd_epi32(s[j], a, four(x + (size_t)j * ldx));
        K_UNROLL
        for (int j = 0; j < tokens; j++)
            if (tokens <= 2)
                u[j] = _mm512_dpbusd_epi32(u[j], b, four(x + (size_t)j * ldx + 4));
            else
                s[j] = _mm512_dpbusd_epi32(s[j], b, four(x + (size_t)j * ldx + 4));
    }
    if (tokens > 2)
        return;
    K_UNROLL
    for (int j = 0; j < tokens; j++)
        s[j] = _mm512_add_epi32(s[j], u[j]);
}

/* One block for `tokens` tokens, a constant where it is called; out is [tokens][ldo]. */
K_INLINE void
tile(struct kind t, int tokens, float *out, size_t ldo, const uint8_t *w,
    const struct moe_blocks *f, const int8_t *xq, const float *xs, const int32_t *xsum)
{
    const size_t group = f->group, per = k_packed_scale(f), ldg = f->cols / group;
    __m512 acc[8];

    K_UNROLL
    for (int j = 0; j < tokens; j++)
        acc[j] = _mm512_setzero_ps();
    w += f->head;
    for (size_t left = f->cols; left > 0;) {
        size_t groups = k_packed_groups(left, group);
        const uint8_t *scales = w, *zeros = w + per * groups;

        w += k_packed_scales(f, groups);
        left -= groups * group;
        for (size_t g = 0; g < groups; g++, xs++, xsum++, zeros += K_PACKED_ROWS) {
            __m512 y = scale16(f, scales + per * g);
            __m512i s[8];

            K_UNROLL
            for (int j = 0; j < tokens; j++)
                s[j] = start(t, zeros, xsum[(size_t)j * ldg]);
            group_sums(t, tokens, s, w, group, xq, f->cols);
            w += k_packed_codes(t.codes, group);
            xq += group;
            K_UNROLL
            for (int j = 0; j < tokens; j++)
                acc[j] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(s[j]),
                    _mm512_mul_ps(y, _mm512_set1_ps(xs[(size_t)j * ldg])), acc[j]);
        }
    }
    K_UNROLL
    for (int j = 0; j < tokens; j++)
        _mm512_storeu_ps(out + (size_t)j * ldo, acc[j]);
}

K_INLINE void
all_blocks(struct kind t, float *out, size_t ldo, const uint8_t *block, size_t blocks,
    const struct moe_blocks *f, const int8_t *xq, const float *xs, const int32_t *xsum, size_t n)
{
    size_t bytes = k_packed_block(f), cols = f->cols, ldg = cols / f->group;

    for (size_t b = 0; b < blocks; b++, block += bytes, out += K_PACKED_ROWS) {
        size_t j = 0;

        for (; n - j >= 8; j += 8)
            tile(t, 8, out + j * ldo, ldo, block, f, xq + j * cols, xs + j * ldg, xsum + j * ldg);
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
k_gemm_packedq_avx512_init(struct moe_kernels *k)
{
    k->gemm_packedq = gemm_packedq;
}
