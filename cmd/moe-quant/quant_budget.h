/* SPDX-License-Identifier: Apache-2.0 */
/* A policy for a size: formats per layer and role, from measured errors. */
#ifndef CMD_QUANT_BUDGET_H
#define CMD_QUANT_BUDGET_H

#include "cmd/moe-quant/quant_policy.h"
#include "common/base/pool.h"

struct quant_budget_options {
    struct moe_pool *pool;
    uint64_t bytes;             /* of the model as a directory; 0: bits a weight */
    double bpw;
    enum quant_search search;
    bool both, quiet;
};

/*
 * Append the policy, a YAML file with what it costs in comments, to out.
 * Errors: MOE_ELIMIT (even the smallest is larger), and those of reading.
 */
int quant_budget_solve(const char *src, const struct quant_budget_options *opt,
    struct moe_buf *out, struct moe_err *e);

#endif
