/* SPDX-License-Identifier: Apache-2.0 */
/* Carrying a plan out: one pass over the input, in bounded memory. */
#ifndef CMD_QUANT_RUN_H
#define CMD_QUANT_RUN_H

#include "cmd/moe-quant/quant_journal.h"
#include "cmd/moe-quant/quant_report.h"
#include "cmd/moe-quant/quant_tile.h"
#include "common/base/pool.h"
#include "common/base/progress.h"

struct quant_run_options {
    struct moe_pool *pool;
    struct quant_report *report;    /* NULL = none; told as matrices are finished */
    struct quant_journal *journal;  /* NULL = none */
    size_t first;               /* items before it are in the sink already */
    struct moe_progress *progress;
};

/*
 * Write all data of the plan to the sink, which is not committed; p gets its
 * ranges. The bytes do not depend on the pool. Errors: MOE_EFORMAT (NaN or infinity, with tensor,
 * index and count), MOE_EIO, MOE_ESTOP, MOE_ENOMEM.
 */
int quant_run(struct moe_source *s, struct quant_plan *p, struct moe_sink *sink,
    const struct quant_run_options *opt, struct moe_err *e);

#endif
