/* SPDX-License-Identifier: Apache-2.0 */
/* moe-verify verify: whether a model is what was signed, and by whom. */
#ifndef MOE_VERIFY_VERIFY_H
#define MOE_VERIFY_VERIFY_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd verify_verify_cmd;

/* Returns the exit status, or a negative MOE_E* with text in e. */
int verify_verify(int argc, char **argv, struct moe_err *e);

#endif
