/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions of JSON Schema (ECMA-262, without looking around, going
 * back to groups, word borders and Unicode properties), searched for anywhere
 * in a text unless ^ and $ say otherwise. They are automata that are followed
 * in all ways at once: no text takes longer than its length explains.
 * \d, \w, \s are the ASCII ones and . is no line end, as ECMA has it.
 */
#ifndef MOE_ENGINE_PATTERN_H
#define MOE_ENGINE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/engine/codeset.h"

#define MOE_PATTERN_MAX_BYTES 4096
#define MOE_PATTERN_MAX_STATES 4096
#define MOE_PATTERN_MAX_SETS 1024
#define MOE_PATTERN_MAX_DEPTH 64

struct moe_pattern;

/* Errors: MOE_EFORMAT (no pattern), MOE_EUNSUP, MOE_ELIMIT, MOE_ENOMEM. */
int moe_pattern_compile(const char *p, size_t n, struct moe_pattern **out, struct moe_err *e);
void moe_pattern_free(struct moe_pattern *t);

/* Whether a text of UTF-8 matches. Errors: MOE_ENOMEM. */
int moe_pattern_test(const struct moe_pattern *t, const char *p, size_t n, bool *yes,
    struct moe_err *e);

/* The sets of characters that it tells apart; borrowed. */
size_t moe_pattern_sets(const struct moe_pattern *t, const struct moe_codeset **sets);

/*
 * All ways at once: a set of states in so many words of 64 bits. _start() is the
 * set before a text, _step() goes on by c, _done() tells whether the text may
 * end here. _step() returns the states it has looked at.
 */
size_t moe_pattern_words(const struct moe_pattern *t);
void moe_pattern_start(const struct moe_pattern *t, uint64_t *at);
size_t moe_pattern_step(const struct moe_pattern *t, const uint64_t *from, uint32_t c,
    uint64_t *to);
bool moe_pattern_done(const struct moe_pattern *t, const uint64_t *at, bool first);

/* Whether any text that begins so can match, one character at least being there. */
bool moe_pattern_alive(const struct moe_pattern *t, const uint64_t *at);

#endif
