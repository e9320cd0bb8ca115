/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns small groups of floating codes: MXFP4 and MXFP8 (32 columns, E8M0
 * scales; OCP MX v1.0), as compressed-tensors and gpt-oss store them alike, and
 * NVFP4 (16 columns, E4M3 scales, one divisor a tensor). FP4 codes: two a byte,
 * the even column in the low nibble.
 */
#include <math.h>

#include "common/formats/qmat_dec.h"

static const float fp4[16] = {
    0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6
};

static bool
is_fp4(const struct moe_qmat *m)
{
    return m->enc != MOE_ENC_CT_MXFP8;
}

int
moe_qmat_mx_check(const struct moe_qmat *m, const char *name, struct moe_err *e)
{
    bool nv = m->enc == MOE_ENC_CT_NVFP4;
    uint64_t group = nv ? 16 : 32;
    int rc;

    if (m->group != group)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s has groups of %d", name,
            moe_qmat_enc_name(m->enc), (int)group);
    if ((rc = moe_qmat_divides(m, name, e)) != 0)
        return rc;
    if (nv ? m->scale_dtype != MOE_F8_E4M3 :
        m->scale_dtype != MOE_U8 && m->scale_dtype != MOE_F8_E8M0)
        return moe_err_set(e, MOE_EFORMAT, "%s: scales of %s", name,
            moe_dtype_name(m->scale_dtype));
    if (nv && (!isfinite(m->global) || m->global == 0))
        return moe_err_set(e, MOE_EFORMAT, "%s: its weight_global_scale is zero or not finite",
            name);
    if ((rc = moe_qmat_part(name, "weight", m->data, m->data_len, m->rows * m->cols,
        is_fp4(m) ? 4 : 8, e)) != 0)
        return rc;
    return moe_qmat_scales(m, m->rows, m->cols / group, name, e);
}

void
moe_qmat_mx_rows(const struct moe_qmat *m, uint64_t row, uint64_t n, float *out)
{
    uint64_t group = m->group, groups = m->cols / group;
    uint64_t bytes = is_fp4(m) ? group / 2 : group;
    const unsigned char *p = (const unsigned char *)m->data + row * groups * bytes;
    float e4m3[256];

    for (int i = 0; i < 256 && !is_fp4(m); i++)
        e4m3[i] = moe_dtype_e4m3_f32((uint8_t)i);

    for (uint64_t i = row * groups; i < (row + n) * groups; i++, p += bytes) {
        float s = moe_qmat_scale(m, i);

        if (m->enc == MOE_ENC_CT_NVFP4)
            s /= m->global;
        for (uint64_t k = 0; k < bytes; k++) {
            if (is_fp4(m)) {
                *out++ = fp4[p[k] & 15] * s;
                *out++ = fp4[p[k] >> 4] * s;
            } else {
                *out++ = e4m3[p[k]] * s;
            }
        }
    }
}
