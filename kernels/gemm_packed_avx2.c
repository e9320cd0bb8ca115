/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed matrix product with float activations, AVX2. The lanes are the rows of
 * a block, so that no sum crosses lanes. One token takes two blocks side by side,
 * which keeps more chains of additions going; for several tokens a group's codes
 * become float once and stay in the first-level cache.
 */
#include "kernels/kernels_init.h"
#include "kernels/packed.h"
#include "kernels/vec_avx2.h"

#define MOST_GROUP 128

struct unit { __m256i v[2]; };      /* rows 0..7 and 8..15; of E4M3 columns 0 1 and 2 3 */

/* What is constant where it is called. */
struct kind { int codes, zeros; };

K_INLINE struct unit
load_unit(const uint8_t *w)
{
    return (struct unit){ { _mm256_load_si256((const __m256i *)w),
        _mm256_load_si256((const __m256i *)(w + 32)) } };
}

/*
 * q of the `bits` at bit `at` of each 32-bit lane, up to bit 20, as float: they
 * become the last bits of a float whose unit is 1, the rest is taken off. Exact.
 */
K_INLINE __m256
whole(__m256i v, int at, int bits, int zero)
{
    const __m256i mask = _mm256_set1_epi32(((1 << bits) - 1) << at);
    const __m256 base = _mm256_castsi256_ps(_mm256_set1_epi32((127 + 23 - at) << 23));
    const __m256 less = _mm256_set1_ps((float)(1 << (23 - at)) + (float)zero);

    v = _mm256_and_si256(v, mask);
    return _mm256_sub_ps(_mm256_or_ps(_mm256_castsi256_ps(v), base), less);
}

/* Columns 0..7 of a unit are the nibbles 0 2 4 6 1 3 5 7 of a lane. */
K_INLINE int
nibble_at(int i)
{
    return (i < 4 ? i * 2 : i * 2 - 7) * 4;
}

K_INLINE __m256
column_e2m1(__m256i v, int i)
{
    const __m256 table = _mm256_setr_ps(0, 1, 2, 3, 4, 6, 8, 12);
    const __m256i sign = _mm256_set1_epi32((int)0x80000000);
    __m256 q = _mm256_permutevar8x32_ps(table, _mm256_srli_epi32(v, nibble_at(i)));

    return _mm256_or_ps(q, _mm256_castsi256_ps(
        _mm256_and_si256(_mm256_slli_epi32(v, 28 - nibble_at(i)), sign)));
}

/* 16 codes as F16 of the same digits; the half h of them as float. */
K_INLINE __m256
column_e4m3(const struct unit *u, int i, int h)
{
    __m128i p = i % 2 == 0 ? _mm256_castsi256_si128(u->v[i / 2]) :
        _mm256_extracti128_si256(u->v[i / 2], 1);
    __m256i v = _mm256_cvtepu8_epi16(p);
    __m256i a = _mm256_slli_epi16(_mm256_and_si256(v, _mm256_set1_epi16(0x7f)), 7);
    __m256i s = _mm256_slli_epi16(_mm256_and_si256(v, _mm256_set1_epi16(0x80)), 8);

    v = _mm256_or_si256(a, s);
    return _mm256_cvtph_ps(h == 0 ? _mm256_castsi256_si128(v) : _mm256_extracti128_si256(v, 1));
}

/* Column i of rows 8 h .. 8 h + 7, the zero point not yet taken off. */
K_INLINE __m256
column(int codes, const struct unit *u, int i, int h)
{
    __m256i v = u->v[h];

    if (codes == MOE_CODES_E4M3)
        return column_e4m3(u, i, h);
    if (codes == MOE_CODES_E2M1)
        return column_e2m1(v, i);
    if (codes == MOE_CODES_I8)
        return whole(i < 2 ? v : _mm256_srli_epi32(v, 16), i % 2 * 8, 8, 128);
    if (nibble_at(i) <= 16)
        return whole(v, nibble_at(i), 4, 8);
    return whole(_mm256_srli_epi32(v, 16), nibble_at(i) - 16, 4, 8);
}

/* 8 of 16 scales as float. */
K_INLINE __m256
scale8(const struct moe_blocks *f, int codes, const uint8_t *p, int h)
{
    __m256 s;

    if (f->scale == MOE_SCALE_F32) {
        s = _mm256_load_ps((const float *)(const void *)p + (size_t)8 * (size_t)h);
    } else {
        __m128i v = _mm_load_si128((const __m128i *)p + h);

        s = f->scale == MOE_SCALE_F16 ? _mm256_cvtph_ps(v) :
            _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
    }
    return codes == MOE_CODES_E4M3 ? _mm256_mul_ps(s, _mm256_set1_ps(K_PACKED_E4M3)) : s;
}

/* 8 of 16 zero points as float. */
K_INLINE __m256
less8(int codes, const uint8_t *p, int h)
{
    __m256i v = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p + (size_t)8 * (size_t)h)));

    return _mm256_cvtepi32_ps(_mm256_sub_epi32(v, _mm256_set1_epi32(k_packed_zero(codes))));
}

/* ---- One token ------------------------------------------------------------------ */

