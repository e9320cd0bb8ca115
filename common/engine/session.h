/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sequence: its tokens, its keys and values, its choice of tokens. It is all that a
 * caller holds; callers mix as many as they like in a step. A session belongs
 * to the thread of its store of pages.
 */
#ifndef MOE_ENGINE_SESSION_H
#define MOE_ENGINE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/engine/chooser.h"
#include "common/engine/forward.h"
#include "common/engine/kv.h"
#include "common/engine/sampler.h"

struct moe_session;

/*
 * context: most tokens it may ever hold; RoPE types that depend on a length use
 * len, what the request is expected to reach (0 = context). Errors: MOE_EUSAGE,
 * MOE_EFORMAT, MOE_ENOMEM.
 */
int moe_session_new(const struct moe_model *m, struct moe_kv *kv, size_t context, size_t len,
    const struct moe_sampler_options *sampler, struct moe_session **out, struct moe_err *e);
void moe_session_free(struct moe_session *s);

/* How its tokens are chosen; the caller may name what ends it and watch. */
struct moe_chooser *moe_session_chooser(struct moe_session *s);

/* Append tokens of the prompt, not computed yet. Errors: MOE_ELIMIT (no room), MOE_EUSAGE. */
int moe_session_add(struct moe_session *s, const uint32_t *id, size_t n, struct moe_err *e);

const uint32_t *moe_session_tokens(const struct moe_session *s);
size_t moe_session_len(const struct moe_session *s);
size_t moe_session_pending(const struct moe_session *s);    /* tokens not computed yet */

/* The next n pending tokens of a session as rows of a step. */
struct moe_session_part {
    struct moe_session *s;
    size_t n;
    bool every;             /* logits of every row, else of the session's last token only */
};

/* Logits [vocab] after token at of s (0 = its first). */
typedef int moe_session_fn(void *ctx, struct moe_session *s, size_t at, const float *logits,
    struct moe_err *e);

/*
 * One step over parts of different sessions; together at most
 * moe_forward_rows() tokens. fn may be NULL when no logits are due.
 */
int moe_session_step(struct moe_forward *f, const struct moe_session_part *parts, size_t count,
    moe_session_fn *fn, void *ctx, struct moe_err *e);

/* All pending tokens of one session, in as many steps as it takes. */
int moe_session_run(struct moe_forward *f, struct moe_session *s, bool every,
    moe_session_fn *fn, void *ctx, struct moe_err *e);

/* Compute what is pending, choose the next token, append it (still pending). */
int moe_session_next(struct moe_forward *f, struct moe_session *s, uint32_t *id,
    struct moe_err *e);

/*
 * One step with a guess at what comes next: rows of the one pending token and
 * of draft [n], of which as many are kept as the session chooses itself. At
 * least one token is chosen and at most n + 1; they are appended, the last one
 * still pending, and got is told of each in order. An end (chooser.h) is the
 * last of them. The tokens are those of moe_session_next(). n + 1 is at most
 * moe_forward_rows(). Errors: also those of got; MOE_EUSAGE (more than one
 * token is pending), MOE_ELIMIT (n + 1 tokens do not fit the context).
 */
typedef int moe_session_got_fn(void *ctx, struct moe_session *s, uint32_t id,
    struct moe_err *e);

int moe_session_try(struct moe_forward *f, struct moe_session *s, const uint32_t *draft, size_t n,
    moe_session_got_fn *got, void *ctx, struct moe_err *e);

#endif
