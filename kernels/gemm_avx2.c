/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Row-major matrix products, AVX2: tiles of up to 4 rows by 1 token or 2 rows
 * by 3 tokens, whose 16-lane sums stay in registers. The type of the weights is
 * a constant of each of the three functions.
 */
#include <string.h>

#include "kernels/kernels_init.h"
#include "kernels/vec_avx2.h"

/*
 * Tokens of a tile stay in the first-level cache over a strip of rows, so many
 * columns at a time; the strip's weights stay in the second over all tokens.
 */
#define TILE_COLS ((size_t)1024)
#define STRIP_ROWS ((size_t)32)
#define STRIP_BYTES ((size_t)192 << 10)

enum type { F32, BF16, F16 };

K_INLINE size_t
bytes_of(enum type t, size_t n)
{
    return n * (t == F32 ? sizeof(float) : sizeof(uint16_t));
}

/* 8 weights at w as float. BF16 is the high half of a float: bytes to their place, one shuffle. */
K_INLINE __m256
load8(enum type t, const uint8_t *w)
{
    const __m256i place = _mm256_setr_epi8(-1, -1, 0, 1, -1, -1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7,
        -1, -1, 8, 9, -1, -1, 10, 11, -1, -1, 12, 13, -1, -1, 14, 15);

    if (t == F32)
        return _mm256_loadu_ps((const float *)w);
    if (t == F16)
        return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)w));
    return _mm256_castsi256_ps(_mm256_shuffle_epi8(
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)w)), place));
}

/* 16 columns: acc[h][r][j] += the lanes 8 h .. 8 h + 7 of row r and token j. */
K_INLINE void
step(enum type t, int rows, int tokens, __m256 acc[2][4][3], const uint8_t *w, size_t ldw,
    const float *x, size_t ldx)
{
    K_UNROLL
    for (int h = 0; h < 2; h++) {
        __m256 v[4];

        K_UNROLL
        for (int r = 0; r < rows; r++)
            v[r] = load8(t, w + (size_t)r * ldw + bytes_of(t, 8 * (size_t)h));
        K_UNROLL
        for (int j = 0; j < tokens; j++) {
            __m256 y = _mm256_loadu_ps(x + (size_t)j * ldx + 8 * (size_t)h);

            K_UNROLL
            for (int r = 0; r < rows; r++)
                acc[h][r][j] = _mm256_fmadd_ps(v[r], y, acc[h][r][j]);
        }
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
    size_t ldx, size_t cols, size_t from, size_t to, __m256 *sums)
{
    size_t ldw = bytes_of(t, cols), k = from, rest = to - from;
    __m256 acc[2][4][3];

    K_UNROLL
    for (int r = 0; r < rows; r++)
        K_UNROLL
        for (int j = 0; j < tokens; j++)
            K_UNROLL
            for (int h = 0; h < 2; h++)
                acc[h][r][j] = from == 0 ? _mm256_setzero_ps() : sums[(r * tokens + j) * 2 + h];
    for (; to - k >= 16; k += 16)
        step(t, rows, tokens, acc, w + bytes_of(t, k), ldw, x + k, ldx);
    if (to < cols) {
        K_UNROLL
        for (int r = 0; r < rows; r++)
            K_UNROLL
            for (int j = 0; j < tokens; j++)
                K_UNROLL
                for (int h = 0; h < 2; h++)
                    sums[(r * tokens + j) * 2 + h] = acc[h][r][j];
        return;
    }
    rest %= 16;
    if (rest > 0) {
        uint8_t wt[4 * 64];
        float xt[3 * 16];

        copy_weights(wt, w + bytes_of(t, k), ldw, (size_t)rows, bytes_of(t, rest));
        copy_tokens(xt, x + k, ldx, (size_t)tokens, rest);
        step(t, rows, tokens, acc, wt, 64, xt, 16);
    }
    K_UNROLL
    for (int j = 0; j < tokens; j++)
        K_UNROLL
        for (int r = 0; r < rows; r++)
            out[(size_t)j * ldo + (size_t)r] = k_sum16(acc[0][r][j], acc[1][r][j]);
}

/* A strip of rows for one tile of tokens, a stretch of columns after the other. */
K_INLINE void
stretches(enum type t, int many, int tokens, float *out, size_t ldo, const uint8_t *w,
    const float *x, size_t ldx, size_t rows, size_t cols)
{
    __m256 sums[STRIP_ROWS * 6];

    for (size_t k = 0; k < cols || k == 0; k += TILE_COLS)
        for (size_t r = 0; r + (size_t)many <= rows; r += (size_t)many)
            tile(t, many, tokens, out + r, ldo, w + r * bytes_of(t, cols), x, ldx, cols, k,
                cols - k > TILE_COLS ? k + TILE_COLS : cols,
                sums + r * (size_t)tokens * 2);
}

/*
 * A strip of rows for all tokens: tiles of 2 rows and 3 tokens, of 4 rows for
 * the tokens left, and single outputs for the rows left.
 */
K_INLINE void
strip(enum type t, float *out, size_t ldo, const uint8_t *w, const float *x, size_t ldx,
    size_t rows, size_t cols, size_t n)
{
    size_t whole = n / 3 * 3, ldw = bytes_of(t, cols);

    for (size_t j = 0; j < whole; j += 3)
        stretches(t, 2, 3, out + j * ldo, ldo, w, x + j * ldx, ldx, rows, cols);
    for (size_t j = whole; j < n; j++)
        for (size_t r = 0; r < rows / 4 * 4; r += 4)
            tile(t, 4, 1, out + j * ldo + r, ldo, w + r * ldw, x + j * ldx, ldx, cols, 0, cols,
                NULL);
    for (size_t j = 0; j < n; j++)
        for (size_t r = j < whole ? rows / 2 * 2 : rows / 4 * 4; r < rows; r++)
            tile(t, 1, 1, out + j * ldo + r, ldo, w + r * ldw, x + j * ldx, ldx, cols, 0, cols,
                NULL);
}

K_INLINE void
gemm(enum type t, float *out, size_t ldo, const uint8_t *w, const float *x, size_t ldx,
    size_t rows, size_t cols, size_t n)
{
    size_t some = STRIP_BYTES / (bytes_of(t, cols) + 1) / 4 * 4 + 4;

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
k_gemm_avx2_init(struct moe_kernels *k)
{
    k->gemm_f32 = gemm_f32;
    k->gemm_bf16 = gemm_bf16;
    k->gemm_f16 = gemm_f16;
}
