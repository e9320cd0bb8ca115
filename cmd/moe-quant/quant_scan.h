/* SPDX-License-Identifier: Apache-2.0 */
/* What values a model holds: ranges, exponents, values that are none. */
#ifndef CMD_QUANT_SCAN_H
#define CMD_QUANT_SCAN_H

#include <stdbool.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/pool.h"

struct quant_scan_options {
    struct moe_pool *pool;
    const char *lora;           /* an adapter to add, or NULL */
    double limit;               /* magnitude over which a value is counted */
    bool quiet;
};

/*
 * Append a JSON line for each matrix and a verdict for each role to out.
 * Returns 1 when a value is NaN, infinite or over the limit.
 */
int quant_scan_model(const char *path, const struct quant_scan_options *opt, struct moe_buf *out,
    struct moe_err *e);

/*
 * Read every byte of a model: headers, index, every part of every matrix, every
 * scale and value. Returns 1 when a decoded value is NaN or infinite.
 */
int quant_scan_check(const char *path, const struct quant_scan_options *opt, struct moe_buf *out,
    struct moe_err *e);

#endif
