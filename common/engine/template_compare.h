/* SPDX-License-Identifier: Apache-2.0 */
/* Equality, order and membership of template values, as Python has them. */
#ifndef MOE_ENGINE_TEMPLATE_COMPARE_H
#define MOE_ENGINE_TEMPLATE_COMPARE_H

#include "common/engine/template_value.h"

int moe_template_compare_equal(struct moe_trun *r, struct moe_tval a, struct moe_tval b,
    bool *out);

/* *out is -1, 0 or 1, or 2 when there is a NaN. op is for the message ("<"). */
int moe_template_compare_order(struct moe_trun *r, struct moe_tval a, struct moe_tval b,
    const char *op, int *out);

/* v in in */
int moe_template_compare_contains(struct moe_trun *r, struct moe_tval in, struct moe_tval v,
    bool *out);

/* Sort n places so that key[place] ascends, equal keys in their order; or descends. */
int moe_template_compare_sort(struct moe_trun *r, const struct moe_tval *key, size_t *place,
    size_t n, bool reverse);

#endif
