/* SPDX-License-Identifier: Apache-2.0 */
/* `moe-ckpt stat`. */
#ifndef CKPT_STAT_H
#define CKPT_STAT_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd ckpt_stat_cmd;

int ckpt_stat(int argc, char **argv, struct moe_err *e);

#endif
