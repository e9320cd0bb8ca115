/* SPDX-License-Identifier: Apache-2.0 */
/* moe-verify sign: a signature over all files of a model. */
#ifndef MOE_VERIFY_SIGN_H
#define MOE_VERIFY_SIGN_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd verify_sign_cmd;

/* Returns the exit status, or a negative MOE_E* with text in e. */
int verify_sign(int argc, char **argv, struct moe_err *e);

#endif
