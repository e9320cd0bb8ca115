/* SPDX-License-Identifier: Apache-2.0 */
/* moe-verify sum: print digests. */
#ifndef MOE_VERIFY_SUM_H
#define MOE_VERIFY_SUM_H

#include "cmd/moe-verify/verify_opts.h"
#include "common/base/err.h"

/* operands[0..n); returns the exit status, or a negative MOE_E* with text in e. */
int verify_sum(const struct verify_opts *o, char *const *operands, int n, struct moe_err *e);

#endif
