/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the way from the encodings of files to the packed layout. What the codes
 * of an encoding are is qmat*.c's, where they go is packed.c's.
 */
#include <string.h>

#include "common/formats/ggml.h"
#include "common/formats/qmat_dec.h"
#include "common/formats/repack.h"

#define GGML_GROUP 32           /* columns of the blocks of ggml that the layout has */

/* Where a scale is that serves columns from k on. */
static uint64_t
group_at(const struct moe_qmat *q, uint64_t k)
{
    return k / moe_qmat_group(q);
}

/* The largest group of the layout that divides the columns and the source's groups. */
static uint64_t
group_of(const struct moe_qmat *q)
{
    uint64_t g = 128, own = q->group == 0 ? q->cols : q->group;

    if (q->enc == MOE_ENC_GGML)
        own = GGML_GROUP;
    /* A group that ends with the row may be short; then only the columns count. */
    while (g >= 32 && (q->cols % g != 0 || (own % g != 0 && own < q->cols)))
        g /= 2;
    return g >= 32 ? g : 0;
}

/* ---- Which form ----------------------------------------------------------------- */

/* Groups in the order of columns, whatever the index says. */
static bool
in_order(const struct moe_qmat *q)
{
    for (uint64_t i = 0; q->g_idx != NULL && i < q->cols; i++) {
        int32_t g;

        memcpy(&g, q->g_idx + i, sizeof(g));
        if (g < 0 || (uint64_t)g != i / moe_qmat_group(q))
            return false;
    }
    return true;
}

/* Whether a code of the rows is NaN. */
static bool
has_nan(const struct moe_repack *from, uint64_t rows)
{
    const struct moe_qmat *q = from->q;
    unsigned bad = 0;

    for (uint64_t r = 0; r < rows; r++) {
        const unsigned char *p = (const unsigned char *)q->data +
            (from->first + r * from->step) * q->cols;

        for (uint64_t k = 0; k < q->cols; k++)
            bad |= (p[k] & 0x7f) == 0x7f;
    }
    return bad != 0;
}

static bool
kind_of_ggml(uint32_t type, struct moe_packed *m)
{
    m->scale_dtype = MOE_F16;
    switch (type) {
    case MOE_GGML_Q4_0:
        m->kind = MOE_PACKED_I4;
        return true;
    case MOE_GGML_Q8_0:
        m->kind = MOE_PACKED_I8;
        return true;
    case MOE_GGML_MXFP4:
        m->kind = MOE_PACKED_E2M1;
        m->scale_dtype = MOE_BF16;
        return true;
    default:
        return false;
    }
}

/* Kind, type of scale and zero points of an encoding. */
static bool
kind_of(const struct moe_repack *from, uint64_t rows, struct moe_packed *m)
{
    const struct moe_qmat *q = from->q;

    m->scale_dtype = q->scale_dtype;
    switch (q->enc) {
    case MOE_ENC_CT_PACK:
    case MOE_ENC_CT_INT8:
        m->kind = q->enc == MOE_ENC_CT_INT8 || q->bits == 8 ? MOE_PACKED_I8 : MOE_PACKED_I4;
        m->zeros = !q->symmetric;
        return q->enc == MOE_ENC_CT_INT8 || q->bits == 4 || q->bits == 8;
    case MOE_ENC_GPTQ:
    case MOE_ENC_AWQ:
        m->kind = q->bits == 8 ? MOE_PACKED_I8 : MOE_PACKED_I4;
        m->zeros = true;
        return q->bits == 4 || q->bits == 8;
    case MOE_ENC_CT_MXFP4:
    case MOE_ENC_OSS_MXFP4:
        m->kind = MOE_PACKED_E2M1;
        m->scale_dtype = MOE_BF16;
        return true;
    case MOE_ENC_CT_MXFP8:
        m->kind = MOE_PACKED_E4M3;
        m->scale_dtype = MOE_BF16;
        return !has_nan(from, rows);
    case MOE_ENC_CT_FP8:
    case MOE_ENC_DS_FP8:
        m->kind = MOE_PACKED_E4M3;
        return !has_nan(from, rows);
    case MOE_ENC_GGML:
        return kind_of_ggml(q->ggml, m);
    default:
        return false;
    }
}

bool
moe_repack_of(const struct moe_repack *from, uint64_t rows, struct moe_packed *m)
{
    const struct moe_qmat *q = from->q;
    uint64_t bytes;

    *m = (struct moe_packed){ .rows = rows, .cols = q->cols, .group = group_of(q) };
    return m->group != 0 && in_order(q) && kind_of(from, rows, m) &&
        moe_packed_block_bytes(m, &bytes);
}

/* ---- Filling a step --------------------------------------------------------------- */

/* A power of two, 2^(e - 127 - less), as BF16. */
static uint32_t
power(unsigned e, unsigned less)
{
    return e > less ? (e - less) << 7 : 0x40u >> (less - e);
}

