/* SPDX-License-Identifier: Apache-2.0 */
/* moe-verify check: compare with lists. */
#ifndef MOE_VERIFY_CHECK_H
#define MOE_VERIFY_CHECK_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd verify_check_cmd;

/* Returns the exit status, or a negative MOE_E* with text in e. */
int verify_check(int argc, char **argv, struct moe_err *e);

#endif
