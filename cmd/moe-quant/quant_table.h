/* SPDX-License-Identifier: Apache-2.0 */
/* The dry run: what would be done, and the exact size of each file. */
#ifndef CMD_QUANT_TABLE_H
#define CMD_QUANT_TABLE_H

#include "cmd/moe-quant/quant_plan.h"

/* json: lines for programs, else a table for people. Errors: as moe_sink_size(). */
int quant_table_plan(struct moe_buf *b, struct moe_source *s, const struct quant_plan *p,
    const char *dst, bool json, struct moe_err *e);

#endif
