/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An importance matrix in the making: sums of squares of what enters each matrix,
 * column by column, expert by expert; written as llama.cpp's GGUF form, which
 * its quantiser and ours read.
 */
#ifndef MOE_QUANT_EVIDENCE_H
#define MOE_QUANT_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"
#include "common/engine/forward.h"

struct quant_evidence;

int quant_evidence_new(const struct moe_model *m, struct quant_evidence **out,
    struct moe_err *e);
void quant_evidence_free(struct quant_evidence *v);    /* NULL is allowed */

/* Count in what the engine tells; one thread. */
void quant_evidence_add(struct quant_evidence *v, const struct moe_observed *o);

/* text: what was read, so many tokens of it. Errors: MOE_ENOMEM and those of writing. */
int quant_evidence_write(const struct quant_evidence *v, const char *text, size_t tokens,
    const char *path, bool force, struct moe_err *e);

#endif
