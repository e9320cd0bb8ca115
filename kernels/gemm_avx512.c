/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Row-major matrix products, AVX-512: tiles of up to 8 rows by 1 token or 4
 * rows by 6 tokens, whose 16-lane sums stay in registers. The type of the
 * weights is a constant of each of the three functions.
 */
#include <string.h>

#include "kernels/kernels_init.h"
#include "kernels/vec_avx512.h"

/* Bytes of weights that stay in the second-level cache over all tokens. */
#define STRIP_BYTES ((size_t)384 << 10)

enum type { F32, BF16, F16 };

K_INLINE size_t
bytes_of(enum type t, size_t n)
{
    return n * (t == F32 ? sizeof(float) : sizeof(uint16_t));
}

/* 16 weights at w as float. */
K_INLINE __m512
load16(enum type t, const uint8_t *w)
{
    if (t == F32)
        return _mm512_loadu_ps((const float *)w);
    if (t == F16)
        return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)w));
    return _mm512_castsi512_ps(_mm512_slli_epi32(
        _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)w)), 16));
}

/* The first n (under 16) of them, the rest 0. */
K_INLINE __m512
load_part(enum type t, const uint8_t *w, size_t n)
{
    uint8_t part[64] = { 0 };

    memcpy(part, w, bytes_of(t, n));
    return load16(t, part);
}

/* The columns behind the last whole step. */
K_INLINE void
tail(enum type t, int rows, int tokens, __m512 acc[][6], const uint8_t *const *w, const float *x,
    size_t ldx, size_t n)
{
    __mmask16 mask = k_mask16(n);

    K_UNROLL
    for (int r = 0; r < rows; r++) {
        __m512 v = load_part(t, w[r], n);

        K_UNROLL
        for (int j = 0; j < tokens; j++)
            acc[r][j] = _mm512_mask3_fmadd_ps(v, _mm512_maskz_loadu_ps(mask, x + (size_t)j * ldx),
                acc[r][j], mask);
    }
}

/* rows x tokens outputs; both are constants where it is called. */
K_INLINE void
tile(enum type t, int rows, int tokens, float *out, size_t ldo, const uint8_t *weights,
    const float *x, size_t ldx, size_t cols)
{
    const uint8_t *w[8];
    __m512 acc[8][6], v[8], y;
    size_t k = 0;

    K_UNROLL
    for (int r = 0; r < rows; r++) {
        w[r] = weights + bytes_of(t, (size_t)r * cols);
        K_UNROLL
        for (int j = 0; j < tokens; j++)
            acc[r][j] = _mm512_setzero_ps();
    }
    for (; cols - k >= 16; k += 16) {
        K_UNROLL
        for (int r = 0; r < rows; r++, w[r - 1] += bytes_of(t, 16))
            v[r] = load16(t, w[r]);
        K_UNROLL
        for (int j = 0; j < tokens; j++) {
            y = _mm512_loadu_ps(x + (size_t)j * ldx + k);
            K_UNROLL
            for (int r = 0; r < rows; r++)
                acc[r][j] = _mm512_fmadd_ps(v[r], y, acc[r][j]);
        }
    }
    if (k < cols)
        tail(t, rows, tokens, acc, w, x + k, ldx, cols - k);
    K_UNROLL
    for (int j = 0; j < tokens; j++)
        K_UNROLL
        for (int r = 0; r < rows; r++)
            out[(size_t)j * ldo + (size_t)r] = k_sum16(acc[r][j]);
}

/* A strip of rows for some tokens: the tile's rows at a time, then one by one. */
K_INLINE void
strip(enum type t, int many, int tokens, float *out, size_t ldo, const uint8_t *w,
    const float *x, size_t ldx, size_t rows, size_t cols)
{
    size_t r = 0;

    for (; rows - r >= (size_t)many; r += (size_t)many)
        tile(t, many, tokens, out + r, ldo, w + bytes_of(t, r * cols), x, ldx, cols);
    for (; r < rows; r++)
        tile(t, 1, tokens, out + r, ldo, w + bytes_of(t, r * cols), x, ldx, cols);
}

K_INLINE void
gemm(enum type t, float *out, size_t ldo, const uint8_t *w, const float *x, size_t ldx,
    size_t rows, size_t cols, size_t n)
{
    size_t some = STRIP_BYTES / (bytes_of(t, cols) + 1) / 8 * 8 + 8;

    for (size_t r = 0; r < rows; r += some) {
        size_t m = rows - r < some ? rows - r : some, j = 0;
        const uint8_t *v = w + bytes_of(t, r * cols);

        for (; n - j >= 6; j += 6)
            strip(t, 4, 6, out + j * ldo + r, ldo, v, x + j * ldx, ldx, m, cols);
        for (; n - j >= 3; j += 3)
            strip(t, 4, 3, out + j * ldo + r, ldo, v, x + j * ldx, ldx, m, cols);
        for (; j < n; j++)
            strip(t, 8, 1, out + j * ldo + r, ldo, v, x + j * ldx, ldx, m, cols);
    }
}

static void
gemm_f32(float *out, size_t ldo, const float *w, const float *x, size_t ldx, size_t rows,
    size_t cols, size_t n)
{
    gemm(F32, out, ldo, (const uint8_t *)w, x, ldx, rows, cols, n);
}

static void
gemm_bf16(float *out, size_t ldo, const uint16_t *w, const float *x, size_t ldx, size_t rows,
    size_t cols, size_t n)
{
    gemm(BF16, out, ldo, (const uint8_t *)w, x, ldx, rows, cols, n);
}

static void
gemm_f16(float *out, size_t ldo, const uint16_t *w, const float *x, size_t ldx, size_t rows,
    size_t cols, size_t n)
{
    gemm(F16, out, ldo, (const uint8_t *)w, x, ldx, rows, cols, n);
}

void
k_gemm_avx512_init(struct moe_kernels *k)
{
    k->gemm_f32 = gemm_f32;
    k->gemm_bf16 = gemm_bf16;
    k->gemm_f16 = gemm_f16;
}
