/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A matrix in any of the encodings the suite reads: which one, its shape, its
 * parts, and its rows as float, exactly as the reference libraries decode them
 * (code * scale in F32). Parts are borrowed memory; nothing here allocates.
 */
#ifndef MOE_FORMATS_QMAT_H
#define MOE_FORMATS_QMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/dtype.h"

enum moe_enc {
    MOE_ENC_PLAIN,          /* data: dtype [rows][cols] */
    MOE_ENC_CT_PACK,        /* compressed-tensors pack-quantized, bits 1..8 */
    MOE_ENC_CT_INT8,        /* int-quantized / naive: I8 + scale */
    MOE_ENC_CT_FP8,         /* float-quantized: tensor, channel, block */
    MOE_ENC_CT_MXFP4, MOE_ENC_CT_MXFP8, MOE_ENC_CT_NVFP4,
    MOE_ENC_DS_FP8,         /* weight_scale_inv F32 per block */
    MOE_ENC_GPTQ, MOE_ENC_AWQ,
    MOE_ENC_OSS_MXFP4,      /* gpt-oss blocks and scales, one expert */
    MOE_ENC_GGML,           /* blocks of ggml type `ggml` */
    MOE_ENC_N
};

struct moe_qmat {
    enum moe_enc enc;
    enum moe_dtype dtype;       /* of data when PLAIN */
    uint32_t ggml;              /* type when GGML */
    uint64_t rows, cols;        /* of the decoded matrix [out][in] */
    int bits;                   /* CT_PACK, GPTQ: 1..8 */
    uint64_t group;             /* columns that share a scale; 0 = the whole row */
    uint64_t block_rows;        /* FP8 blocks: rows (128); 1 = channel; 0 = tensor */
    bool symmetric;
    bool gptq_v2;               /* zeros stored plain */
    enum moe_dtype scale_dtype;
    const void *data;           /* codes */
    const void *scale;
    const void *zero;           /* NULL if symmetric */
    const int32_t *g_idx;       /* NULL = i / group */
    float global;               /* NVFP4 weight_global_scale; else unused */
    /* bytes of each part, checked against the shape by moe_qmat_check() */
    uint64_t data_len, scale_len, zero_len, g_idx_len;
};

/* Sizes fit the shape, g divides, scales are finite ... Errors: MOE_EFORMAT, name for messages. */
int moe_qmat_check(const struct moe_qmat *m, const char *name, struct moe_err *e);

/*
 * Decode rows [row, row + n) to out [n][cols]. m has been checked.
 * GPTQ and AWQ store [in][out]: any n works, whole multiples of 8 rows are fast.
 */
void moe_qmat_rows(const struct moe_qmat *m, uint64_t row, uint64_t n, float *out);

const char *moe_qmat_enc_name(enum moe_enc e);   /* "pack-quantized" ... */

#endif
