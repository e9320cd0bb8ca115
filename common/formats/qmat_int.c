/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns compressed-tensors' whole-number encodings: pack-quantized (codes of 1
 * to 8 bits in one run of bits a row, little end first, each plus 2^(bits-1))
 * and int-quantized (one INT8 a code). w = (code - zero point) * scale.
 */
#include <inttypes.h>
#include <string.h>

#include "common/base/num.h"
#include "common/formats/qmat_dec.h"

static uint32_t
word(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* 32-bit words that hold n codes. */
static uint64_t
words(uint64_t n, int bits)
{
    return (n * (unsigned)bits + 31) / 32;
}

/* Code k of a run of words, as stored. */
static uint32_t
code_at(const unsigned char *p, uint64_t stride, uint64_t k, int bits)
{
    uint64_t at = k * (unsigned)bits;
    unsigned shift = at % 32;
    uint64_t v = word(p + at / 32 * stride) >> shift;

    if (shift + (unsigned)bits > 32)
        v |= (uint64_t)word(p + (at / 32 + 1) * stride) << (32 - shift);
    return (uint32_t)v & ((1u << bits) - 1);
}

/* Packed zero points run down the rows. */
int
moe_qmat_int_zero(const struct moe_qmat *m, uint64_t row, uint64_t g)
{
    uint64_t groups = m->cols / moe_qmat_group(m);
    const unsigned char *p = m->zero;

    if (m->symmetric)
        return 0;
    if (m->enc == MOE_ENC_CT_INT8)
        return (int8_t)p[row * groups + g];
    return (int)code_at(p + 4 * g, 4 * groups, row, m->bits) - (1 << (m->bits - 1));
}

unsigned
moe_qmat_int_code(const struct moe_qmat *m, uint64_t row, uint64_t k)
{
    const unsigned char *p = m->data;

    if (m->enc == MOE_ENC_CT_INT8)
        return p[row * m->cols + k] ^ 128u;
    return code_at(p + 4 * row * words(m->cols, m->bits), 4, k, m->bits);
}

static void
int8_row(const struct moe_qmat *m, uint64_t row, float *out)
{
    const int8_t *q = (const int8_t *)m->data + row * m->cols;
    uint64_t group = moe_qmat_group(m), groups = m->cols / group;

    for (uint64_t g = 0; g < groups; g++) {
        float s = moe_qmat_scale(m, row * groups + g);
        int32_t z = moe_qmat_int_zero(m, row, g);

        for (uint64_t k = g * group; k < (g + 1) * group; k++)
            out[k] = (float)(q[k] - z) * s;
    }
}

static void
pack_row(const struct moe_qmat *m, uint64_t row, float *out)
{
    const unsigned char *p = (const unsigned char *)m->data + 4 * row * words(m->cols, m->bits);
    uint64_t group = moe_qmat_group(m), groups = m->cols / group;
    int bits = m->bits;

    for (uint64_t g = 0; g < groups; g++) {
        float s = moe_qmat_scale(m, row * groups + g);
        int32_t z = moe_qmat_int_zero(m, row, g) + (1 << (bits - 1));
        uint64_t k = g * group, end = k + group;

        if (bits == 4 && group % 8 == 0) {
            for (; k < end; k += 8) {
                uint32_t w = word(p + k / 2);

                for (int i = 0; i < 8; i++)
                    out[k + (unsigned)i] = (float)((int32_t)(w >> (4 * i) & 15) - z) * s;
            }
        } else {
            for (; k < end; k++)
                out[k] = (float)((int32_t)code_at(p, 4, k, bits) - z) * s;
        }
    }
}

int
moe_qmat_int_check(const struct moe_qmat *m, const char *name, struct moe_err *e)
{
    uint64_t groups = m->cols / moe_qmat_group(m);
    bool pack = m->enc == MOE_ENC_CT_PACK;
    int rc;

    if ((rc = moe_qmat_divides(m, name, e)) != 0)
        return rc;
    if (pack && (m->bits < 1 || m->bits > 8))
        return moe_err_set(e, MOE_EFORMAT, "%s: codes of %d bits", name, m->bits);
    if (pack)
        rc = moe_qmat_part(name, "weight_packed", m->data, m->data_len,
            m->rows * words(m->cols, m->bits), 32, e);
    else
        rc = moe_qmat_part(name, "weight", m->data, m->data_len, m->rows * m->cols, 8, e);
    if (rc == 0)
        rc = moe_qmat_scales(m, m->rows, groups, name, e);
    if (rc == 0 && !m->symmetric)
        rc = moe_qmat_part(name, "weight_zero_point", m->zero, m->zero_len,
            groups * (pack ? words(m->rows, m->bits) : m->rows), pack ? 32 : 8, e);
    return rc;
}

void
moe_qmat_int_rows(const struct moe_qmat *m, uint64_t row, uint64_t n, float *out)
{
    for (uint64_t i = 0; i < n; i++) {
        if (m->enc == MOE_ENC_CT_PACK)
            pack_row(m, row + i, out + i * m->cols);
        else
            int8_row(m, row + i, out + i * m->cols);
    }
}
