/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of template values: whole numbers of any size, floats, bools. */
#ifndef MOE_ENGINE_TEMPLATE_NUMBER_H
#define MOE_ENGINE_TEMPLATE_NUMBER_H

#include "common/engine/template_value.h"

/* Decimal digits that a whole number may have (as Python prints at most). */
#define MOE_TEMPLATE_MAX_DIGITS 4300

enum moe_tnumber_op {
    MOE_TN_ADD, MOE_TN_SUB, MOE_TN_MUL, MOE_TN_DIV, MOE_TN_FLOORDIV, MOE_TN_MOD, MOE_TN_POW
};

/* Both are numbers. */
int moe_template_number_binary(struct moe_trun *r, enum moe_tnumber_op op, struct moe_tval a,
    struct moe_tval b, struct moe_tval *out);
int moe_template_number_negate(struct moe_trun *r, struct moe_tval a, struct moe_tval *out);

/* -1, 0, 1, or 2 when one is NaN. */
int moe_template_number_order(struct moe_tval a, struct moe_tval b);

double moe_template_number_real(const struct moe_tval *v);

/* A whole number in a base of 2 to 36, sign and underscores allowed; *ok is false if it is none. */
int moe_template_number_parse(struct moe_trun *r, const char *p, size_t n, int base, bool *ok,
    struct moe_tval *out);

/* The whole part of a finite float. */
int moe_template_number_whole(struct moe_trun *r, double f, struct moe_tval *out);

#endif
