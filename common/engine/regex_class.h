/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes of characters as the reference tokenizers have them, written as the
 * inside of a PCRE2 class; private to regex_syntax.c.
 */
#ifndef MOE_ENGINE_REGEX_CLASS_H
#define MOE_ENGINE_REGEX_CLASS_H

#include <stdbool.h>

#include "common/base/buf.h"

/*
 * A general category ("Lu") or a script by its long name ("Han"). False: the
 * name is none; a script that PCRE2 does not know is refused when compiling.
 */
bool moe_regex_class_property(struct moe_buf *out, const char *name);

void moe_regex_class_digit(struct moe_buf *out);
/* White space or, as a list of its own, all else. */
void moe_regex_class_space(struct moe_buf *out, bool complement);
/* \w, which differs inside of a class. */
void moe_regex_class_word(struct moe_buf *out, bool inside);

#endif
