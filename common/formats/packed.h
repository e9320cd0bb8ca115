/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packed layout (moe-packed(5)): weights in the order the kernels read
 * them. A matrix is a run of 16-row blocks; a block is one ascending stream:
 * for every 256 columns the scales of each group (16 rows side by side), then
 * the codes of each group. An expert is one record: gate block beside its up
 * block, then the down blocks, 64-byte aligned inside, padded to 4 KiB, with a
 * CRC32C trailer
 * (RFC 3720, appendix B.4). A dense matrix is a record of one matrix.
 */
#ifndef MOE_FORMATS_PACKED_H
#define MOE_FORMATS_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/qmat.h"

#define MOE_PACKED_ROWS 16          /* rows of a block */
#define MOE_PACKED_COLS 256         /* columns of a step */
#define MOE_PACKED_ALIGN 4096
#define MOE_PACKED_VERSION 1

/* Codes the layout holds. */
enum moe_packed_kind {
    MOE_PACKED_I4,      /* u4 = q + 8, BF16 or F16 scale a group of 32, 64 or 128 */
    MOE_PACKED_I8,      /* u8 = q + 128, BF16 or F16 scale a group */
    MOE_PACKED_BF16     /* BF16 pairs of columns, no scales */
};

struct moe_packed {             /* one matrix in the layout */
    enum moe_packed_kind kind;
    enum moe_dtype scale_dtype; /* MOE_BF16 or MOE_F16 */
    uint64_t rows, cols;        /* true shape; rows are padded to 16 with zeros */
    uint64_t group;             /* 32, 64, 128; divides cols */
};

/* Bytes of one 16-row block, a multiple of 64; false: the shape is not allowed. */
bool moe_packed_block_bytes(const struct moe_packed *m, uint64_t *bytes);

/*
 * Lay rows [16 b, 16 b + 16) of an INT4/INT8 symmetric grouped matrix out as
 * block b. codes [rows][cols] int8 (q), scales [rows][cols / group] 16-bit as
 * stored. to: block_bytes, 64-byte aligned. Rows past the end become zeros.
 */
void moe_packed_block(const struct moe_packed *m, uint64_t b, const int8_t *codes,
    const uint16_t *scales, void *to);

/* The inverse, for tests and conversions. */
void moe_packed_unblock(const struct moe_packed *m, uint64_t b, const void *from,
    int8_t *codes, uint16_t *scales);

/* Lay out a checked CT_PACK 4- or 8-bit symmetric qmat as block b, straight from its words. */
void moe_packed_from_ct(const struct moe_packed *m, uint64_t b, const struct moe_qmat *q, void *to);

/* Record of an expert: offsets of its parts and the whole size. */
struct moe_packed_expert {
    struct moe_packed gate_up;  /* rows = 2 * inter, padded per block pair */
    struct moe_packed down;
    uint64_t down_at;           /* offset of the down blocks */
    uint64_t crc_at;            /* offset of the 4-byte trailer */
    uint64_t bytes;             /* a multiple of MOE_PACKED_ALIGN */
};
int moe_packed_expert_layout(uint64_t hidden, uint64_t inter, enum moe_packed_kind kind,
    enum moe_dtype scale_dtype, uint64_t group_in, uint64_t group_mid,
    struct moe_packed_expert *out, struct moe_err *e);

#endif
