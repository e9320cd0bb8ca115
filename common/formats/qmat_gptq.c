/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the encodings that store the transpose, [in][out]: GPTQ (codes packed
 * down the inputs, perhaps with an index of groups) and AWQ's "gemm" (codes
 * packed along the outputs in an order of its own). w = scale * (code - zero).
 */
#include <inttypes.h>

#include "common/base/num.h"
#include "common/formats/qmat_dec.h"

/* The nibble of an AWQ word that holds output 8 c + j. */
static const unsigned char awq_nibble[8] = { 0, 4, 1, 5, 2, 6, 3, 7 };

static uint32_t
word(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static int32_t
index_at(const struct moe_qmat *m, uint64_t i)
{
    return (int32_t)word((const unsigned char *)m->g_idx + 4 * i);
}

static uint64_t
group_of(const struct moe_qmat *m, uint64_t i)
{
    return m->g_idx == NULL ? i / moe_qmat_group(m) : (uint64_t)index_at(m, i);
}

int
moe_qmat_gptq_zero(const struct moe_qmat *m, uint64_t g, uint64_t o)
{
    unsigned bits = (unsigned)m->bits, per = 32 / bits, mask = (1u << bits) - 1;
    const unsigned char *p = (const unsigned char *)m->zero + 4 * (g * (m->rows / per) + o / per);

    if (m->enc == MOE_ENC_AWQ)
        return (int)(word(p) >> (4 * awq_nibble[o % 8]) & 15);
    /* Version 1 stores the zero point less one, and wraps. */
    return (int)(((word(p) >> (bits * (o % per))) + (m->gptq_v2 ? 0 : 1)) & mask);
}

unsigned
moe_qmat_gptq_code(const struct moe_qmat *m, uint64_t o, uint64_t i)
{
    unsigned bits = (unsigned)m->bits, per = 32 / bits;
    const unsigned char *p = m->data;

    if (m->enc == MOE_ENC_AWQ)
        return word(p + 4 * (o / 8) + i * (m->rows / 2)) >> (4 * awq_nibble[o % 8]) & 15;
    return word(p + 4 * (o + i / per * m->rows)) >> (bits * (unsigned)(i % per)) &
        ((1u << bits) - 1);
}

/* Scales and zero points change with the group: one output at a time, along its inputs. */
static void
gptq_output(const struct moe_qmat *m, uint64_t o, float *out)
{
    unsigned bits = (unsigned)m->bits, per = 32 / bits, mask = (1u << bits) - 1;
    const unsigned char *p = (const unsigned char *)m->data + 4 * o;
    uint64_t last = UINT64_MAX;
    float s = 0;
    int32_t z = 0;

    for (uint64_t i = 0; i < m->cols; i += per, p += 4 * m->rows) {
        uint32_t w = word(p);

        for (unsigned j = 0; j < per; j++) {
            uint64_t g = group_of(m, i + j);

            if (g != last) {
                s = moe_qmat_scale(m, g * m->rows + o);
                z = moe_qmat_gptq_zero(m, g, o);
                last = g;
            }
            out[i + j] = s * (float)((int32_t)(w >> (bits * j) & mask) - z);
        }
    }
}

static void
awq_output(const struct moe_qmat *m, uint64_t o, float *out)
{
    const unsigned char *p = (const unsigned char *)m->data + o / 8 * 4;
    unsigned shift = 4u * awq_nibble[o % 8];
    uint64_t group = moe_qmat_group(m);

    for (uint64_t g = 0; g < m->cols / group; g++) {
        float s = moe_qmat_scale(m, g * m->rows + o);
        int32_t z = moe_qmat_gptq_zero(m, g, o);

        for (uint64_t i = g * group; i < (g + 1) * group; i++)
            out[i] = s * (float)((int32_t)(word(p + i * (m->rows / 2)) >> shift & 15) - z);
    }
}

static int
check_index(const struct moe_qmat *m, uint64_t groups, const char *name, struct moe_err *e)
{
    int rc = moe_qmat_part(name, "g_idx", m->g_idx, m->g_idx_len, m->cols, 32, e);

    if (rc != 0)
        return rc;
    for (uint64_t i = 0; i < m->cols; i++)
        if (index_at(m, i) < 0 || (uint64_t)index_at(m, i) >= groups)
            return moe_err_set(e, MOE_EFORMAT, "%s: its g_idx [%" PRIu64 "] is %" PRId32
                " of %" PRIu64 " groups", name, i, index_at(m, i), groups);
    return 0;
}

int
moe_qmat_gptq_check(const struct moe_qmat *m, const char *name, struct moe_err *e)
{
    uint64_t groups = m->cols / moe_qmat_group(m), per;
    int rc;

    if (m->enc == MOE_ENC_AWQ ? m->bits != 4 : m->bits != 2 && m->bits != 4 && m->bits != 8)
        return moe_err_set(e, MOE_EUNSUP, "%s: %s with %d bits", name,
            moe_qmat_enc_name(m->enc), m->bits);
    per = 32 / (unsigned)m->bits;
    if ((rc = moe_qmat_divides(m, name, e)) != 0)
        return rc;
    if (m->rows % per != 0 || (m->enc == MOE_ENC_GPTQ && m->cols % per != 0))
        return moe_err_set(e, MOE_EFORMAT, "%s: %" PRIu64 " x %" PRIu64
            " codes do not fill whole words", name, m->rows, m->cols);
    if ((rc = moe_qmat_part(name, "qweight", m->data, m->data_len, m->rows * m->cols / per, 32,
        e)) != 0 ||
        (rc = moe_qmat_part(name, "qzeros", m->zero, m->zero_len, groups * (m->rows / per), 32,
        e)) != 0 ||
        (rc = moe_qmat_scales(m, groups, m->rows, name, e)) != 0)
        return rc;
    if (m->g_idx != NULL && m->enc == MOE_ENC_AWQ)
        return moe_err_set(e, MOE_EFORMAT, "%s: awq has no g_idx", name);
    return m->g_idx == NULL ? 0 : check_index(m, groups, name, e);
}

void
moe_qmat_gptq_rows(const struct moe_qmat *m, uint64_t row, uint64_t n, float *out)
{
    for (uint64_t i = 0; i < n; i++) {
        if (m->enc == MOE_ENC_AWQ)
            awq_output(m, row + i, out + i * m->cols);
        else
            gptq_output(m, row + i, out + i * m->cols);
    }
}
