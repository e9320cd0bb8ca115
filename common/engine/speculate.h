/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guesses at the tokens that come next, from the tokens there are: what followed
 * the last ones when they stood before. A guess only saves time, the session
 * chooses its tokens as without (moe_session_try), and where it does not save
 * time it is left alone for a while, each time for longer.
 *
 * The caller says how long steps took; nothing here looks at a clock.
 */
#ifndef MOE_ENGINE_SPECULATE_H
#define MOE_ENGINE_SPECULATE_H

#include <stddef.h>
#include <stdint.h>

#define MOE_SPECULATE_MAX 16        /* tokens of a guess */
#define MOE_SPECULATE_MATCH 3       /* the last tokens that must have stood before */
#define MOE_SPECULATE_WARM 4        /* plain steps before the first guess */
#define MOE_SPECULATE_TRIES 4       /* guesses before they are judged */
#define MOE_SPECULATE_PAUSE 32      /* tokens without guesses when they lost, at first */
#define MOE_SPECULATE_PAUSE_MAX 4096

struct moe_speculate {
    size_t most, len;               /* tokens of a guess: at most, now */
    double plain_ns, guess_ns;      /* of a token, moving means; 0 = not known */
    size_t plain, tries;            /* steps behind them */
    uint64_t rest, pause;           /* tokens to go without, and how many the next time */
};

/* most: tokens of a guess, at most MOE_SPECULATE_MAX; 0 = never guess. */
void moe_speculate_init(struct moe_speculate *g, size_t most);

/*
 * What may follow the n tokens of id, in draft [MOE_SPECULATE_MAX]; returns how
 * many tokens, at most room. 0: take a plain step.
 */
size_t moe_speculate_draft(const struct moe_speculate *g, const uint32_t *id, size_t n,
    size_t room, uint32_t *draft);

/* A step with so many guessed tokens (0 = a plain one) gave so many in ns. */
void moe_speculate_learn(struct moe_speculate *g, size_t guessed, size_t tokens, uint64_t ns);

#endif
