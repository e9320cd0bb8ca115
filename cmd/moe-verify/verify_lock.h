/* SPDX-License-Identifier: Apache-2.0 */
/* moe-verify lock: everything that a model's answers depend on, pinned in one file. */
#ifndef MOE_VERIFY_LOCK_H
#define MOE_VERIFY_LOCK_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd verify_lock_cmd;

/* Returns the exit status, or a negative MOE_E* with text in e. */
int verify_lock(int argc, char **argv, struct moe_err *e);

#endif
