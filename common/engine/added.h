/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Added tokens: texts that are one token wherever they stand, found before the
 * text is cut into words. Immutable after moe_added_done().
 */
#ifndef MOE_ENGINE_ADDED_H
#define MOE_ENGINE_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/engine/span.h"
#include "common/engine/tokenizer.h"

#define MOE_ADDED_MAX 65536             /* tokens */
#define MOE_ADDED_MAX_TEXT 1024         /* bytes of one */

struct moe_added_token {
    struct moe_buf text;
    uint32_t id;
    bool special, normalized, single_word, lstrip, rstrip;
};

struct moe_added_set {
    struct moe_added_token *tok;
    size_t n, cap;
    size_t *raw, *normal;               /* indices, sorted by text: two dictionaries */
    size_t n_raw, n_normal;
    bool first_raw[256], first_normal[256];
};

#define MOE_ADDED_SET_INIT { 0 }

/* tok->text is moved into the set. Errors: MOE_ELIMIT, MOE_ENOMEM. */
int moe_added_add(struct moe_added_set *s, struct moe_added_token *tok, struct moe_err *e);

/* After the last: build what searching needs. */
int moe_added_done(struct moe_added_set *s, struct moe_err *e);
void moe_added_fini(struct moe_added_set *s);

struct moe_added_hit { size_t from, to; uint32_t id; };

/*
 * The next added token of text p at or after *at: leftmost, then longest, of
 * those with flag `normalized`. hit is what it takes, white space of lstrip and
 * rstrip included; [*done, hit.from) is plain text. Both cursors are moved on.
 * Tokens that reach into a stretch of outside (NULL: none) are passed over.
 */
bool moe_added_next(const struct moe_added_set *s, bool normalized, enum moe_added which,
    const struct moe_spans *outside, const char *p, size_t n, size_t *at, size_t *done,
    struct moe_added_hit *hit);

#endif
