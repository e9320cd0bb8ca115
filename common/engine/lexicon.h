/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of all tokens in lexicographic order, so that what tokens have in
 * common at their beginnings is looked at once. Immutable after it is made.
 * Special tokens and tokens without bytes are not in it.
 */
#ifndef MOE_ENGINE_LEXICON_H
#define MOE_ENGINE_LEXICON_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/engine/tokenizer.h"

struct moe_lexicon_word {
    uint32_t id, at, len;       /* bytes at `at` of text */
    uint32_t common;            /* bytes that it shares with the word before */
};

struct moe_lexicon {
    struct moe_lexicon_word *word;  /* [n] in order of their bytes */
    size_t n;
    uint32_t *by_id;            /* [ids] place in word, or UINT32_MAX */
    uint32_t ids;
    struct moe_buf text;
};

/* ids: how many there are; those past the tokenizer's have no bytes. Errors: MOE_ENOMEM. */
int moe_lexicon_new(const struct moe_tokenizer *t, uint32_t ids, struct moe_lexicon **out,
    struct moe_err *e);
void moe_lexicon_free(struct moe_lexicon *l);

/* The bytes of a token; *n is 0 when it has none here. */
const char *moe_lexicon_bytes(const struct moe_lexicon *l, uint32_t id, size_t *n);

#endif
