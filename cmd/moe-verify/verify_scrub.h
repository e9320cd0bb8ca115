/* SPDX-License-Identifier: Apache-2.0 */
/* moe-verify scrub: check a part of what is listed each night. */
#ifndef MOE_VERIFY_SCRUB_H
#define MOE_VERIFY_SCRUB_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd verify_scrub_cmd;

/* Returns the exit status, or a negative MOE_E* with text in e. */
int verify_scrub(int argc, char **argv, struct moe_err *e);

#endif
