/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the table of ggml's types and their sizes. Does not decode
 * (qmat_ggml.c).
 */
#include "common/base/num.h"
#include "common/formats/ggml.h"

static const struct block {
    uint32_t type;
    uint16_t elements, bytes;
    const char *name;
} blocks[] = {      /* by type; ggml-common.h */
    { 0, 1, 4, "F32" }, { 1, 1, 2, "F16" }, { 2, 32, 18, "Q4_0" }, { 3, 32, 20, "Q4_1" },
    { 6, 32, 22, "Q5_0" }, { 7, 32, 24, "Q5_1" }, { 8, 32, 34, "Q8_0" },
    { 10, 256, 84, "Q2_K" }, { 11, 256, 110, "Q3_K" }, { 12, 256, 144, "Q4_K" },
    { 13, 256, 176, "Q5_K" }, { 14, 256, 210, "Q6_K" }, { 15, 256, 292, "Q8_K" },
    { 16, 256, 66, "IQ2_XXS" }, { 17, 256, 74, "IQ2_XS" }, { 18, 256, 98, "IQ3_XXS" },
    { 19, 256, 50, "IQ1_S" }, { 20, 32, 18, "IQ4_NL" }, { 21, 256, 110, "IQ3_S" },
    { 22, 256, 82, "IQ2_S" }, { 23, 256, 136, "IQ4_XS" }, { 24, 1, 1, "I8" },
    { 25, 1, 2, "I16" }, { 26, 1, 4, "I32" }, { 27, 1, 8, "I64" }, { 28, 1, 8, "F64" },
    { 29, 256, 56, "IQ1_M" }, { 30, 1, 2, "BF16" }, { 34, 256, 54, "TQ1_0" },
    { 35, 256, 66, "TQ2_0" }, { 39, 32, 17, "MXFP4" }, { 40, 64, 36, "NVFP4" },
    { 41, 128, 18, "Q1_0" },
};

static const struct block *
find_block(uint32_t type)
{
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
        if (blocks[i].type == type)
            return &blocks[i];
    return NULL;
}

bool
moe_ggml_block(uint32_t type, uint64_t *elements, uint64_t *bytes)
{
    const struct block *b = find_block(type);

    if (b == NULL)
        return false;
    *elements = b->elements;
    *bytes = b->bytes;
    return true;
}

const char *
moe_ggml_name(uint32_t type)
{
    const struct block *b = find_block(type);

    return b == NULL ? NULL : b->name;
}

bool
moe_ggml_bytes(uint32_t type, const uint64_t ne[MOE_GGML_DIMS], uint64_t *bytes)
{
    uint64_t elements, size, n = 1;

    if (!moe_ggml_block(type, &elements, &size) || ne[0] % elements != 0)
        return false;
    /* A zero must not hide a product that wraps without it. */
    for (int d = 0; d < MOE_GGML_DIMS; d++)
        if (!moe_num_mul(n, ne[d] == 0 ? 1 : ne[d], &n) || n > INT64_MAX)
            return false;
    for (int d = 0; d < MOE_GGML_DIMS; d++)
        if (ne[d] == 0)
            n = 0;
    return moe_num_mul(n / elements, size, bytes) && *bytes <= INT64_MAX;
}
