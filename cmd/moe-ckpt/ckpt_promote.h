/* SPDX-License-Identifier: Apache-2.0 */
/* moe-ckpt promote: whether a metric was steady long enough. */
#ifndef CMD_CKPT_PROMOTE_H
#define CMD_CKPT_PROMOTE_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd ckpt_promote_cmd;

/* Returns the exit status (1: no), or a negative MOE_E* with text in e. */
int ckpt_promote(int argc, char **argv, struct moe_err *e);

#endif
