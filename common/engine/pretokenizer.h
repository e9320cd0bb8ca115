/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pre_tokenizer of tokenizer.json: Split, Digits, ByteLevel, Metaspace and
 * Sequence. It cuts a text into the words that are tokenised one by one.
 * Immutable after parsing; a run belongs to one thread.
 */
#ifndef MOE_ENGINE_PRETOKENIZER_H
#define MOE_ENGINE_PRETOKENIZER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/buf.h"
#include "common/base/err.h"

#define MOE_PRETOKENIZER_MAX_STEPS 32

struct moe_pretokenizer;

/* o is the "pre_tokenizer" member, NULL or null for none. Errors: MOE_EFORMAT, MOE_EUNSUP. */
int moe_pretokenizer_parse(const json_t *o, const char *name, struct moe_pretokenizer **out,
    struct moe_err *e);
void moe_pretokenizer_free(struct moe_pretokenizer *pt);

struct moe_pretokenizer_run;

int moe_pretokenizer_run_new(const struct moe_pretokenizer *pt,
    struct moe_pretokenizer_run **out, struct moe_err *e);
void moe_pretokenizer_run_free(struct moe_pretokenizer_run *run);

/* A word in the characters of the vocabulary, valid during the call. Returns 0 or an error. */
typedef int moe_pretokenizer_fn(void *ctx, const char *p, size_t n, struct moe_err *e);

/*
 * Call fn for each word of UTF-8 text p in order. first: the text stands at the
 * beginning of the input. Errors: those of fn, MOE_ELIMIT, MOE_ENOMEM.
 */
int moe_pretokenizer_split(struct moe_pretokenizer_run *run, const char *p, size_t n, bool first,
    moe_pretokenizer_fn *fn, void *ctx, struct moe_err *e);

#endif
