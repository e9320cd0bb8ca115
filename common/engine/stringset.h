/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings of JSON of some length that match patterns and are none of some words,
 * as an automaton over their spelling; told apart by further patterns.
 */
#ifndef MOE_ENGINE_STRINGSET_H
#define MOE_ENGINE_STRINGSET_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/engine/grammar.h"
#include "common/engine/pattern.h"

#define MOE_STRINGSET_MAX_PATTERNS 16       /* of both kinds together */
#define MOE_STRINGSET_MAX_STATES 20000
#define MOE_STRINGSET_MAX_LENGTH 10000
#define MOE_STRINGSET_MAX_WORK 40000000     /* steps: some tens of milliseconds */

struct moe_stringset_word { const char *p; size_t n; };     /* UTF-8 */

struct moe_stringset {
    const struct moe_pattern *need[MOE_STRINGSET_MAX_PATTERNS];     /* all of them match */
    size_t n_need;
    const struct moe_pattern *tell[MOE_STRINGSET_MAX_PATTERNS];
    size_t n_tell;
    size_t min, max;            /* code points; max SIZE_MAX: no limit */
    const struct moe_stringset_word *without;
    size_t n_without;
    uint32_t any;               /* a rule that takes any one character of a JSON string */
};

/*
 * Where a string leads, of which bit k of told says whether tell[k] matches.
 * Called once for each value of told that there is.
 */
typedef uint32_t moe_stringset_fn(void *ctx, uint32_t told);

/* Add such strings, quotes included, from a state on. Errors: MOE_ELIMIT, MOE_ENOMEM. */
int moe_stringset_add(struct moe_grammar *g, uint32_t from, const struct moe_stringset *s,
    moe_stringset_fn *fn, void *ctx, struct moe_err *e);

/* Whether a text is in the set. Errors: MOE_ENOMEM. */
int moe_stringset_has(const struct moe_stringset *s, const char *p, size_t n, bool *yes,
    struct moe_err *e);

#endif
