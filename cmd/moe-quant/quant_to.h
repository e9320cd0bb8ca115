/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --to: a model written in another form, its values as they are. One row of a
 * table a form; quant_to.c.
 */
#ifndef CMD_QUANT_TO_H
#define CMD_QUANT_TO_H

#include <stdbool.h>

#include "common/base/err.h"
#include "common/base/pool.h"
#include "common/formats/source.h"

/* The words of --to, in the order of the table. */
#define QUANT_TO_CHOICES "packed"

struct quant_to_options {
    struct moe_pool *pool;
    bool force, quiet;
};

typedef int quant_to_fn(struct moe_source *s, const char *dst, const struct quant_to_options *o,
    struct moe_err *e);

/* The writer of a form, or NULL. */
quant_to_fn *quant_to_find(const char *form);

#endif
