/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One handle for any weight matrix: its format, its shape and where its bytes
 * are. A format knows how its rows lie and which kernel multiplies them; nothing
 * else in the engine asks what a format is.
 *
 * A matrix is [rows][cols], out x in. Its bytes belong to a device; the handle
 * owns nothing and is copied freely.
 */
#ifndef MOE_ENGINE_MATRIX_H
#define MOE_ENGINE_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/formats/dtype.h"
#include "common/formats/qmat.h"
#include "kernels/kernels.h"

/*
 * float: activations stay F32, the reference. fast: activations become int8,
 * one scale a group, where the format has packed codes of whole numbers;
 * products of other formats are the same in both.
 */
enum moe_arith { MOE_ARITH_F32, MOE_ARITH_FAST };

enum moe_matrix_format {
    MOE_MATRIX_F32, MOE_MATRIX_BF16, MOE_MATRIX_F16,    /* rows as in the file */
    MOE_MATRIX_PACKED,  /* 16-row blocks (moe-packed(5)) */
    MOE_MATRIX_CODED    /* any other encoding: rows are decoded as they are used */
};

struct moe_mem;             /* memory of a device, see backend.h */

struct moe_view {           /* a place in it */
    struct moe_mem *mem;    /* NULL = nothing */
    size_t at;              /* bytes from the start */
};

struct moe_matrix {
    enum moe_matrix_format format;
    bool paired;            /* PACKED: blocks of gate and up alternate; rows counts one of them */
    size_t rows, cols;
    struct moe_blocks blocks;       /* PACKED: what they hold */
    size_t block_bytes;     /* PACKED: of 16 rows */
    struct moe_view data;   /* unused by CODED */
    struct moe_view bias;   /* [rows] F32, added to the product; or nothing */
    struct moe_view up_bias;        /* paired: that of up */
    const struct moe_qmat *coded;   /* CODED: parts in host memory, checked; borrowed */
};

/* Whether arith turns this matrix's activations to int8 first. */
bool moe_matrix_int8(const struct moe_matrix *m, enum moe_arith arith);

/* Activations of n rows as a kernel takes them. */
struct moe_acts {
    const float *x;         /* [n][ldx] */
    size_t ldx;
    const int8_t *q;        /* [n][cols], scales and sums [n][cols / group]; NULL: use x */
    const float *scale;
    const int32_t *sum;
};

/* Some rows on the host, ready to be multiplied. */
struct moe_strip {
    const struct moe_matrix *m;
    const void *data;       /* of the first of them */
    size_t rows;
};

/*
 * Rows first .. first + rows - 1 of m, whose bytes lie at data; first is a
 * multiple of 16, and rows too unless they are the last. CODED rows are decoded
 * into scratch of moe_matrix_scratch() floats.
 */
struct moe_strip moe_matrix_strip(const struct moe_matrix *m, const void *data, size_t first,
    size_t rows, float *scratch);

/* Floats of scratch for a strip of `rows` rows. */
size_t moe_matrix_scratch(const struct moe_matrix *m, size_t rows);

/*
 * out[j * ldo + r] for row r of the strip and j < n, without the bias. PACKED writes
 * whole blocks of 16 rows. A paired matrix gives 16 gate rows, then their 16 up
 * rows, and so on: out is then twice as wide.
 */
void moe_matrix_multiply(const struct moe_strip *s, const struct moe_acts *a, size_t n,
    float *out, size_t ldo);

/* Row r of a matrix of F32, BF16, F16 or CODED rows as float (the embedding). */
void moe_matrix_row(const struct moe_matrix *m, const void *data, size_t r, float *out);

/* The format of plain rows of a type; false: none. */
bool moe_matrix_plain(enum moe_dtype t, enum moe_matrix_format *f);

/* Bytes of the data of a whole matrix that is not CODED. */
size_t moe_matrix_bytes(const struct moe_matrix *m);

#endif
