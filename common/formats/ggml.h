/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The element types of ggml, which GGUF files number: names and block sizes.
 * Source: ggml-common.h.
 */
#ifndef MOE_FORMATS_GGML_H
#define MOE_FORMATS_GGML_H

#include <stdbool.h>
#include <stdint.h>

#define MOE_GGML_DIMS 4

enum moe_ggml {         /* the types that qmat decodes, by their number in the file */
    MOE_GGML_F32 = 0, MOE_GGML_F16 = 1, MOE_GGML_Q4_0 = 2, MOE_GGML_Q5_0 = 6,
    MOE_GGML_Q8_0 = 8, MOE_GGML_Q2_K = 10, MOE_GGML_Q3_K = 11, MOE_GGML_Q4_K = 12,
    MOE_GGML_Q5_K = 13, MOE_GGML_Q6_K = 14, MOE_GGML_I8 = 24, MOE_GGML_I16 = 25,
    MOE_GGML_I32 = 26, MOE_GGML_I64 = 27, MOE_GGML_F64 = 28, MOE_GGML_BF16 = 30,
    MOE_GGML_MXFP4 = 39, MOE_GGML_NVFP4 = 40
};

/* Elements and bytes of a block; false when there is no such type in files. */
bool moe_ggml_block(uint32_t type, uint64_t *elements, uint64_t *bytes);
const char *moe_ggml_name(uint32_t type);       /* "Q4_0"; NULL if there is no such type */

/* Bytes of a tensor; false: no such type, a row of part blocks, or overflow of 63 bits. */
bool moe_ggml_bytes(uint32_t type, const uint64_t ne[MOE_GGML_DIMS], uint64_t *bytes);

#endif
