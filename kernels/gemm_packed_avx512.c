/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed matrix product with float activations, AVX-512. The lanes are the rows
 * of a block, so that no sum crosses lanes. One token takes four blocks side by
 * side, which keeps more chains of additions going; for several tokens a group's
 * codes become float once and stay in the first-level cache.
 */
#include "kernels/kernels_init.h"
#include "kernels/packed.h"
#include "kernels/vec_avx512.h"

#define MOST_GROUP 128

/* What is constant where it is called. */
struct kind { int codes, zeros; };

/* Four codes of E4M3 columns: 16 of them as F16 of the same digits, as float. */
K_INLINE __m512
column_e4m3(__m512i u, int i)
{
    __m256i half = i < 2 ? _mm512_castsi512_si256(u) : _mm512_extracti64x4_epi64(u, 1);
    __m256i v = _mm256_cvtepu8_epi16(i % 2 == 0 ? _mm256_castsi256_si128(half) :
        _mm256_extracti128_si256(half, 1));
    __m256i a = _mm256_slli_epi16(_mm256_and_si256(v, _mm256_set1_epi16(0x7f)), 7);
    __m256i s = _mm256_slli_epi16(_mm256_and_si256(v, _mm256_set1_epi16(0x80)), 8);

    return _mm512_cvtph_ps(_mm256_or_si256(a, s));
}

/*
 * Column i of a unit, the zero point not yet taken off. Columns 0..7 of 4-bit
 * codes are the nibbles 0 2 4 6 1 3 5 7 of each 32-bit lane; the permutation looks
 * at 4 bits of an index only: it is the table of values.
 */
K_INLINE __m512
column(int codes, __m512i v, int i)
{
    const __m512 i4 = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    const __m512 e2m1 = _mm512_setr_ps(0, 1, 2, 3, 4, 6, 8, 12, -0.0f, -1, -2, -3, -4, -6, -8,
        -12);

    if (codes == MOE_CODES_E4M3)
        return column_e4m3(v, i);
    if (codes == MOE_CODES_I8) {
        v = _mm512_and_si512(_mm512_srli_epi32(v, (unsigned)i * 8), _mm512_set1_epi32(255));
        return _mm512_cvtepi32_ps(_mm512_sub_epi32(v, _mm512_set1_epi32(128)));
    }
    v = _mm512_srli_epi32(v, (unsigned)(i < 4 ? i * 2 : i * 2 - 7) * 4);
    return _mm512_permutexvar_ps(v, codes == MOE_CODES_E2M1 ? e2m1 : i4);
}

K_INLINE __m512
scale16(const struct moe_blocks *f, int codes, const uint8_t *p)
{
    __m512 s;

    if (f->scale == MOE_SCALE_F32) {
        s = _mm512_castsi512_ps(_mm512_loadu_si512(p));
    } else {
        __m256i v = _mm256_load_si256((const __m256i *)p);

        s = f->scale == MOE_SCALE_F16 ? _mm512_cvtph_ps(v) :
            _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
    }
    return codes == MOE_CODES_E4M3 ? _mm512_mul_ps(s, _mm512_set1_ps(K_PACKED_E4M3)) : s;
}

/* 16 zero points as float. */
K_INLINE __m512
less16(int codes, const uint8_t *p)
{
    __m512i v = _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i *)p));

    return _mm512_cvtepi32_ps(_mm512_sub_epi32(v, _mm512_set1_epi32(k_packed_zero(codes))));
}

/* ---- One token ------------------------------------------------------------------ */

/* s[b] = the sums of one group of block b; w[b] are its codes, z[b] its zero points. */
K_INLINE void
group_sums(struct kind t, int blocks, __m512 s[4], const uint8_t *const w[4],
    const uint8_t *const z[4], size_t group, const float *x)
{
    const size_t cols = k_packed_unit(t.codes);
    __m512 less[4];

    K_UNROLL
    for (int b = 0; b < blocks; b++) {
        s[b] = _mm512_setzero_ps();
        less[b] = t.zeros ? less16(t.codes, z[b]) : s[b];
    }
    for (size_t k = 0; k < group; k += cols) {
        __m512i v[4];

        K_UNROLL
        for (int b = 0; b < blocks; b++)
            v[b] = _mm512_load_si512(w[b] + k / cols * 64);
        K_UNROLL
        for (int i = 0; i < (int)cols; i++) {
            __m512 y = _mm512_set1_ps(x[k + (size_t)i]);

            K_UNROLL
            for (int b = 0; b < blocks; b++) {
                __m512 q = column(t.codes, v[b], i);

                s[b] = _mm512_fmadd_ps(t.zeros ? _mm512_sub_ps(q, less[b]) : q, y, s[b]);
            }
        }
    }
}

