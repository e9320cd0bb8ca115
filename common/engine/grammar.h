/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an output may be: rules, each an automaton over bytes whose edges may
 * also call a rule. Built by gbnf.c and schema.c, followed by matcher.c.
 * Immutable after moe_grammar_finish() and then free to share.
 *
 * Building remembers its first failure (a limit, memory); the calls then do
 * nothing, and finish reports it.
 */
#ifndef MOE_ENGINE_GRAMMAR_H
#define MOE_ENGINE_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define MOE_GRAMMAR_MAX_STATES (1U << 18)
#define MOE_GRAMMAR_MAX_EDGES (1U << 19)
#define MOE_GRAMMAR_MAX_RULES (1U << 15)
#define MOE_GRAMMAR_NONE UINT32_MAX

struct moe_grammar_edge {
    uint32_t to, next;          /* the next edge of the same state, or NONE */
    uint32_t rule;              /* what a call calls, else NONE */
    uint8_t lo, hi;             /* of an edge over a byte; lo > hi: it takes none */
};

struct moe_grammar_state {
    uint32_t edge;              /* the first, or NONE */
    bool end;                   /* of its rule */
    bool tail;                  /* nothing can follow but the end of the rule */
};

struct moe_grammar_rule { uint32_t start, end; };

struct moe_grammar {
    struct moe_grammar_state *state;
    struct moe_grammar_edge *edge;
    struct moe_grammar_rule *rule;
    uint32_t n_states, cap_states, n_edges, cap_edges, n_rules, cap_rules;
    uint32_t root;
    struct moe_err failed;      /* code 0: not failed */
};

int moe_grammar_new(struct moe_grammar **out, struct moe_err *e);
void moe_grammar_free(struct moe_grammar *g);

/* A new rule, with a start and an end; a new state. Their numbers, 0 after a failure. */
uint32_t moe_grammar_rule(struct moe_grammar *g);
uint32_t moe_grammar_state(struct moe_grammar *g);

/* From a state to another over any byte of lo..hi, over nothing, over all that a rule takes. */
void moe_grammar_bytes(struct moe_grammar *g, uint32_t from, uint8_t lo, uint8_t hi, uint32_t to);
void moe_grammar_jump(struct moe_grammar *g, uint32_t from, uint32_t to);
void moe_grammar_call(struct moe_grammar *g, uint32_t from, uint32_t rule, uint32_t to);

/* Over the bytes of a text; returns the state after them. */
uint32_t moe_grammar_text(struct moe_grammar *g, uint32_t from, const char *p, size_t n);

/* Remember a failure that a builder found. Returns its code. */
int moe_grammar_fail(struct moe_grammar *g, const struct moe_err *e);

/*
 * Take away what leads nowhere, so that every text that can be begun can be
 * ended. Errors: what failed before; MOE_EFORMAT (no text at all is left, a rule
 * can begin with itself), MOE_ENOMEM.
 */
int moe_grammar_finish(struct moe_grammar *g, uint32_t root, struct moe_err *e);

#endif
