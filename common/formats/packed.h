/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packed layout (moe-packed(5)): weights in the order the kernels read
 * them. A matrix is a run of 16-row blocks; a block is one ascending stream:
 * the bias of the rows if there is one, then for every 256 columns the scales
 * (and zero points) of each group, 16 rows side by side, and the codes of each
 * group. An expert is one record: gate block beside its up
 * block, then the down blocks, 64-byte aligned inside, padded to 4 KiB, with a
 * CRC32C trailer (RFC 3720, appendix B.4). A dense matrix is a record of one
 * matrix. Nothing here allocates.
 */
#ifndef MOE_FORMATS_PACKED_H
#define MOE_FORMATS_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/qmat.h"
#include "kernels/kernels.h"

#define MOE_PACKED_ROWS 16          /* rows of a block */
#define MOE_PACKED_COLS 256         /* columns of a step */
#define MOE_PACKED_UNIT 64          /* what parts of a block are multiples of */
#define MOE_PACKED_ALIGN 4096
#define MOE_PACKED_VERSION 1

/* Codes the layout holds. */
enum moe_packed_kind {
    MOE_PACKED_I4,      /* u4 = q + 8, BF16 or F16 scale a group of 32, 64 or 128 */
    MOE_PACKED_I8,      /* u8 = q + 128, BF16 or F16 scale a group */
    MOE_PACKED_BF16,    /* BF16 pairs of columns, no scales; group is 0 */
    MOE_PACKED_E2M1,    /* E2M1, a scale a group, which is half of MXFP4's */
    MOE_PACKED_E4M3     /* E4M3 without NaN, a scale a group */
};

struct moe_packed {             /* one matrix in the layout */
    enum moe_packed_kind kind;
    enum moe_dtype scale_dtype; /* MOE_BF16, MOE_F16 or MOE_F32 */
    uint64_t rows, cols;        /* true shape; rows are padded to 16 with zeros */
    uint64_t group;             /* 32, 64, 128; divides cols */
    bool zeros;                 /* a zero point a group: w = (q - z) * scale; I4 and I8 */
    bool bias;                  /* an F32 a row, at the head of its block */
};

/* Bytes of one 16-row block, a multiple of 64; false: the shape is not allowed. */
bool moe_packed_block_bytes(const struct moe_packed *m, uint64_t *bytes);

/* Blocks of a matrix: rows / 16, rounded up. */
uint64_t moe_packed_blocks(const struct moe_packed *m);

/* The form as kernels take it; not of BF16. */
struct moe_blocks moe_packed_form(const struct moe_packed *m);

/* The parts of a block's step as they are stored: codes and zero points offset, bits of scales. */
struct moe_packed_step {
    uint8_t code[MOE_PACKED_ROWS][MOE_PACKED_COLS];
    uint32_t scale[MOE_PACKED_ROWS][MOE_PACKED_COLS / 32];
    uint8_t zero[MOE_PACKED_ROWS][MOE_PACKED_COLS / 32];
};

/* The head of a block, bias 0, and the step at column k; both return what follows them. */
void *moe_packed_begin(const struct moe_packed *m, void *to);
void *moe_packed_put(const struct moe_packed *m, uint64_t k, const struct moe_packed_step *s,
    void *to);

/*
 * Lay rows [16 b, 16 b + 16) of an INT4/INT8 grouped matrix out as block b.
 * codes [rows][cols] int8 (q), scales [rows][cols / group] of 16 bits as stored.
 * to: block_bytes, 64-byte aligned. Rows past the end become zeros. The block
 * is written whole: zero points and bias are 0 until they are put into it.
 */
void moe_packed_block(const struct moe_packed *m, uint64_t b, const int8_t *codes,
    const uint16_t *scales, void *to);

/* The same for a BF16 matrix w [rows][cols]. */
void moe_packed_block_bf16(const struct moe_packed *m, uint64_t b, const uint16_t *w, void *to);

/* Put the zero points z [rows][cols / group] int8 of m->zeros into block b. */
void moe_packed_zeros(const struct moe_packed *m, uint64_t b, const int8_t *zeros, void *to);

/* Put the bias [rows] of m->bias into block b. */
void moe_packed_bias(const struct moe_packed *m, uint64_t b, const float *bias, void *to);

/* The inverses, for tests and conversions. */
void moe_packed_unblock(const struct moe_packed *m, uint64_t b, const void *from,
    int8_t *codes, uint16_t *scales);
void moe_packed_unblock_bf16(const struct moe_packed *m, uint64_t b, const void *from,
    uint16_t *w);
void moe_packed_unzeros(const struct moe_packed *m, uint64_t b, const void *from, int8_t *zeros);
void moe_packed_unbias(const struct moe_packed *m, uint64_t b, const void *from, float *bias);

/*
 * The layout's form of a checked qmat: CT_PACK of 4 or 8 bits with a group and
 * a scale type of the layout, in its own order of columns. false: it has none.
 * A qmat has no bias; who has one beside it sets m->bias.
 */
bool moe_packed_of(const struct moe_qmat *q, struct moe_packed *m);

/* Lay out a qmat that moe_packed_of() took as block b, straight from its words; a bias is 0. */
void moe_packed_from_ct(const struct moe_packed *m, uint64_t b, const struct moe_qmat *q, void *to);

/*
 * Record of an expert. gate_up is the shape of gate and of up alike: block b of
 * gate is at 2 b of gate_up's block bytes, that of up after it.
 */
struct moe_packed_expert {
    struct moe_packed gate_up;  /* [inter][hidden] */
    struct moe_packed down;     /* [hidden][inter] */
    uint64_t gate_up_block;     /* bytes of a block of gate or of up */
    uint64_t down_block;
    uint64_t down_at;           /* offset of the down blocks */
    uint64_t crc_at;            /* offset of the 4-byte trailer: bytes - 4 */
    uint64_t bytes;             /* a multiple of MOE_PACKED_ALIGN */
};

/*
 * gate_up is [inter][hidden], down [hidden][inter]; each has its own kind,
 * group, zero points and bias. Errors: MOE_EUNSUP.
 */
int moe_packed_expert_layout(const struct moe_packed *gate_up, const struct moe_packed *down,
    struct moe_packed_expert *out, struct moe_err *e);

/* Bytes of the record of one matrix; false: the shape is not allowed. */
bool moe_packed_record_bytes(const struct moe_packed *m, uint64_t *bytes);

/* Write the CRC32C of a record into its last 4 bytes; whether it is right there. */
void moe_packed_seal(void *record, uint64_t bytes);
bool moe_packed_intact(const void *record, uint64_t bytes);

#endif
