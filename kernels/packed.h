/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where things lie in a packed block (moe-packed(5)): perhaps a head, then steps
 * of up to 256 columns, each the scales of its groups (16 rows a group), their
 * zero points if any, padding to 64 bytes, and their codes in units of 64 bytes.
 * Byte 4 r + i of a unit is row r's: column i in the low nibble and 4 + i in the
 * high one, or column i; of E4M3 byte 16 i + r is column i of row r.
 */
#ifndef MOE_KERNELS_PACKED_H
#define MOE_KERNELS_PACKED_H

#include <stddef.h>

#include "kernels/kernels.h"

#define K_PACKED_ROWS 16
#define K_PACKED_STEP 256
#define K_PACKED_E4M3 256.0f    /* codes are read as F16, whose values are that much smaller */

/* Columns of a unit. */
static inline size_t
k_packed_unit(int codes)
{
    return codes == MOE_CODES_I4 || codes == MOE_CODES_E2M1 ? 8 : 4;
}

/* What is stored for q = 0 where the codes are whole numbers, in the codes' own order. */
static inline int
k_packed_zero(int codes)
{
    return codes == MOE_CODES_I4 ? 8 : codes == MOE_CODES_I8 ? 128 : 0;
}

/* Groups in the step that begins with `left` columns to go. */
static inline size_t
k_packed_groups(size_t left, size_t group)
{
    return (left < K_PACKED_STEP ? left : K_PACKED_STEP) / group;
}

/* Bytes of the scales of one group. */
static inline size_t
k_packed_scale(const struct moe_blocks *f)
{
    return (f->scale == MOE_SCALE_F32 ? 4 : 2) * K_PACKED_ROWS;
}

/* Bytes of the scales and zero points of so many groups. */
static inline size_t
k_packed_scales(const struct moe_blocks *f, size_t groups)
{
    return (groups * (k_packed_scale(f) + (f->zeros ? K_PACKED_ROWS : 0)) + 63) & ~(size_t)63;
}

/* Bytes of the codes of so many columns. */
static inline size_t
k_packed_codes(int codes, size_t cols)
{
    return cols / k_packed_unit(codes) * 64;
}

/* Bytes of a block. */
static inline size_t
k_packed_block(const struct moe_blocks *f)
{
    size_t full = f->cols / K_PACKED_STEP, rest = f->cols % K_PACKED_STEP / f->group;

    return f->head + full * k_packed_scales(f, K_PACKED_STEP / f->group) +
        k_packed_scales(f, rest) + k_packed_codes(f->codes, f->cols);
}

#endif
