/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to qscheme.c: lists of patterns over the names of modules, each with
 * a value.
 */
#ifndef MOE_FORMATS_QSCHEME_PATTERN_H
#define MOE_FORMATS_QSCHEME_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

enum moe_qscheme_kind {
    MOE_QSCHEME_CT,     /* "re:REGEX", the class "Linear", or a full name */
    MOE_QSCHEME_REGEX,  /* matched at the start */
    MOE_QSCHEME_PART    /* whole components anywhere in the name, or an expression */
};

struct moe_qscheme_patterns;

struct moe_qscheme_patterns *moe_qscheme_pattern_new(void);     /* NULL: out of memory */
void moe_qscheme_pattern_free(struct moe_qscheme_patterns *p);

/* where: the place in the configuration, for messages. */
int moe_qscheme_pattern_add(struct moe_qscheme_patterns *p, enum moe_qscheme_kind kind,
    const char *text, size_t n, size_t value, const char *where, struct moe_err *e);

/* After the last addition, before the first search. */
void moe_qscheme_pattern_ready(struct moe_qscheme_patterns *p);

/* Value of the best match: full name, part, regex, class; of equals the first added. */
int moe_qscheme_pattern_find(const struct moe_qscheme_patterns *p, const char *module,
    size_t *value, bool *found, struct moe_err *e);

#endif
