/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoded matrices of tests/data/quant for the tests of the decoders, put
 * together by hand from the tensors and the configuration beside them.
 */
#ifndef TESTS_GOLDEN_QMAT_H
#define TESTS_GOLDEN_QMAT_H

#include "common/formats/qmat.h"
#include "common/formats/repack.h"
#include "tests/golden.h"

/* The parts of matrix `name` as the weights' scheme q of format fmt stores them. */
struct moe_qmat golden_qmat_of(const struct golden_tensors *g, const char *name, json_t *q,
    const char *fmt, uint64_t rows, uint64_t cols);

/*
 * Decode every matrix of quant/ct/FILE.safetensors, whole, row by row and in odd
 * pieces, and compare with `M.dequant` and the SHA-256 of FILE.json.
 */
void golden_qmat_ct(const char *file);

/*
 * Check and decode m; the floats are kept until the next call. NULL after a
 * failure. Where the packed layout has a form for m, its kernel must see the same
 * values.
 */
const float *golden_qmat_decode(const struct moe_qmat *m, const char *name);

/* The values that the kernel takes from the rows of a packed form, out [rows][cols]. */
void golden_qmat_kernel(const struct moe_packed *p, const struct moe_repack *from, float *out);

#endif
