/* SPDX-License-Identifier: Apache-2.0 */
/* A model of the engine that reads a text, on the processor, in F32 arithmetic. */
#ifndef MOE_QUANT_READER_H
#define MOE_QUANT_READER_H

#include <stddef.h>

#include "common/base/err.h"
#include "common/base/pool.h"
#include "common/engine/forward.h"
#include "common/engine/kv.h"
#include "common/engine/session.h"
#include "common/engine/tokens.h"

#define QUANT_READER_CONTEXT 512

struct quant_reader {
    struct moe_backend *backend;
    struct moe_model *model;
    struct moe_kv *kv;
    struct moe_forward *forward;
};

/* rows: of a step at most. pool is borrowed. Errors: the engine's. */
int quant_reader_open(struct quant_reader *r, const char *path, size_t rows,
    struct moe_pool *pool, struct moe_err *e);
void quant_reader_close(struct quant_reader *r);

/*
 * The tokens of a text file by the model's tokenizer, at most `most` (0: all). Errors: MOE_ENOENT
 * (no tokenizer.json), MOE_EFORMAT (fewer than `least`), and reading's.
 */
int quant_reader_tokens(const struct quant_reader *r, const char *text, size_t least,
    uint64_t most, struct moe_tokens *out, struct moe_err *e);

/* A session of n tokens, none computed. */
int quant_reader_begin(const struct quant_reader *r, const uint32_t *id, size_t n,
    struct moe_session **out, struct moe_err *e);

#endif
