/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where one output stands in a grammar: all ways in which its bytes so far may
 * have been meant, and which tokens can go on. What has been worked out is kept
 * in bounded tables, which are emptied when they are full. Belongs to one
 * thread; grammar and lexicon are borrowed and may be shared.
 */
#ifndef MOE_ENGINE_MATCHER_H
#define MOE_ENGINE_MATCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/engine/grammar.h"
#include "common/engine/lexicon.h"

#define MOE_MATCHER_MAX_DEPTH 256       /* calls inside of calls; deeper ones are no way on */
#define MOE_MATCHER_MAX_WAYS 1024       /* at one place */

struct moe_matcher;

/* lexicon: NULL when only bytes are matched. Errors: MOE_ENOMEM, MOE_ELIMIT. */
int moe_matcher_new(const struct moe_grammar *g, const struct moe_lexicon *l,
    struct moe_matcher **out, struct moe_err *e);
void moe_matcher_free(struct moe_matcher *m);

/* How many ids its lexicon has; 0 without one. */
uint32_t moe_matcher_ids(const struct moe_matcher *m);

/* Back to the beginning. */
int moe_matcher_restart(struct moe_matcher *m, struct moe_err *e);

/*
 * Go on by n bytes; *ok is false, and the place as before, when they are not a
 * way on. Errors: MOE_ELIMIT (more ways than there may be), MOE_ENOMEM.
 */
int moe_matcher_bytes(struct moe_matcher *m, const char *p, size_t n, bool *ok,
    struct moe_err *e);

/* Go on by a token of the lexicon. Errors: also MOE_EFORMAT (it is not a way on). */
int moe_matcher_token(struct moe_matcher *m, uint32_t id, struct moe_err *e);

/*
 * Set logits of tokens that are not a way on to minus infinity; logits has the
 * lexicon's ids. The ids of ends are let be when the output may end here and
 * excluded otherwise. *left: how many may come. Errors: as _bytes().
 */
int moe_matcher_mask(struct moe_matcher *m, const uint32_t *ends, size_t n_ends, float *logits,
    size_t *left, struct moe_err *e);

/* Whether the output may end here; and whether nothing can follow. */
bool moe_matcher_complete(const struct moe_matcher *m);
bool moe_matcher_over(const struct moe_matcher *m);

#endif