/* s[b] = the sums of one group of block b; w[b] are its codes, z[b] its zero points. */
K_INLINE void
group_sums(struct kind t, int blocks, __m256 s[2][2], const uint8_t *const w[2],
    const uint8_t *const z[2], size_t group, const float *x)
{
    const size_t cols = k_packed_unit(t.codes);
    __m256 less[2][2];

    K_UNROLL
    for (int b = 0; b < blocks; b++) {
        s[b][0] = s[b][1] = _mm256_setzero_ps();
        less[b][0] = t.zeros ? less8(t.codes, z[b], 0) : s[b][0];
        less[b][1] = t.zeros ? less8(t.codes, z[b], 1) : s[b][0];
    }
    for (size_t k = 0; k < group; k += cols) {
        struct unit u[2];

        K_UNROLL
        for (int b = 0; b < blocks; b++) {
            u[b] = load_unit(w[b] + k / cols * 64);
            _mm_prefetch((const char *)w[b] + k / cols * 64 + K_PREFETCH, _MM_HINT_T0);
        }
        K_UNROLL
        for (int i = 0; i < (int)cols; i++) {
            __m256 y = _mm256_broadcast_ss(x + k + (size_t)i);

            K_UNROLL
            for (int b = 0; b < blocks; b++)
                K_UNROLL
                for (int h = 0; h < 2; h++) {
                    __m256 q = column(t.codes, &u[b], i, h);

                    if (t.zeros)
                        q = _mm256_sub_ps(q, less[b][h]);
                    s[b][h] = _mm256_fmadd_ps(q, y, s[b][h]);
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
    const uint8_t *w[2] = { weights + f->head, weights + f->head + k_packed_block(f) };
    __m256 acc[2][2], s[2][2];

    K_UNROLL
    for (int b = 0; b < blocks; b++)
        acc[b][0] = acc[b][1] = _mm256_setzero_ps();
    for (size_t k = 0; k < f->cols;) {
        size_t groups = k_packed_groups(f->cols - k, group);
        const uint8_t *scales[2] = { w[0], w[1] };

        w[0] += k_packed_scales(f, groups);
        w[1] += k_packed_scales(f, groups);
        for (size_t g = 0; g < groups; g++, k += group) {
            const uint8_t *z[2] = { scales[0] + per * groups + g * K_PACKED_ROWS,
                scales[1] + per * groups + g * K_PACKED_ROWS };

            group_sums(t, blocks, s, w, z, group, x + k);
            w[0] += codes;
            w[1] += codes;
            K_UNROLL
            for (int b = 0; b < blocks; b++)
                K_UNROLL
                for (int h = 0; h < 2; h++)
                    acc[b][h] = _mm256_fmadd_ps(s[b][h],
                        scale8(f, t.codes, scales[b] + per * g, h), acc[b][h]);
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
K_INLINE void
unpack(struct kind t, float *q, const uint8_t *w, const uint8_t *z, size_t group)
{
    const size_t cols = k_packed_unit(t.codes);
    __m256 less[2] = { _mm256_setzero_ps(), _mm256_setzero_ps() };

    if (t.zeros) {
        less[0] = less8(t.codes, z, 0);
        less[1] = less8(t.codes, z, 1);
    }
    for (size_t k = 0; k < group; k += cols, w += 64, q += cols * K_PACKED_ROWS) {
        struct unit u = load_unit(w);

        K_UNROLL
        for (int i = 0; i < (int)cols; i++)
            K_UNROLL
            for (int h = 0; h < 2; h++) {
                __m256 v = column(t.codes, &u, i, h);

                _mm256_store_ps(q + K_PACKED_ROWS * i + 8 * h,
                    t.zeros ? _mm256_sub_ps(v, less[h]) : v);
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

/* The same for all n. */
static void
add_to_all(float *out, size_t ldo, const float *q, size_t group, const __m256 scale[2],
    const float *x, size_t ldx, size_t n)
{
    size_t j = 0;

    for (; n - j >= 6; j += 6)
        add_group(6, out + j * ldo, ldo, q, group, scale, x + j * ldx, ldx);
    if (n - j >= 4) {
        add_group(4, out + j * ldo, ldo, q, group, scale, x + j * ldx, ldx);
        j += 4;
    }
    for (; j < n; j++)
        add_group(1, out + j * ldo, ldo, q, group, scale, x + j * ldx, ldx);
}

/* One block times n tokens; the outputs themselves carry the sum over the groups. */
K_INLINE void
many_tokens(struct kind t, float *out, size_t ldo, const uint8_t *w, const struct moe_blocks *f,
    const float *x, size_t ldx, size_t n)
{
    const size_t group = f->group, per = k_packed_scale(f);
    _Alignas(32) float q[MOST_GROUP * K_PACKED_ROWS];

    for (size_t j = 0; j < n; j++)
        memset(out + j * ldo, 0, K_PACKED_ROWS * sizeof(*out));
    w += f->head;
    for (size_t left = f->cols; left > 0;) {
        size_t groups = k_packed_groups(left, group);
        const uint8_t *scales = w;

        w += k_packed_scales(f, groups);
        left -= groups * group;
        for (size_t g = 0; g < groups; g++, x += group) {
            const __m256 scale[2] = { scale8(f, t.codes, scales + per * g, 0),
                scale8(f, t.codes, scales + per * g, 1) };

            unpack(t, q, w, scales + per * groups + g * K_PACKED_ROWS, group);
            add_to_all(out, ldo, q, group, scale, x, ldx, n);
            w += k_packed_codes(t.codes, group);
        }
    }
}

K_INLINE void
all_blocks(struct kind t, float *out, size_t ldo, const uint8_t *block, size_t blocks,
    const struct moe_blocks *f, const float *x, size_t ldx, size_t n)
{
    size_t bytes = k_packed_block(f), b = 0;

    for (; n == 1 && blocks - b >= 2; b += 2, block += 2 * bytes, out += 2 * K_PACKED_ROWS)
        one_token(t, 2, out, block, f, x);
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
k_gemm_packed_avx2_init(struct moe_kernels *k)
{
    k->gemm_packed = gemm_packed;
}
