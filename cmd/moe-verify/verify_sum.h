/* SPDX-License-Identifier: Apache-2.0 */
/* moe-verify sum: print digests. */
#ifndef MOE_VERIFY_SUM_H
#define MOE_VERIFY_SUM_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd verify_sum_cmd;

/* Returns the exit status, or a negative MOE_E* with text in e. */
int verify_sum(int argc, char **argv, struct moe_err *e);

#endif
