/* SPDX-License-Identifier: Apache-2.0 */
/* moe-verify check: compare with lists. */
#ifndef MOE_VERIFY_CHECK_H
#define MOE_VERIFY_CHECK_H

#include "cmd/moe-verify/verify_opts.h"
#include "common/base/err.h"

/* operands[0..n) are lists; returns the exit status, or a negative MOE_E* with text in e. */
int verify_check(const struct verify_opts *o, char *const *operands, int n, struct moe_err *e);

#endif
