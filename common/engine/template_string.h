/* SPDX-License-Identifier: Apache-2.0 */
/* Work on strings that filters and methods share; Python's str is the rule. */
#ifndef MOE_ENGINE_TEMPLATE_STRING_H
#define MOE_ENGINE_TEMPLATE_STRING_H

#include "common/engine/template_value.h"

enum { MOE_STRIP_LEFT = 1, MOE_STRIP_RIGHT = 2 };

/* Without the characters of chars (NULL: white space) at the ends. */
int moe_template_string_strip(struct moe_trun *r, const struct moe_tstr *s,
    const struct moe_tstr *chars, int ends, struct moe_tval *out);

/* At most count replacements, all when it is negative. */
int moe_template_string_replace(struct moe_trun *r, const struct moe_tstr *s,
    const struct moe_tstr *old, const struct moe_tstr *to, int64_t count, struct moe_tval *out);

/* A list of at most max + 1 parts (negative: all) at sep (NULL: runs of white space). */
int moe_template_string_split(struct moe_trun *r, const struct moe_tstr *s,
    const struct moe_tstr *sep, int64_t max, bool from_right, struct moe_tval *out);
int moe_template_string_lines(struct moe_trun *r, const struct moe_tstr *s, bool keep,
    struct moe_tval *out);

/* Byte of the first or last occurrence in [from, to), or SIZE_MAX. */
size_t moe_template_string_find(const struct moe_tstr *s, const struct moe_tstr *what,
    size_t from, size_t to, bool last);
size_t moe_template_string_count(const struct moe_tstr *s, const struct moe_tstr *what);

/* Filled up to width characters; where the text stands: '<', '>' or '^'. */
int moe_template_string_pad(struct moe_trun *r, struct moe_tstr *s, int64_t width,
    const struct moe_tstr *fill, char where, struct moe_tval *out);

/* The strings of a list with sep between; what is no string is an error. */
int moe_template_string_join(struct moe_trun *r, const struct moe_tstr *sep,
    const struct moe_tlist *l, struct moe_tval *out);

#endif
