/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How characters are written: as UTF-8, or as JSON strings have them, themselves
 * where they may stand and as every escape that means them. Added to a grammar
 * as edges from one state to another.
 */
#ifndef MOE_ENGINE_SPELL_H
#define MOE_ENGINE_SPELL_H

#include "common/engine/codeset.h"
#include "common/engine/grammar.h"

/* One character of the set in UTF-8. */
void moe_spell_utf8(struct moe_grammar *g, uint32_t from, const struct moe_codeset *s,
    uint32_t to);

/* One character of the set within a JSON string. */
void moe_spell_json(struct moe_grammar *g, uint32_t from, const struct moe_codeset *s,
    uint32_t to);

/* A whole JSON string, quotes included, that means the UTF-8 text p; the state after it. */
uint32_t moe_spell_string(struct moe_grammar *g, uint32_t from, const char *p, size_t n);

#endif
