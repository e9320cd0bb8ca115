/* SPDX-License-Identifier: Apache-2.0 */
/* Dictionaries of template values. Keys compare as in Python: 1, 1.0 and true are one. */
#ifndef MOE_ENGINE_TEMPLATE_DICT_H
#define MOE_ENGINE_TEMPLATE_DICT_H

#include "common/engine/template_value.h"

int moe_template_dict_new(struct moe_trun *r, struct moe_tval *out);

/* Set a key; a new one comes last. Unhashable keys are an error. */
int moe_template_dict_set(struct moe_trun *r, struct moe_tdict *d, struct moe_tval k,
    struct moe_tval v);

/* *out is NULL when there is no such key. */
int moe_template_dict_get(struct moe_trun *r, const struct moe_tdict *d, struct moe_tval k,
    const struct moe_tval **out);
const struct moe_tval *moe_template_dict_named(const struct moe_tdict *d, const char *name);

#endif
