/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of --to. */
#include <stddef.h>
#include <string.h>

#include "cmd/moe-quant/quant_packed.h"
#include "cmd/moe-quant/quant_to.h"

static const struct {
    const char *form;
    quant_to_fn *write;
} rows[] = {
    { "packed", quant_packed_write },
};

quant_to_fn *
quant_to_find(const char *form)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].form, form) == 0)
            return rows[i].write;
    return NULL;
}
