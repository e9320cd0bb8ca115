/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files of filters share. */
#ifndef MOE_ENGINE_TEMPLATE_FILTER_H
#define MOE_ENGINE_TEMPLATE_FILTER_H

#include "common/engine/template_function.h"

/* Filters over lists; the last row has no name. */
extern const struct moe_tfunction moe_template_filter_list[];

/* The value of a whole number, or the fallback when it was not given or is none. */
int moe_template_filter_int(struct moe_trun *r, const struct moe_tval *v, int64_t fallback,
    int64_t *out);

#endif
