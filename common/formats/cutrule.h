/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which matrix is cut how for tensor parallelism, by what its name means: heads
 * stay whole, k and v are copied when they are fewer than the ranks, halves of
 * fused gate and up are cut apart, the vocabulary is padded. The rules are
 * those of Megatron-LM, as vLLM and SGLang have them for Hugging Face names.
 */
#ifndef MOE_FORMATS_CUTRULE_H
#define MOE_FORMATS_CUTRULE_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/cut.h"

#define MOE_CUTRULE_VOCAB 64    /* rows of a vocabulary are padded to this times the ranks */

/* Heads of a model: what a rule needs of its configuration. */
struct moe_cutrule { uint64_t heads, kv_heads; };

/*
 * The axis of a matrix of rows x cols, for ranks >= 1. Errors: MOE_EUNSUP (no
 * rule is known for a matrix of that name), MOE_EFORMAT (heads do not divide it).
 */
int moe_cutrule_axis(const struct moe_cutrule *m, const struct moe_naming *n, uint64_t rows,
    uint64_t cols, uint32_t ranks, struct moe_cut_axis *out, struct moe_err *e);

#endif
