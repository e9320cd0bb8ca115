/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder of tokenizer.json: ByteLevel, Replace, ByteFallback, Fuse, Strip,
 * Metaspace and Sequence. Tokens go in one by one, text comes out. Immutable
 * after parsing; a run belongs to one sequence.
 */
#ifndef MOE_ENGINE_DECODER_H
#define MOE_ENGINE_DECODER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/buf.h"
#include "common/base/err.h"

#define MOE_DECODER_MAX_STEPS 32

struct moe_decoder;

/* o is the "decoder" member, NULL or null for none. Errors: MOE_EFORMAT, MOE_EUNSUP. */
int moe_decoder_parse(const json_t *o, const char *name, struct moe_decoder **out,
    struct moe_err *e);
void moe_decoder_free(struct moe_decoder *d);

/* Raw bytes of one token. Errors: MOE_ENOMEM, MOE_ELIMIT. */
int moe_decoder_bytes(const struct moe_decoder *d, const char *p, size_t n, struct moe_buf *out,
    struct moe_err *e);

struct moe_decoder_run;

/*
 * stream: release characters as soon as they are whole. Otherwise a run of byte
 * tokens waits for its end, since one bad byte spoils all of it.
 */
int moe_decoder_run_new(const struct moe_decoder *d, bool stream, struct moe_decoder_run **out,
    struct moe_err *e);
void moe_decoder_run_free(struct moe_decoder_run *run);

/* Append what the next token's text releases; _end() what is left. Both may fail as above. */
int moe_decoder_put(struct moe_decoder_run *run, const char *p, size_t n, struct moe_buf *out,
    struct moe_err *e);
int moe_decoder_end(struct moe_decoder_run *run, struct moe_buf *out, struct moe_err *e);

#endif
