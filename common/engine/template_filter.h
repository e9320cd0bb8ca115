/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of filters share. */
#ifndef MOE_ENGINE_TEMPLATE_FILTER_H
#define MOE_ENGINE_TEMPLATE_FILTER_H

#include "common/engine/template_function.h"

/* The last row of each has no name. */
extern const struct moe_tfunction moe_template_filter_text[];
extern const struct moe_tfunction moe_template_filter_list[];
extern const struct moe_tfunction moe_template_filter_sort[];

/* The value of a whole number, or the fallback when it was not given or is none. */
int moe_template_filter_int(struct moe_trun *r, const struct moe_tval *v, int64_t fallback,
    int64_t *out);

/* Neither missing nor none. */
bool moe_template_filter_given(const struct moe_tval *v);

/* An error unless v is a string. */
int moe_template_filter_need_str(struct moe_trun *r, const struct moe_tval *v);

/*
 * What attribute (a path with dots, a place, or nothing for the item itself)
 * names of an item; otherwise takes the place of what is undefined.
 */
int moe_template_filter_list_attribute(struct moe_trun *r, struct moe_tval item,
    const struct moe_tval *attribute, const struct moe_tval *otherwise, struct moe_tval *out);

#endif
