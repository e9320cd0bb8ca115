/* SPDX-License-Identifier: Apache-2.0 */
/* The report: JSON Lines, a tensor each, and a summary (moe-quant(1), REPORT). */
#ifndef CMD_QUANT_REPORT_H
#define CMD_QUANT_REPORT_H

#include "cmd/moe-quant/quant_encode.h"
#include "cmd/moe-quant/quant_plan.h"
#include "common/base/jsonw.h"

#define QUANT_REPORT_WORST 10

struct quant_report;

/* path: "-" stdout, or NULL: figures are gathered for the gate, no line is written. */
int quant_report_open(const char *path, bool force, struct quant_report **out, struct moe_err *e);

/* An item is done; stats is NULL for what is copied. */
int quant_report_item(struct quant_report *r, struct moe_source *s, const struct quant_plan *p,
    const struct quant_plan_item *x, const struct quant_stats *stats, struct moe_err *e);

/* Write the summary and make the report appear; frees r in every case. */
int quant_report_close(struct quant_report *r, struct moe_source *s, const struct quant_plan *p,
    struct moe_err *e);
void quant_report_abort(struct quant_report *r);

/*
 * The ratio of signal to error of the worst quantised matrix in dB, infinite
 * without one, and its name.
 */
double quant_report_worst(const struct quant_report *r, const char **name);

/* ---- Lines, also of plans and differences ------------------------------------- */

/* dB; infinite without error. */
double quant_report_sqnr(const struct quant_stats *s);

/* Append the line of an item; stats NULL: nothing was measured. */
void quant_report_line(struct moe_buf *b, struct moe_source *s, const struct quant_plan_item *x,
    const struct quant_stats *stats);

/* Append the members that were measured. */
void quant_report_errors(struct moe_jsonw *w, const struct quant_stats *s);

/* Append the summary; r NULL: nothing was measured. */
void quant_report_summary(struct moe_buf *b, struct moe_source *s, const struct quant_plan *p,
    const struct quant_report *r);

#endif
