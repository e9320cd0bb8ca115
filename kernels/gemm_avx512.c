/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Row-major matrix products, AVX-512: tiles of up to 8 rows by 1 token or 4
 * rows by 6 tokens, whose 16-lane sums stay in registers. The type of the
 * weights is a constant of each of the three functions.
 */
#include <string.h>

#include "kernels/kernels_init.h"
#include "kernels/vec_avx512.h"

/*
 * Tokens of a tile stay in the first-level cache over a strip of rows, so many
 * columns at a time; the strip's weights stay in the second over all tokens.
 */
#define TILE_COLS ((size_t)512)
#define STRIP_ROWS ((size_t)48)
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

/* 16 columns: acc[r][j] += the lanes of row r and token j. */
K_INLINE void
step(enum type t, int rows, int tokens, __m512 acc[8][6], const uint8_t *w, size_t ldw,
    const float *x, size_t ldx)
{
    __m512 v[8];

    K_UNROLL
    for (int r = 0; r < rows; r++)
        v[r] = load16(t, w + (size_t)r * ldw);
    K_UNROLL
    for (int j = 0; j < tokens; j++) {
        __m512 y = _mm512_loadu_ps(x + (size_t)j * ldx);

        K_UNROLL
        for (int r = 0; r < rows; r++)
            acc[r][j] = _mm512_fmadd_ps(v[r], y, acc[r][j]);
    }
}

/* The last columns of each row and of each token, a step of 16 each. */
static void
copy_weights(uint8_t *to, const uint8_t *w, size_t ldw, size_t rows, size_t bytes)
{
    memset(to, 0, rows * 64);
    for (size_t r = 0; r < rows; r++)
        memcpy(to + r * 64, w + r * ldw, bytes);
}

static void
copy_tokens(float *to, const float *x, size_t ldx, size_t tokens, size_t n)
{
    for (size_t i = 0; i < tokens * 16; i++)
        to[i] = i % 16 < n ? x[i / 16 * ldx + i % 16] : -0.0f;
}

/*
 * rows x tokens outputs; both are constants where it is called. Columns from
 * (a multiple of 16) up to some TILE_COLS later: sums carries the lanes from
 * one stretch of columns to the next, the last one writes the outputs.
 *
 * The columns behind the last whole step are copied beside zeros: 0 in w, -0 in
 * x, since adding 0 * -0 changes nothing, not even a sum of -0.
 */
K_INLINE void
tile(enum type t, int rows, int tokens, float *out, size_t ldo, const uint8_t *w, const float *x,
    size_t ldx, size_t cols, size_t from, size_t to, __m512 *sums)
{
    size_t ldw = bytes_of(t, cols), k = from, rest = to - from;
    __m512 acc[8][6];

    K_UNROLL
    for (int r = 0; r < rows; r++)
        K_UNROLL
        for (int j = 0; j < tokens; j++)
            acc[r][j] = from == 0 ? _mm512_setzero_ps() : sums[r * tokens + j];
    for (; to - k >= 16; k += 16)
        step(t, rows, tokens, acc, w + bytes_of(t, k), ldw, x + k, ldx);
    if (to < cols) {
        K_UNROLL
        for (int r = 0; r < rows; r++)
            K_UNROLL
            for (int j = 0; j < tokens; j++)
                sums[r * tokens + j] = acc[r][j];
        return;
    }
    rest %= 16;
    if (rest > 0) {
        uint8_t wt[8 * 64];
        float xt[6 * 16];

        copy_weights(wt, w + bytes_of(t, k), ldw, (size_t)rows, bytes_of(t, rest));
        copy_tokens(xt, x + k, ldx, (size_t)tokens, rest);
        step(t, rows, tokens, acc, wt, 64, xt, 16);
    }
    K_UNROLL
    for (int j = 0; j < tokens; j++)
        K_UNROLL
        for (int r = 0; r < rows; r++)
            out[(size_t)j * ldo + (size_t)r] = k_sum16(acc[r][j]);
}

/* A strip of rows for one tile of tokens, a stretch of columns after the other. */
K_INLINE void
stretches(enum type t, int many, int tokens, float *out, size_t ldo, const uint8_t *w,
    const float *x, size_t ldx, size_t rows, size_t cols)
{
    __m512 sums[STRIP_ROWS * 6];

    for (size_t k = 0; k < cols || k == 0; k += TILE_COLS)
        for (size_t r = 0; r + (size_t)many <= rows; r += (size_t)many)
            tile(t, many, tokens, out + r, ldo, w + r * bytes_of(t, cols), x, ldx, cols, k,
                cols - k > TILE_COLS ? k + TILE_COLS : cols,
                sums + r * (size_t)tokens);
}

/*
 * A strip of rows for all tokens: tiles of 4 rows and 6 or 3 tokens, of 8 rows
 * for the tokens left, and single outputs for the rows left.
 */
K_INLINE void
strip(enum type t, float *out, size_t ldo, const uint8_t *w, const float *x, size_t ldx,
    size_t rows, size_t cols, size_t n)
{
    size_t six = n / 6 * 6, three = n / 3 * 3, ldw = bytes_of(t, cols);

    for (size_t j = 0; j < six; j += 6)
        stretches(t, 4, 6, out + j * ldo, ldo, w, x + j * ldx, ldx, rows, cols);
    for (size_t j = six; j < three; j += 3)
        stretches(t, 4, 3, out + j * ldo, ldo, w, x + j * ldx, ldx, rows, cols);
    for (size_t j = three; j < n; j++)
        for (size_t r = 0; r < rows / 8 * 8; r += 8)
            tile(t, 8, 1, out + j * ldo + r, ldo, w + r * ldw, x + j * ldx, ldx, cols, 0, cols,
                NULL);
    for (size_t j = 0; j < n; j++)
        for (size_t r = j < three ? rows / 4 * 4 : rows / 8 * 8; r < rows; r++)
            tile(t, 1, 1, out + j * ldo + r, ldo, w + r * ldw, x + j * ldx, ldx, cols, 0, cols,
                NULL);
}

K_INLINE void
gemm(enum type t, float *out, size_t ldo, const uint8_t *w, const float *x, size_t ldx,
    size_t rows, size_t cols, size_t n)
{
    size_t some = STRIP_BYTES / (bytes_of(t, cols) + 1) / 8 * 8 + 8;

    some = some < STRIP_ROWS ? some : STRIP_ROWS;
    for (size_t r = 0; r < rows; r += some)
        strip(t, out + r, ldo, w + bytes_of(t, r * cols), x, ldx,
            rows - r < some ? rows - r : some, cols, n);
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
