/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokenizer.json (Hugging Face tokenizers): added tokens, normaliser,
 * pre-tokeniser, BPE model (byte-level, or SentencePiece symbols with byte
 * fallback), post-processor, decoder. Immutable after loading: any number of
 * threads may use one. Text is UTF-8, pointer and length.
 */
#ifndef MOE_ENGINE_TOKENIZER_H
#define MOE_ENGINE_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/engine/span.h"
#include "common/engine/tokens.h"

#define MOE_TOKENIZER_MAX_BYTES ((size_t)128 << 20)
#define MOE_TOKENIZER_MAX_TEXT ((size_t)1 << 30)

struct moe_tokenizer;

/* json: the whole tokenizer.json. name is for messages. */
int moe_tokenizer_parse(const char *json, size_t n, const char *name,
    struct moe_tokenizer **out, struct moe_err *e);
void moe_tokenizer_free(struct moe_tokenizer *t);

/* Which added tokens are recognised inside the text. */
enum moe_added {
    MOE_ADDED_ALL,          /* as the reference library: templates, --tokenize */
    MOE_ADDED_NOT_SPECIAL,  /* special ones read as text */
    MOE_ADDED_NONE          /* everything is text: what client content must give */
};

/*
 * Append the ids of text to out. bos: also apply the post-processor (tokens
 * such as <s> it adds). Errors: MOE_EFORMAT (not UTF-8), MOE_ELIMIT, MOE_ENOMEM.
 */
int moe_tokenizer_encode(const struct moe_tokenizer *t, const char *text, size_t n,
    enum moe_added added, bool bos, struct moe_tokens *out, struct moe_err *e);

/*
 * The ids of a prompt of which some stretches came from a client: added tokens
 * are recognised as MOE_ADDED_ALL says, but not where they reach into one.
 */
int moe_tokenizer_encode_prompt(const struct moe_tokenizer *t, const char *text, size_t n,
    const struct moe_spans *outside, bool bos, struct moe_tokens *out, struct moe_err *e);

/* Number of ids: one more than the highest, added tokens included. */
uint32_t moe_tokenizer_size(const struct moe_tokenizer *t);

/* Id of a token by its exact text (added tokens and vocabulary); false if none. */
bool moe_tokenizer_find(const struct moe_tokenizer *t, const char *text, size_t n, uint32_t *id);
bool moe_tokenizer_is_special(const struct moe_tokenizer *t, uint32_t id);

/* Raw bytes that id stands for in a byte-level or byte-fallback decoder. */
int moe_tokenizer_bytes(const struct moe_tokenizer *t, uint32_t id, struct moe_buf *out,
    struct moe_err *e);

/*
 * Whole text of a list, as the reference library's decode(): invalid UTF-8
 * becomes U+FFFD. skip_special leaves special tokens out.
 * Errors: MOE_EFORMAT (an id past the end).
 */
int moe_tokenizer_decode(const struct moe_tokenizer *t, const uint32_t *id, size_t n,
    bool skip_special, struct moe_buf *out, struct moe_err *e);

#endif
