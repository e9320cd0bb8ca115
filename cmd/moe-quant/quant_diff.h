/* SPDX-License-Identifier: Apache-2.0 */
/* How far two models are apart, matrix by matrix, whatever they are stored in. */
#ifndef CMD_QUANT_DIFF_H
#define CMD_QUANT_DIFF_H

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/pool.h"
#include "common/base/progress.h"

struct quant_diff_options {
    struct moe_pool *pool;
    double gate;                /* dB, 0 = none */
    bool quiet;
};

/*
 * Append a JSON line for each matrix, and a summary, to b. Returns 1 when a
 * name is in one only, shapes differ, or a matrix is under the gate.
 */
int quant_diff_models(const char *a, const char *b, const struct quant_diff_options *opt,
    struct moe_buf *out, struct moe_err *e);

#endif
