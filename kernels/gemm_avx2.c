/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Row-major matrix products, AVX2: tiles of up to 4 rows by 1 token or 2 rows
 * by 3 tokens, whose 16-lane sums stay in registers. The type of the weights is
 * a constant of each of the three functions.
 */
#include <string.h>

#include "kernels/kernels_init.h"
#include "kernels/vec_avx2.h"

/* Bytes of weights that stay in the second-level cache over all tokens. */
#define STRIP_BYTES ((size_t)192 << 10)

enum type { F32, BF16, F16 };

K_INLINE size_t
bytes_of(enum type t, size_t n)
{
    return n * (t == F32 ? sizeof(float) : sizeof(uint16_t));
}

/* 8 weights at w as float. */
K_INLINE __m256
load8(enum type t, const uint8_t *w)
{
    if (t == F32)
        return _mm256_loadu_ps((const float *)w);
    if (t == F16)
        return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)w));
    return _mm256_castsi256_ps(_mm256_slli_epi32(
        _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)w)), 16));
}

/* The first n (up to 8) of them, the rest 0. */
K_INLINE __m256
load_part(enum type t, const uint8_t *w, size_t n)
{
    uint8_t part[32] = { 0 };

    memcpy(part, w, bytes_of(t, n < 8 ? n : 8));
    return load8(t, part);
}

/* Lanes 8 h .. 8 h + 7 of the step at column k, of which n count: all when n >= 8. */
K_INLINE void
half_step(enum type t, int rows, int tokens, __m256 acc[][3], const uint8_t *const *w,
    const float *x, size_t ldx, size_t k, size_t n)
{
    __m256i mask = k_mask8(n);
    __m256 v[4], y;

    K_UNROLL
    for (int r = 0; r < rows; r++)
        v[r] = n >= 8 ? load8(t, w[r] + bytes_of(t, k)) : load_part(t, w[r] + bytes_of(t, k), n);
    K_UNROLL
    for (int j = 0; j < tokens; j++) {
        y = n >= 8 ? _mm256_loadu_ps(x + (size_t)j * ldx + k)
                   : _mm256_maskload_ps(x + (size_t)j * ldx + k, mask);
        K_UNROLL
        for (int r = 0; r < rows; r++)
            acc[r][j] = n >= 8 ? _mm256_fmadd_ps(v[r], y, acc[r][j])
                               : k_fma8_where(mask, v[r], y, acc[r][j]);
    }
}

/* rows x tokens outputs; both are constants where it is called. */
K_INLINE void
tile(enum type t, int rows, int tokens, float *out, size_t ldo, const uint8_t *weights,
    const float *x, size_t ldx, size_t cols)
{
    const uint8_t *w[4];
    __m256 lo[4][3], hi[4][3];
    size_t k = 0;

    K_UNROLL
    for (int r = 0; r < rows; r++) {
        w[r] = weights + bytes_of(t, (size_t)r * cols);
        K_UNROLL
        for (int j = 0; j < tokens; j++)
            lo[r][j] = hi[r][j] = _mm256_setzero_ps();
    }
    for (; cols - k >= 16; k += 16) {
        half_step(t, rows, tokens, lo, w, x, ldx, k, 8);
        half_step(t, rows, tokens, hi, w, x, ldx, k + 8, 8);
    }
    if (k < cols)
        half_step(t, rows, tokens, lo, w, x, ldx, k, cols - k);
    if (k + 8 < cols)
        half_step(t, rows, tokens, hi, w, x, ldx, k + 8, cols - k - 8);
    K_UNROLL
    for (int j = 0; j < tokens; j++)
        K_UNROLL
        for (int r = 0; r < rows; r++)
            out[(size_t)j * ldo + (size_t)r] = k_sum16(lo[r][j], hi[r][j]);
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
    size_t some = STRIP_BYTES / (bytes_of(t, cols) + 1) / 4 * 4 + 4;

    for (size_t r = 0; r < rows; r += some) {
        size_t m = rows - r < some ? rows - r : some, j = 0;
        const uint8_t *v = w + bytes_of(t, r * cols);

        for (; n - j >= 3; j += 3)
            strip(t, 2, 3, out + j * ldo + r, ldo, v, x + j * ldx, ldx, m, cols);
        if (n - j == 2)
            strip(t, 2, 2, out + j * ldo + r, ldo, v, x + j * ldx, ldx, m, cols);
        else if (n - j == 1)
            strip(t, 4, 1, out + j * ldo + r, ldo, v, x + j * ldx, ldx, m, cols);
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
k_gemm_avx2_init(struct moe_kernels *k)
{
    k->gemm_f32 = gemm_f32;
    k->gemm_bf16 = gemm_bf16;
    k->gemm_f16 = gemm_f16;
}
