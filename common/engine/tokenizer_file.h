/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a loaded tokenizer is made of, and reading it from tokenizer.json;
 * private to tokenizer.c and detokenizer.c.
 */
#ifndef MOE_ENGINE_TOKENIZER_FILE_H
#define MOE_ENGINE_TOKENIZER_FILE_H

#include "common/engine/added.h"
#include "common/engine/bpe.h"
#include "common/engine/decoder.h"
#include "common/engine/normalizer.h"
#include "common/engine/pretokenizer.h"
#include "common/engine/tokenizer.h"
#include "common/engine/vocab.h"

struct moe_tokenizer {
    struct moe_vocab vocab;             /* of the model, then added tokens it lacks */
    struct moe_bpe bpe;
    struct moe_added_set added;
    struct moe_normalizer *normalizer;
    struct moe_pretokenizer *pretokenizer;
    struct moe_decoder *decoder;
    struct moe_tokens before, after;    /* what the post-processor puts around a text */
    bool *special;                      /* by id */
};

/* Fill t, which is zeroed. The caller frees it, also after a failure. */
int moe_tokenizer_file(struct moe_tokenizer *t, const char *json, size_t n, const char *name,
    struct moe_err *e);

#endif
