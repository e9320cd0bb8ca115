/* SPDX-License-Identifier: Apache-2.0 */
/* Iteration, length, items and slices of template values. */
#ifndef MOE_ENGINE_TEMPLATE_ITEMS_H
#define MOE_ENGINE_TEMPLATE_ITEMS_H

#include "common/engine/template_value.h"

/* The items of whatever can be iterated; a generator gives them once. */
int moe_template_items_all(struct moe_trun *r, struct moe_tval v, const struct moe_tlist **out);

/* len(); *has is false for what has none. */
int moe_template_items_len(struct moe_trun *r, struct moe_tval v, bool *has, size_t *n);

/* v[i] for a sequence; *has is false when v is none or i is out of it. */
int moe_template_items_at(struct moe_trun *r, struct moe_tval v, int64_t i, bool *has,
    struct moe_tval *out);

/* v[from:to:step]; MOE_T_NONE leaves a bound open. */
int moe_template_items_slice(struct moe_trun *r, struct moe_tval v, const struct moe_tval b[3],
    struct moe_tval *out);

/* A value that yields the items of l once. */
int moe_template_items_generator(struct moe_trun *r, struct moe_tlist *l, struct moe_tval *out);

#endif