static uint32_t
bits16(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

/* Element i of the scales as stored. */
static uint32_t
stored_scale(const struct moe_qmat *q, uint64_t i)
{
    const unsigned char *p = q->scale;

    if (q->scale_dtype == MOE_F32)
        return bits16(p + 4 * i) | bits16(p + 4 * i + 2) << 16;
    return bits16(p + 2 * i);
}

/* Scale and zero point of a row's columns from k on. */
static void
fill_group(const struct moe_packed *m, const struct moe_qmat *q, uint64_t row, uint64_t k,
    uint32_t *scale, uint8_t *zero)
{
    uint64_t g = group_at(q, k), per_row = (q->cols - 1) / moe_qmat_group(q) + 1;
    uint64_t first = row * per_row;

    *zero = 0;
    switch (q->enc) {
    case MOE_ENC_GPTQ:
    case MOE_ENC_AWQ:
        *scale = stored_scale(q, g * q->rows + row);
        *zero = (uint8_t)moe_qmat_gptq_zero(q, g, row);
        break;
    case MOE_ENC_CT_MXFP4:
    case MOE_ENC_OSS_MXFP4:
        *scale = power(((const unsigned char *)q->scale)[first + g], 1);
        break;
    case MOE_ENC_CT_MXFP8:
        *scale = power(((const unsigned char *)q->scale)[first + g], 0);
        break;
    case MOE_ENC_CT_FP8:
    case MOE_ENC_DS_FP8:
        *scale = stored_scale(q, (q->block_rows == 0 ? 0 : row / q->block_rows * per_row) + g);
        break;
    default:
        *scale = stored_scale(q, first + g);
        if (m->zeros)
            *zero = (uint8_t)(moe_qmat_int_zero(q, row, g) + (m->kind == MOE_PACKED_I4 ? 8 : 128));
    }
}

/* Codes of a row's columns [k, k + n). */
static void
fill_codes(const struct moe_qmat *q, uint64_t row, uint64_t k, uint64_t n, uint8_t *to)
{
    const unsigned char *p = q->data;

    switch (q->enc) {
    case MOE_ENC_GPTQ:
    case MOE_ENC_AWQ:
        for (uint64_t i = 0; i < n; i++)
            to[i] = (uint8_t)moe_qmat_gptq_code(q, row, k + i);
        break;
    case MOE_ENC_CT_MXFP4:
    case MOE_ENC_OSS_MXFP4:
        p += (row * q->cols + k) / 2;
        for (uint64_t i = 0; i < n; i++)
            to[i] = p[i / 2] >> (i % 2 * 4) & 15;
        break;
    case MOE_ENC_CT_MXFP8:
    case MOE_ENC_CT_FP8:
    case MOE_ENC_DS_FP8:
        memcpy(to, p + row * q->cols + k, n);
        break;
    default:
        for (uint64_t i = 0; i < n; i++)
            to[i] = (uint8_t)moe_qmat_int_code(q, row, k + i);
    }
}

/* A row's columns [k, k + n) of ggml's blocks: codes and scales together. */
static void
fill_ggml(const struct moe_packed *m, const struct moe_qmat *q, uint64_t row, uint64_t k,
    uint64_t n, uint8_t *code, uint32_t *scale)
{
    uint64_t elements = 0, bytes = 0;
    const unsigned char *p;

    (void)moe_ggml_block(q->ggml, &elements, &bytes);
    p = (const unsigned char *)q->data + (row * q->cols + k) / GGML_GROUP * bytes;
    for (uint64_t g = 0; g < n / GGML_GROUP; g++, p += bytes, code += GGML_GROUP) {
        const unsigned char *c = p + (m->kind == MOE_PACKED_E2M1 ? 1 : 2);

        scale[g] = m->kind == MOE_PACKED_E2M1 ? power(p[0], 1) : bits16(p);
        for (unsigned i = 0; i < GGML_GROUP; i++)
            code[i] = m->kind == MOE_PACKED_I8 ? c[i] ^ 128 : i < 16 ? c[i] & 15 : c[i - 16] >> 4;
    }
}

/* Row r of the step at column k. */
static void
fill_row(const struct moe_packed *m, const struct moe_repack *from, uint64_t row, uint64_t k,
    uint64_t n, struct moe_packed_step *s, unsigned r)
{
    uint64_t at = from->first + row * from->step;

    if (from->q->enc == MOE_ENC_GGML) {
        fill_ggml(m, from->q, at, k, n, s->code[r], s->scale[r]);
        return;
    }
    fill_codes(from->q, at, k, n, s->code[r]);
    for (uint64_t g = 0; g < n / m->group; g++)
        fill_group(m, from->q, at, k + g * m->group, &s->scale[r][g], &s->zero[r][g]);
}

/* The same of a row that the matrix does not have: q = 0, whose scale is 0. */
static void
fill_none(const struct moe_packed *m, struct moe_packed_step *s, unsigned r)
{
    int zero = m->kind == MOE_PACKED_I4 ? 8 : m->kind == MOE_PACKED_I8 ? 128 : 0;

    memset(s->code[r], zero, sizeof(s->code[r]));
    memset(s->zero[r], zero, sizeof(s->zero[r]));
    memset(s->scale[r], 0, sizeof(s->scale[r]));
}

void
moe_repack_block(const struct moe_packed *m, uint64_t b, const struct moe_repack *from, void *to)
{
    struct moe_packed plain;
    struct moe_packed_step s;

    /* The most common of them goes word by word. */
    if (from->first == 0 && from->step == 1 && moe_packed_of(from->q, &plain)) {
        moe_packed_from_ct(m, b, from->q, to);
        return;
    }
    to = moe_packed_begin(m, to);
    for (uint64_t k = 0; k < m->cols; k += MOE_PACKED_COLS) {
        uint64_t n = m->cols - k < MOE_PACKED_COLS ? m->cols - k : MOE_PACKED_COLS;

        for (unsigned r = 0; r < MOE_PACKED_ROWS; r++) {
            if (b * MOE_PACKED_ROWS + r < m->rows)
                fill_row(m, from, b * MOE_PACKED_ROWS + r, k, n, &s, r);
            else
                fill_none(m, &s, r);
        }
        to = moe_packed_put(m, k, &s, to);
    }
}
