/* SPDX-License-Identifier: Apache-2.0 */
/* moe-verify compare: which node's weights are not the others'. */
#ifndef MOE_VERIFY_COMPARE_H
#define MOE_VERIFY_COMPARE_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd verify_compare_cmd;

/* Returns the exit status, or a negative MOE_E* with text in e. */
int verify_compare(int argc, char **argv, struct moe_err *e);

#endif
