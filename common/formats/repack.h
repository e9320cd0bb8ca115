/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From any encoding to the packed layout, value by value the same: which
 * encodings the layout has a form for, and their blocks. Nothing here allocates.
 */
#ifndef MOE_FORMATS_REPACK_H
#define MOE_FORMATS_REPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/formats/packed.h"
#include "common/formats/qmat.h"

/* Rows of a checked matrix: first, first + step, first + 2 step ...; of gate and up in a stack. */
struct moe_repack {
    const struct moe_qmat *q;
    uint64_t first, step;
};

/*
 * The layout's form of `rows` such rows: whole numbers of 4 and 8 bits
 * (pack-quantized, int-quantized, GPTQ, AWQ, Q4_0, Q8_0), MXFP4, MXFP8, and FP8
 * in which no code is NaN, in groups of 32, 64 or 128 columns or larger ones that
 * these divide. false: it has none.
 */
bool moe_repack_of(const struct moe_repack *from, uint64_t rows, struct moe_packed *m);

/* Lay rows [16 b, 16 b + 16) of them out as block b; a bias is 0. */
void moe_repack_block(const struct moe_packed *m, uint64_t b, const struct moe_repack *from,
    void *to);

#endif
