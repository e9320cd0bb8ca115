/* SPDX-License-Identifier: Apache-2.0 */
/* moe-ckpt ema: the exponential average of the weights of a training run. */
#ifndef CMD_CKPT_EMA_H
#define CMD_CKPT_EMA_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd ckpt_ema_cmd;

/* Returns the exit status, or a negative MOE_E* with text in e. */
int ckpt_ema(int argc, char **argv, struct moe_err *e);

#endif
