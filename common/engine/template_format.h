/* SPDX-License-Identifier: Apache-2.0 */
/* Formatting of text: "..." % values, "...".format(), times. */
#ifndef MOE_ENGINE_TEMPLATE_FORMAT_H
#define MOE_ENGINE_TEMPLATE_FORMAT_H

#include "common/engine/template_function.h"

/* The widest field and the longest precision. */
#define MOE_TEMPLATE_MAX_FIELD 10000

/* f % v: a tuple gives several values, a dict named ones. */
int moe_template_format_percent(struct moe_trun *r, const struct moe_tstr *f, struct moe_tval v,
    struct moe_tval *out);

/* f.format(...): fields {}, {0} and {name}; no format after a colon. */
int moe_template_format_braces(struct moe_trun *r, const struct moe_tstr *f,
    const struct moe_targs *args, struct moe_tval *out);

/* The run's time as strftime() prints it in UTC. */
int moe_template_format_time(struct moe_trun *r, const struct moe_tstr *f, struct moe_tval *out);

#endif
