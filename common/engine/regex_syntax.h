/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rewriting of a pattern from Oniguruma's syntax into PCRE2's, private to
 * regex.c. Classes get the code points of Unicode 15 and 16 added, \s, \d and
 * \w their reference meaning; captures are dropped.
 */
#ifndef MOE_ENGINE_REGEX_SYNTAX_H
#define MOE_ENGINE_REGEX_SYNTAX_H

#include <stddef.h>

#include "common/base/buf.h"
#include "common/base/err.h"

/* Append the rewritten pattern to out. Errors: MOE_EFORMAT, MOE_EUNSUP, MOE_ELIMIT. */
int moe_regex_syntax(const char *p, size_t n, const char *name, struct moe_buf *out,
    struct moe_err *e);

#endif
