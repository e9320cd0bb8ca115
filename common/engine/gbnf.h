/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grammars as people write them, in the notation of GBNF: rules "name ::= ...",
 * alternatives with |, "text", [characters], [^characters], . (any character),
 * (groups), names of rules, and *, +, ?, {n}, {n,}, {n,m} behind any of these;
 * # begins a comment. Escapes are \n \r \t \\ \" \[ \] \- \^, \xHH, \uHHHH,
 * \UHHHHHHHH. A rule ends with its line unless a bracket is open or a | stands
 * last. The output is what rule "root" takes, in UTF-8.
 */
#ifndef MOE_ENGINE_GBNF_H
#define MOE_ENGINE_GBNF_H

#include <stddef.h>

#include "common/base/err.h"
#include "common/engine/grammar.h"

#define MOE_GBNF_MAX_BYTES ((size_t)256 << 10)
#define MOE_GBNF_MAX_DEPTH 64       /* groups inside of groups */
#define MOE_GBNF_MAX_NAMES 2048

/* Errors: MOE_EFORMAT "name:line: what", MOE_ELIMIT, MOE_ENOMEM. */
int moe_gbnf_parse(const char *p, size_t n, const char *name, struct moe_grammar **out,
    struct moe_err *e);

#endif