/* Some blocks, a constant where it is called, times one token. */
K_INLINE void
one_token(struct kind t, int blocks, float *out, const uint8_t *weights,
    const struct moe_blocks *f, const float *x)
{
    const size_t group = f->group, per = k_packed_scale(f), codes = k_packed_codes(t.codes, group);
    const uint8_t *w[4], *scales[4], *z[4];
    __m512 acc[4], s[4];

    K_UNROLL
    for (int b = 0; b < blocks; b++) {
        w[b] = weights + k_packed_block(f) * (size_t)b + f->head;
        acc[b] = _mm512_setzero_ps();
    }
    for (size_t k = 0; k < f->cols;) {
        size_t groups = k_packed_groups(f->cols - k, group);

        K_UNROLL
        for (int b = 0; b < blocks; b++) {
            scales[b] = w[b];
            w[b] += k_packed_scales(f, groups);
        }
        for (size_t g = 0; g < groups; g++, k += group) {
            K_UNROLL
            for (int b = 0; b < blocks; b++)
                z[b] = scales[b] + per * groups + g * K_PACKED_ROWS;
            group_sums(t, blocks, s, w, z, group, x + k);
            K_UNROLL
            for (int b = 0; b < blocks; b++) {
                acc[b] = _mm512_fmadd_ps(s[b], scale16(f, t.codes, scales[b] + per * g), acc[b]);
                w[b] += codes;
            }
        }
    }
    K_UNROLL
    for (int b = 0; b < blocks; b++)
        _mm512_storeu_ps(out + K_PACKED_ROWS * b, acc[b]);
}

/* ---- Several tokens ------------------------------------------------------------- */

/* The codes of a group as float, [group][16]. */
K_INLINE void
unpack(struct kind t, float *q, const uint8_t *w, const uint8_t *z, size_t group)
{
    const size_t cols = k_packed_unit(t.codes);
    __m512 less = t.zeros ? less16(t.codes, z) : _mm512_setzero_ps();

    for (size_t k = 0; k < group; k += cols, w += 64, q += cols * K_PACKED_ROWS) {
        __m512i u = _mm512_load_si512(w);

        K_UNROLL
        for (int i = 0; i < (int)cols; i++) {
            __m512 v = column(t.codes, u, i);

            _mm512_store_ps(q + K_PACKED_ROWS * i, t.zeros ? _mm512_sub_ps(v, less) : v);
        }
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

/* The same for all n. */
static void
add_to_all(float *out, size_t ldo, const float *q, size_t group, __m512 scale, const float *x,
    size_t ldx, size_t n)
{
    size_t j = 0;

    for (; n - j >= 12; j += 12)
        add_group(12, out + j * ldo, ldo, q, group, scale, x + j * ldx, ldx);
    for (; n - j >= 4; j += 4)
        add_group(4, out + j * ldo, ldo, q, group, scale, x + j * ldx, ldx);
    for (; j < n; j++)
        add_group(1, out + j * ldo, ldo, q, group, scale, x + j * ldx, ldx);
}

/* One block times n tokens; the outputs themselves carry the sum over the groups. */
K_INLINE void
many_tokens(struct kind t, float *out, size_t ldo, const uint8_t *w, const struct moe_blocks *f,
    const float *x, size_t ldx, size_t n)
{
    const size_t group = f->group, per = k_packed_scale(f);
    _Alignas(64) float q[MOST_GROUP * K_PACKED_ROWS];

    for (size_t j = 0; j < n; j++)
        memset(out + j * ldo, 0, K_PACKED_ROWS * sizeof(*out));
    w += f->head;
    for (size_t left = f->cols; left > 0;) {
        size_t groups = k_packed_groups(left, group);
        const uint8_t *scales = w;

        w += k_packed_scales(f, groups);
        left -= groups * group;
        for (size_t g = 0; g < groups; g++, x += group) {
            unpack(t, q, w, scales + per * groups + g * K_PACKED_ROWS, group);
            add_to_all(out, ldo, q, group, scale16(f, t.codes, scales + per * g), x, ldx, n);
            w += k_packed_codes(t.codes, group);
        }
    }
}

K_INLINE void
all_blocks(struct kind t, float *out, size_t ldo, const uint8_t *block, size_t blocks,
    const struct moe_blocks *f, const float *x, size_t ldx, size_t n)
{
    size_t bytes = k_packed_block(f), b = 0;

    for (; n == 1 && blocks - b >= 4; b += 4, block += 4 * bytes, out += 4 * K_PACKED_ROWS)
        one_token(t, 4, out, block, f, x);
    for (; b < blocks; b++, block += bytes, out += K_PACKED_ROWS)
        if (n == 1)
            one_token(t, 1, out, block, f, x);
        else
            many_tokens(t, out, ldo, block, f, x, ldx, n);
}

static void
gemm_packed(float *out, size_t ldo, const void *w, size_t blocks, const struct moe_blocks *f,
    const float *x, size_t ldx, size_t n)
{
    if (f->codes == MOE_CODES_I4 && f->zeros)
        all_blocks((struct kind){ MOE_CODES_I4, 1 }, out, ldo, w, blocks, f, x, ldx, n);
    else if (f->codes == MOE_CODES_I4)
        all_blocks((struct kind){ MOE_CODES_I4, 0 }, out, ldo, w, blocks, f, x, ldx, n);
    else if (f->codes == MOE_CODES_I8 && f->zeros)
        all_blocks((struct kind){ MOE_CODES_I8, 1 }, out, ldo, w, blocks, f, x, ldx, n);
    else if (f->codes == MOE_CODES_I8)
        all_blocks((struct kind){ MOE_CODES_I8, 0 }, out, ldo, w, blocks, f, x, ldx, n);
    else if (f->codes == MOE_CODES_E2M1)
        all_blocks((struct kind){ MOE_CODES_E2M1, 0 }, out, ldo, w, blocks, f, x, ldx, n);
    else
        all_blocks((struct kind){ MOE_CODES_E4M3, 0 }, out, ldo, w, blocks, f, x, ldx, n);
}

void
k_gemm_packed_avx512_init(struct moe_kernels *k)
{
    k->gemm_packed = gemm_packed;
}
