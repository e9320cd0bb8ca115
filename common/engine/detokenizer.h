/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of a sequence token by token: only whole characters are released, at
 * most 3 bytes are held back; the end releases U+FFFD for what never completed.
 * The pieces together are what moe_tokenizer_decode() gives for the whole list.
 */
#ifndef MOE_ENGINE_DETOKENIZER_H
#define MOE_ENGINE_DETOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/engine/tokenizer.h"

struct moe_detokenizer;

int moe_detokenizer_new(const struct moe_tokenizer *t, bool skip_special,
    struct moe_detokenizer **out, struct moe_err *e);
void moe_detokenizer_free(struct moe_detokenizer *d);

/* Append what id releases to out; _end() what is left. */
int moe_detokenizer_put(struct moe_detokenizer *d, uint32_t id, struct moe_buf *out,
    struct moe_err *e);
int moe_detokenizer_end(struct moe_detokenizer *d, struct moe_buf *out, struct moe_err *e);

#endif
