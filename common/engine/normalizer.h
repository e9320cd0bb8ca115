/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The normalizer of tokenizer.json: NFC, NFD, NFKC, NFKD, Prepend, Replace and
 * Sequence. Immutable after parsing.
 */
#ifndef MOE_ENGINE_NORMALIZER_H
#define MOE_ENGINE_NORMALIZER_H

#include <jansson.h>
#include <stddef.h>

#include "common/base/buf.h"
#include "common/base/err.h"

#define MOE_NORMALIZER_MAX_STEPS 32
/* A replacement may make a text this many times as long. */
#define MOE_NORMALIZER_MAX_GROWTH 64

struct moe_normalizer;

/* o is the "normalizer" member, NULL or null for none. Errors: MOE_EFORMAT, MOE_EUNSUP. */
int moe_normalizer_parse(const json_t *o, const char *name, struct moe_normalizer **out,
    struct moe_err *e);
void moe_normalizer_free(struct moe_normalizer *nz);

/*
 * Append the normal form of UTF-8 text p to out, which must be empty; tmp is
 * room to work in. Errors: MOE_ENOMEM, MOE_ELIMIT.
 */
int moe_normalizer_run(const struct moe_normalizer *nz, const char *p, size_t n,
    struct moe_buf *out, struct moe_buf *tmp, struct moe_err *e);

#endif
