/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the list of encodings, what their checks share, and plain matrices. The
 * codes themselves are decoded by qmat_int.c, qmat_fp8.c, qmat_mx.c,
 * qmat_gptq.c and qmat_ggml.c.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/base/num.h"
#include "common/formats/qmat.h"
#include "common/formats/qmat_dec.h"

static int
plain_check(const struct moe_qmat *m, const char *name, struct moe_err *e)
{
    unsigned bits = moe_dtype_bits(m->dtype);
    uint64_t row_bits;

    if (!moe_dtype_is_float(m->dtype))
        return moe_err_set(e, MOE_EUNSUP, "%s: a matrix of %s", name, moe_dtype_name(m->dtype));
    if (!moe_num_mul(m->cols, bits, &row_bits) || row_bits % 8 != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: rows of %" PRIu64 " %s are not whole bytes",
            name, m->cols, moe_dtype_name(m->dtype));
    return moe_qmat_part(name, "weight", m->data, m->data_len, m->rows * m->cols, bits, e);
}

static void
plain_rows(const struct moe_qmat *m, uint64_t row, uint64_t n, float *out)
{
    uint64_t row_bytes = m->cols * moe_dtype_bits(m->dtype) / 8;

    (void)moe_dtype_to_f32(m->dtype, (const char *)m->data + row * row_bytes, n * m->cols, out);
}

static const struct encoding {
    const char *name;
    int (*check)(const struct moe_qmat *m, const char *name, struct moe_err *e);
    void (*rows)(const struct moe_qmat *m, uint64_t row, uint64_t n, float *out);
} encodings[MOE_ENC_N] = {
    [MOE_ENC_PLAIN] = { "plain", plain_check, plain_rows },
    [MOE_ENC_CT_PACK] = { "pack-quantized", moe_qmat_int_check, moe_qmat_int_rows },
    [MOE_ENC_CT_INT8] = { "int-quantized", moe_qmat_int_check, moe_qmat_int_rows },
    [MOE_ENC_CT_FP8] = { "float-quantized", moe_qmat_fp8_check, moe_qmat_fp8_rows },
    [MOE_ENC_CT_MXFP4] = { "mxfp4-pack-quantized", moe_qmat_mx_check, moe_qmat_mx_rows },
    [MOE_ENC_CT_MXFP8] = { "mxfp8-quantized", moe_qmat_mx_check, moe_qmat_mx_rows },
    [MOE_ENC_CT_NVFP4] = { "nvfp4-pack-quantized", moe_qmat_mx_check, moe_qmat_mx_rows },
    [MOE_ENC_DS_FP8] = { "fp8", moe_qmat_fp8_check, moe_qmat_fp8_rows },
    [MOE_ENC_GPTQ] = { "gptq", moe_qmat_gptq_check, moe_qmat_gptq_rows },
    [MOE_ENC_AWQ] = { "awq", moe_qmat_gptq_check, moe_qmat_gptq_rows },
    [MOE_ENC_OSS_MXFP4] = { "mxfp4", moe_qmat_mx_check, moe_qmat_mx_rows },
    [MOE_ENC_GGML] = { "ggml", moe_qmat_ggml_check, moe_qmat_ggml_rows },
};

/* ---- For the decoders ------------------------------------------------------ */

uint64_t
moe_qmat_group(const struct moe_qmat *m)
{
    return m->group == 0 ? m->cols : m->group;
}

float
moe_qmat_scale(const struct moe_qmat *m, uint64_t i)
{
    const unsigned char *p = m->scale;
    uint16_t half;
    float f;

    switch (m->scale_dtype) {
    case MOE_BF16:
        memcpy(&half, p + 2 * i, sizeof(half));
        return moe_dtype_bf16_f32(half);
    case MOE_F16:
        memcpy(&half, p + 2 * i, sizeof(half));
        return moe_dtype_f16_f32(half);
    case MOE_F8_E4M3:
        return moe_dtype_e4m3_f32(p[i]);
    case MOE_F32:
        memcpy(&f, p + 4 * i, sizeof(f));
        return f;
    default:
        return moe_dtype_e8m0_f32(p[i]);
    }
}

int
moe_qmat_part(const char *name, const char *part, const void *p, uint64_t len,
    uint64_t n, unsigned bits, struct moe_err *e)
{
    uint64_t total;

    if (!moe_num_mul(n, bits, &total) || !moe_num_add(total, 7, &total))
        return moe_err_set(e, MOE_EFORMAT, "%s: the size of its %s overflows", name, part);
    if (p == NULL)
        return moe_err_set(e, MOE_EFORMAT, "%s: its %s is missing", name, part);
    if (len != total / 8)
        return moe_err_set(e, MOE_EFORMAT, "%s: its %s has %" PRIu64 " bytes, not %" PRIu64,
            name, part, len, total / 8);
    return 0;
}

int
moe_qmat_scales(const struct moe_qmat *m, uint64_t rows, uint64_t per_row,
    const char *name, struct moe_err *e)
{
    uint64_t n;
    int rc;

    switch (m->scale_dtype) {
    case MOE_BF16: case MOE_F16: case MOE_F32: case MOE_F8_E4M3: case MOE_F8_E8M0: case MOE_U8:
        break;
    default:
        return moe_err_set(e, MOE_EUNSUP, "%s: scales of %s", name,
            moe_dtype_name(m->scale_dtype));
    }
    if (!moe_num_mul(rows, per_row, &n))
        return moe_err_set(e, MOE_EFORMAT, "%s: the size of its scale overflows", name);
    if ((rc = moe_qmat_part(name, "scale", m->scale, m->scale_len, n,
        moe_dtype_bits(m->scale_dtype), e)) != 0)
        return rc;
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(moe_qmat_scale(m, i)))
            return moe_err_set(e, MOE_EFORMAT, "%s: its scale [%" PRIu64 ", %" PRIu64
                "] is not a finite number", name, i / per_row, i % per_row);
    return 0;
}

int
moe_qmat_divides(const struct moe_qmat *m, const char *name, struct moe_err *e)
{
    uint64_t g = moe_qmat_group(m);

    if (m->cols % g != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: groups of %" PRIu64 " do not divide rows of %"
            PRIu64, name, g, m->cols);
    return 0;
}

/* ---- Public ------------------------------------------------------------------ */

int
moe_qmat_check(const struct moe_qmat *m, const char *name, struct moe_err *e)
{
    uint64_t n;

    if ((unsigned)m->enc >= MOE_ENC_N)
        return moe_err_set(e, MOE_EUNSUP, "%s: encoding %d is not known", name, (int)m->enc);
    if (m->rows == 0 || m->cols == 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: an empty matrix, %" PRIu64 " x %" PRIu64,
            name, m->rows, m->cols);
    if (!moe_num_mul(m->rows, m->cols, &n) || n > INT64_MAX / 8)
        return moe_err_set(e, MOE_EFORMAT, "%s: its size, %" PRIu64 " x %" PRIu64 ", overflows",
            name, m->rows, m->cols);
    return encodings[m->enc].check(m, name, e);
}

void
moe_qmat_rows(const struct moe_qmat *m, uint64_t row, uint64_t n, float *out)
{
    encodings[m->enc].rows(m, row, n, out);
}

const char *
moe_qmat_enc_name(enum moe_enc e)
{
    return (unsigned)e < MOE_ENC_N ? encodings[e].name : "unknown";
}
