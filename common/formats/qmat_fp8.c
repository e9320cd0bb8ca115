/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns E4M3 codes with a scale a tensor, a row, or a block of rows and columns
 * (ragged at the edges): compressed-tensors float-quantized and DeepSeek's
 * weight_scale_inv. w = code * scale in both.
 */
#include "common/formats/qmat_dec.h"

static uint64_t
pieces(uint64_t n, uint64_t piece)
{
    return piece == 0 ? 1 : (n - 1) / piece + 1;
}

int
moe_qmat_fp8_check(const struct moe_qmat *m, const char *name, struct moe_err *e)
{
    int rc;

    if (m->block_rows == 0 && m->group != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: blocks of columns without rows", name);
    if ((rc = moe_qmat_part(name, "weight", m->data, m->data_len, m->rows * m->cols, 8, e)) != 0)
        return rc;
    return moe_qmat_scales(m, pieces(m->rows, m->block_rows), pieces(m->cols, m->group), name, e);
}

void
moe_qmat_fp8_rows(const struct moe_qmat *m, uint64_t row, uint64_t n, float *out)
{
    uint64_t group = moe_qmat_group(m), per_row = pieces(m->cols, m->group);
    float e4m3[256];

    for (int i = 0; i < 256; i++)
        e4m3[i] = moe_dtype_e4m3_f32((uint8_t)i);
    for (uint64_t r = row; r < row + n; r++) {
        const unsigned char *p = (const unsigned char *)m->data + r * m->cols;
        uint64_t first = m->block_rows == 0 ? 0 : r / m->block_rows * per_row;

        for (uint64_t g = 0, k = 0; g < per_row; g++) {
            float s = moe_qmat_scale(m, first + g);
            uint64_t end = m->cols - k < group ? m->cols : k + group;

            for (; k < end; k++)
                *out++ = e4m3[p[k]] * s;
        }
    }
}
