/* SPDX-License-Identifier: Apache-2.0 */
/* The report: JSON Lines, a tensor each, and a summary (moe-quant(1), REPORT). */
#ifndef CMD_QUANT_REPORT_H
#define CMD_QUANT_REPORT_H

#include "cmd/moe-quant/quant_tile.h"

/* Append the line of an item; stats is NULL for what is kept or only planned. */
void quant_report_item(struct moe_buf *b, struct moe_source *s, const struct quant_plan *p,
    const struct quant_plan_item *x, const struct quant_tile_stats *stats);

/* Append the summary of a plan; stats is NULL when nothing was measured. */
void quant_report_summary(struct moe_buf *b, const struct quant_plan *p,
    const struct quant_tile_stats *stats);

/*
 * Print what would be done and the exact size of each file of dst. json: lines
 * for programs, else a table for people. Errors: as moe_sink_size().
 */
int quant_report_plan(struct moe_buf *b, struct moe_source *s, const struct quant_plan *p,
    const char *dst, bool json, struct moe_err *e);

#endif
