/* SPDX-License-Identifier: Apache-2.0 */
/* moe-ckpt apply: a delta added to a model, clipped by its norm. */
#ifndef CMD_CKPT_APPLY_H
#define CMD_CKPT_APPLY_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd ckpt_apply_cmd;

/* Returns the exit status, or a negative MOE_E* with text in e. */
int ckpt_apply(int argc, char **argv, struct moe_err *e);

#endif
