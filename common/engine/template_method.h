/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files of methods share. */
#ifndef MOE_ENGINE_TEMPLATE_METHOD_H
#define MOE_ENGINE_TEMPLATE_METHOD_H

#include "common/engine/template_function.h"

/* Methods of strings; the last row has no name. */
extern const struct moe_tfunction moe_template_method_text[];

#endif
