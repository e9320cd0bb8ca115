/* SPDX-License-Identifier: Apache-2.0 */
/* Upper and lower case of UTF-8 text, as Python's str methods have them. */
#ifndef MOE_ENGINE_TEMPLATE_CASE_H
#define MOE_ENGINE_TEMPLATE_CASE_H

#include "common/engine/template_value.h"

enum moe_tcase {
    MOE_CASE_UPPER, MOE_CASE_LOWER, MOE_CASE_FOLD,
    MOE_CASE_CAPITAL,       /* the first character title case, the rest lower */
    MOE_CASE_TITLE,         /* the same for each run of letters */
    MOE_CASE_SWAP
};

/* Append s in that case. */
int moe_template_case(struct moe_tbuf *b, const struct moe_tstr *s, enum moe_tcase how);

/* A string in lower case, anything else as it is: what filters that ignore case compare. */
int moe_template_case_ignore(struct moe_trun *r, struct moe_tval v, struct moe_tval *out);

/* Letters that have case: isupper() and islower() of text. */
bool moe_template_case_is(const struct moe_tstr *s, bool upper);

#endif
