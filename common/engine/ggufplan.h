/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a family as a GGUF file has it: other names, experts in one stack a
 * projection, and the pairs of RoPE where the converter moved the rows of q and k.
 */
#ifndef MOE_ENGINE_GGUFPLAN_H
#define MOE_ENGINE_GGUFPLAN_H

#include "common/engine/family.h"

/* The same family, read from a GGUF file. */
struct moe_family moe_ggufplan_of(const struct moe_family *f);

#endif
