/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns of tokenizer.json, matched as the reference tokenizers match them
 * (Oniguruma's syntax, Unicode 16 classes) with PCRE2. A compiled pattern is
 * immutable and may be shared; a run belongs to one thread.
 */
#ifndef MOE_ENGINE_REGEX_H
#define MOE_ENGINE_REGEX_H

#include <jansson.h>
#include <stddef.h>

#include "common/base/buf.h"
#include "common/base/err.h"

#define MOE_REGEX_MAX_SOURCE ((size_t)16 << 10)
#define MOE_REGEX_MAX_DEPTH 64
/* Steps that one search may take, beside those that the text's length explains. */
#define MOE_REGEX_STEPS 1000000
#define MOE_REGEX_HEAP_KIB (256 << 10)

struct moe_regex;

/*
 * Errors: MOE_EFORMAT (no pattern), MOE_EUNSUP (a construct that PCRE2 would
 * read otherwise), MOE_ELIMIT.
 */
int moe_regex_compile(const char *p, size_t n, const char *name, struct moe_regex **out,
    struct moe_err *e);

/* A pattern that is the text p itself. */
int moe_regex_literal(const char *p, size_t n, struct moe_regex **out, struct moe_err *e);

/* The "pattern" of a node: {"Regex": ...} or {"String": ...}. */
int moe_regex_pattern(const json_t *o, const char *name, struct moe_regex **out,
    struct moe_err *e);
void moe_regex_free(struct moe_regex *r);

/* A search through one text after the other. r is borrowed. */
struct moe_regex_run;

int moe_regex_run_new(const struct moe_regex *r, struct moe_regex_run **out, struct moe_err *e);
void moe_regex_run_free(struct moe_regex_run *run);

/* Begin with a text of valid UTF-8, borrowed. In an empty text nothing matches. */
void moe_regex_start(struct moe_regex_run *run, const char *p, size_t n);

/*
 * The next match: 1 and its offsets [*from, *to), or 0. An empty match right
 * after a match is passed over. Errors: MOE_ELIMIT (the pattern explodes on
 * this text), MOE_ENOMEM.
 */
int moe_regex_next(struct moe_regex_run *run, size_t *from, size_t *to, struct moe_err *e);

#endif
