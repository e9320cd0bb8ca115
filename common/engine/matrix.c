/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the table of formats: how many bytes rows take and which kernel
 * multiplies them on the host. Where the bytes lie and who runs which rows is
 * the device's business.
 */
#include "common/engine/matrix.h"
#include "common/formats/packed.h"
#include "kernels/kernels.h"

struct format {
    size_t element;             /* bytes of an element of plain rows, else 0 */
    void (*multiply)(const struct moe_strip *s, const struct moe_acts *a, size_t n, float *out,
        size_t ldo);
};

static void
multiply_f32(const struct moe_strip *s, const struct moe_acts *a, size_t n, float *out,
    size_t ldo)
{
    moe_kernels()->gemm_f32(out, ldo, s->data, a->x, a->ldx, s->rows, s->m->cols, n);
}

static void
multiply_bf16(const struct moe_strip *s, const struct moe_acts *a, size_t n, float *out,
    size_t ldo)
{
    moe_kernels()->gemm_bf16(out, ldo, s->data, a->x, a->ldx, s->rows, s->m->cols, n);
}

static void
multiply_f16(const struct moe_strip *s, const struct moe_acts *a, size_t n, float *out,
    size_t ldo)
{
    moe_kernels()->gemm_f16(out, ldo, s->data, a->x, a->ldx, s->rows, s->m->cols, n);
}

static void
multiply_packed(const struct moe_strip *s, const struct moe_acts *a, size_t n, float *out,
    size_t ldo)
{
    const struct moe_matrix *m = s->m;
    size_t blocks = (m->paired ? 2 : 1) * ((s->rows + MOE_PACKED_ROWS - 1) / MOE_PACKED_ROWS);

    if (a->q != NULL)
        moe_kernels()->gemm_packedq(out, ldo, s->data, blocks, &m->blocks, a->q, a->scale, a->sum,
            n);
    else
        moe_kernels()->gemm_packed(out, ldo, s->data, blocks, &m->blocks, a->x, a->ldx, n);
}

static const struct format formats[] = {
    [MOE_MATRIX_F32] = { 4, multiply_f32 },
    [MOE_MATRIX_BF16] = { 2, multiply_bf16 },
    [MOE_MATRIX_F16] = { 2, multiply_f16 },
    [MOE_MATRIX_PACKED] = { 0, multiply_packed },
    [MOE_MATRIX_CODED] = { 0, multiply_f32 },
};

bool
moe_matrix_int8(const struct moe_matrix *m, enum moe_arith arith)
{
    return arith == MOE_ARITH_FAST && m->format == MOE_MATRIX_PACKED &&
        m->blocks.codes != MOE_CODES_E4M3;
}

struct moe_strip
moe_matrix_strip(const struct moe_matrix *m, const void *data, size_t first, size_t rows,
    float *scratch)
{
    struct moe_strip s = { m, scratch, rows };
    size_t at = first * m->cols * formats[m->format].element;

    if (m->format == MOE_MATRIX_CODED) {
        moe_qmat_rows(m->coded, first, rows, scratch);
        return s;
    }
    if (m->format == MOE_MATRIX_PACKED)
        at = (m->paired ? 2 : 1) * (first / MOE_PACKED_ROWS) * m->block_bytes;
    return (struct moe_strip){ m, (const unsigned char *)data + at, rows };
}

size_t
moe_matrix_scratch(const struct moe_matrix *m, size_t rows)
{
    return m->format == MOE_MATRIX_CODED ? rows * m->cols : 0;
}

void
moe_matrix_multiply(const struct moe_strip *s, const struct moe_acts *a, size_t n, float *out,
    size_t ldo)
{
    formats[s->m->format].multiply(s, a, n, out, ldo);
}

void
moe_matrix_row(const struct moe_matrix *m, const void *data, size_t r, float *out)
{
    const unsigned char *p = data;
    size_t at = r * m->cols * formats[m->format].element;

    switch (m->format) {
    case MOE_MATRIX_F32:
        moe_dtype_to_f32(MOE_F32, p + at, m->cols, out);
        break;
    case MOE_MATRIX_BF16:
        moe_kernels()->bf16_f32(out, (const uint16_t *)(const void *)(p + at), m->cols);
        break;
    case MOE_MATRIX_F16:
        moe_kernels()->f16_f32(out, (const uint16_t *)(const void *)(p + at), m->cols);
        break;
    case MOE_MATRIX_CODED:
        moe_qmat_rows(m->coded, r, 1, out);
        break;
    case MOE_MATRIX_PACKED:
        break;
    }
}

bool
moe_matrix_plain(enum moe_dtype t, enum moe_matrix_format *f)
{
    switch (t) {
    case MOE_F32:
        *f = MOE_MATRIX_F32;
        return true;
    case MOE_BF16:
        *f = MOE_MATRIX_BF16;
        return true;
    case MOE_F16:
        *f = MOE_MATRIX_F16;
        return true;
    default:
        return false;
    }
}

size_t
moe_matrix_bytes(const struct moe_matrix *m)
{
    size_t blocks = (m->rows + MOE_PACKED_ROWS - 1) / MOE_PACKED_ROWS;

    if (m->format == MOE_MATRIX_PACKED)
        return (m->paired ? 2 : 1) * blocks * m->block_bytes;
    return m->rows * m->cols * formats[m->format].element;
}
