/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where things lie in a packed INT4 block (moe-packed(5)): steps of up to 256
 * columns, each the scales of its groups (16 rows of 2 bytes a group, padded to
 * 64 bytes) and then their codes, 64 bytes for 8 columns. Byte 4 r + i holds
 * row r: column i in the low nibble, column 4 + i in the high one. The kernels
 * take the kind i4 without zero points and without a bias.
 */
#ifndef MOE_KERNELS_PACKED_H
#define MOE_KERNELS_PACKED_H

#include <stddef.h>

#define K_PACKED_ROWS 16
#define K_PACKED_STEP 256
#define K_PACKED_ZERO 8         /* u4 of q = 0 */

/* Groups in the step that begins with `left` columns to go. */
static inline size_t
k_packed_groups(size_t left, size_t group)
{
    return (left < K_PACKED_STEP ? left : K_PACKED_STEP) / group;
}

/* Bytes of the scales of so many groups. */
static inline size_t
k_packed_scales(size_t groups)
{
    return (groups * 2 * K_PACKED_ROWS + 63) & ~(size_t)63;
}

/* Bytes of the codes of one group. */
static inline size_t
k_packed_codes(size_t group)
{
    return group / 8 * 64;
}

/* Bytes of a block. */
static inline size_t
k_packed_block(size_t cols, size_t group)
{
    size_t full = cols / K_PACKED_STEP, rest = cols % K_PACKED_STEP / group;

    return full * k_packed_scales(K_PACKED_STEP / group) + k_packed_scales(rest) +
        k_packed_codes(cols);
}

#endif
