/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to qmat*.c and repack.c: the decoders of the encodings and what they share. A
 * check tests sizes and scales; rows decodes a matrix that has been checked.
 */
#ifndef MOE_FORMATS_QMAT_DEC_H
#define MOE_FORMATS_QMAT_DEC_H

#include "common/base/err.h"
#include "common/formats/qmat.h"

/* Columns that share a scale: group, or the whole row. */
uint64_t moe_qmat_group(const struct moe_qmat *m);

/* Scale i as float, of a type that moe_qmat_scales() lets through. U8 is E8M0. */
float moe_qmat_scale(const struct moe_qmat *m, uint64_t i);

/* A part must hold n elements of `bits` bits, rounded up to bytes. */
int moe_qmat_part(const char *name, const char *part, const void *p, uint64_t len,
    uint64_t n, unsigned bits, struct moe_err *e);

/* rows x per_row scales must be there and be numbers. */
int moe_qmat_scales(const struct moe_qmat *m, uint64_t rows, uint64_t per_row,
    const char *name, struct moe_err *e);

/* group must divide the columns. */
int moe_qmat_divides(const struct moe_qmat *m, const char *name, struct moe_err *e);

/* Code k of a row as it is stored (offset), and the zero point of its group g, not offset. */
unsigned moe_qmat_int_code(const struct moe_qmat *m, uint64_t row, uint64_t k);
int moe_qmat_int_zero(const struct moe_qmat *m, uint64_t row, uint64_t g);

int moe_qmat_int_check(const struct moe_qmat *m, const char *name, struct moe_err *e);
void moe_qmat_int_rows(const struct moe_qmat *m, uint64_t row, uint64_t n, float *out);

int moe_qmat_fp8_check(const struct moe_qmat *m, const char *name, struct moe_err *e);
void moe_qmat_fp8_rows(const struct moe_qmat *m, uint64_t row, uint64_t n, float *out);

int moe_qmat_mx_check(const struct moe_qmat *m, const char *name, struct moe_err *e);
void moe_qmat_mx_rows(const struct moe_qmat *m, uint64_t row, uint64_t n, float *out);

/* Code of output o and input i, and the zero point of group g, both as whole numbers from 0. */
unsigned moe_qmat_gptq_code(const struct moe_qmat *m, uint64_t o, uint64_t i);
int moe_qmat_gptq_zero(const struct moe_qmat *m, uint64_t g, uint64_t o);

int moe_qmat_gptq_check(const struct moe_qmat *m, const char *name, struct moe_err *e);
void moe_qmat_gptq_rows(const struct moe_qmat *m, uint64_t row, uint64_t n, float *out);

int moe_qmat_ggml_check(const struct moe_qmat *m, const char *name, struct moe_err *e);
void moe_qmat_ggml_rows(const struct moe_qmat *m, uint64_t row, uint64_t n, float *out);

#endif
