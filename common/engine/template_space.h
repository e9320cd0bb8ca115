/* SPDX-License-Identifier: Apache-2.0 */
/* White space as Python's str.isspace() and str.strip() have it. */
#ifndef MOE_ENGINE_TEMPLATE_SPACE_H
#define MOE_ENGINE_TEMPLATE_SPACE_H

#include <stdbool.h>
#include <stdint.h>

bool moe_template_space_is(uint32_t c);

/* The first character of UTF-8 [p, end) that is none, or end. */
const char *moe_template_space_skip(const char *p, const char *end);

/* Where the white space at the end of [p, end) begins. */
const char *moe_template_space_rstrip(const char *p, const char *end);

#endif
