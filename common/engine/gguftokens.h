/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokenizer and the chat template in the metadata of a GGUF file, as the text
 * of the files that the same model has elsewhere: byte-level BPE whose way of
 * cutting text ("pre") is in the table of gguftokens.c.
 */
#ifndef MOE_ENGINE_GGUFTOKENS_H
#define MOE_ENGINE_GGUFTOKENS_H

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/formats/gguf.h"

/*
 * Append the text of a tokenizer.json. name is the file's, for messages. Errors:
 * MOE_ENOENT (no tokenizer), MOE_EUNSUP (another kind), MOE_EFORMAT, MOE_ENOMEM.
 */
int moe_gguftokens_json(const struct moe_gguf *g, const char *name, struct moe_buf *json,
    struct moe_err *e);

/* Append that of a tokenizer_config.json: the tokens that templates name, and the template. */
int moe_gguftokens_config(const struct moe_gguf *g, const char *name, struct moe_buf *json,
    struct moe_err *e);

#endif
