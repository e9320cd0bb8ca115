/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of tokens of one request: what its penalties remember, how many
 * tokens it has drawn, what ends it. Nothing of it is shared with other
 * requests, so that neither batching nor preemption changes a text.
 *
 * A request's tokens are chosen one after the other: _pick() looks at logits
 * and may be called again with the same result; _take() makes a token part of
 * the output.
 */
#ifndef MOE_ENGINE_CHOOSER_H
#define MOE_ENGINE_CHOOSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/engine/logprob.h"
#include "common/engine/matcher.h"
#include "common/engine/sampler.h"

#define MOE_CHOOSER_MAX_ENDS 256
#define MOE_CHOOSER_MAX_BIAS 65536

struct moe_chooser;

/*
 * The options are copied, bias too. Errors: MOE_EUSAGE (an option out of range,
 * a bias of a token that is none of vocab), MOE_ELIMIT, MOE_ENOMEM.
 */
int moe_chooser_new(const struct moe_sampler_options *o, size_t vocab, struct moe_chooser **out,
    struct moe_err *e);
void moe_chooser_free(struct moe_chooser *c);

/* Ids that end the output, beside those named before. Errors: MOE_ELIMIT, MOE_EUSAGE. */
int moe_chooser_ends(struct moe_chooser *c, const uint32_t *id, size_t n, struct moe_err *e);

/*
 * The output must be what the matcher's grammar takes, from its present place
 * on. It is borrowed and _take() moves it; nobody else does. Its lexicon has as
 * many ids as vocab. Errors: MOE_EUSAGE, MOE_ENOMEM.
 */
int moe_chooser_constrain(struct moe_chooser *c, struct moe_matcher *m, struct moe_err *e);

/* From now on _pick() leaves logarithms of this many likeliest tokens. Errors: MOE_EUSAGE. */
int moe_chooser_watch(struct moe_chooser *c, size_t top, struct moe_err *e);

/* Tokens of the prompt. They are below vocab. */
void moe_chooser_prompt(struct moe_chooser *c, const uint32_t *id, size_t n);

/* Logits [vocab] after penalties and bias: these, or the chooser's until the next call. */
const float *moe_chooser_row(struct moe_chooser *c, const float *logits);

/*
 * The next token by logits [vocab]. Errors: MOE_EFORMAT (no logit to choose, no
 * token that the grammar takes), MOE_ELIMIT (the grammar's), MOE_ENOMEM.
 */
int moe_chooser_pick(struct moe_chooser *c, const float *logits, uint32_t *id,
    struct moe_err *e);

/* It was chosen. */
int moe_chooser_take(struct moe_chooser *c, uint32_t id, struct moe_err *e);

/*
 * Whether the last token taken ended the output: it is an end, or the last that
 * the grammar has. Whether an id is an end. How many were taken.
 */
bool moe_chooser_ended(const struct moe_chooser *c);
bool moe_chooser_is_end(const struct moe_chooser *c, uint32_t id);
uint64_t moe_chooser_taken(const struct moe_chooser *c);

/* Of the last _pick(); NULL without _watch(). */
const struct moe_logprobs *moe_chooser_logprobs(const struct moe_chooser *c);

#endif
