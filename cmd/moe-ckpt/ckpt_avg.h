/* SPDX-License-Identifier: Apache-2.0 */
/* moe-ckpt avg: a mean of models or of updates, clipped and noisy if asked. */
#ifndef CMD_CKPT_AVG_H
#define CMD_CKPT_AVG_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd ckpt_avg_cmd;

/* Returns the exit status, or a negative MOE_E* with text in e. */
int ckpt_avg(int argc, char **argv, struct moe_err *e);

#endif
