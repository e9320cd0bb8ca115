/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of JSON within bounds, of multiples, as an automaton over their
 * spelling. Exact: bounds are decimal numbers, not floating ones.
 */
#ifndef MOE_ENGINE_NUMBERSET_H
#define MOE_ENGINE_NUMBERSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/engine/grammar.h"

#define MOE_NUMBERSET_MAX_DIGITS 340    /* of a bound, before or behind the point */
#define MOE_NUMBERSET_MAX_BOUNDS 16
#define MOE_NUMBERSET_MAX_MULTIPLES 4
#define MOE_NUMBERSET_MAX_STATES 20000

/* 0.d1 d2 ... dn times 10^point; n == 0: zero. No zero stands first or last. */
struct moe_decimal {
    bool negative;
    int point;
    size_t n;
    uint8_t d[MOE_NUMBERSET_MAX_DIGITS];
};

/* From "-12.5e3". Errors: MOE_EFORMAT, MOE_ELIMIT (too many digits). */
int moe_numberset_decimal(const char *s, size_t n, struct moe_decimal *out, struct moe_err *e);

enum moe_bound { MOE_BOUND_MIN, MOE_BOUND_ABOVE, MOE_BOUND_MAX, MOE_BOUND_BELOW };

/* divides false: the number is none of its multiples. */
struct moe_multiple { struct moe_decimal of; bool divides; };

struct moe_numberset {
    struct { enum moe_bound kind; struct moe_decimal value; } bound[MOE_NUMBERSET_MAX_BOUNDS];
    size_t n_bounds;
    struct moe_multiple multiple[MOE_NUMBERSET_MAX_MULTIPLES];
    size_t n_multiples;
};

/* Errors: MOE_ELIMIT (too many). */
int moe_numberset_bound(struct moe_numberset *s, enum moe_bound kind,
    const struct moe_decimal *value, struct moe_err *e);
int moe_numberset_multiple(struct moe_numberset *s, const struct moe_decimal *of, bool divides,
    struct moe_err *e);

/*
 * Add to g, from a state to another, the numbers of the set: plain ones, and with
 * exponents from -2 to 2. Without bounds and multiples, all numbers (exponents of
 * up to two digits). Errors: MOE_ELIMIT, MOE_ENOMEM.
 */
int moe_numberset_add(struct moe_grammar *g, uint32_t from, const struct moe_numberset *s,
    uint32_t to, struct moe_err *e);

#endif
