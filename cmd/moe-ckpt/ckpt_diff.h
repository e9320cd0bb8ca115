/* SPDX-License-Identifier: Apache-2.0 */
/* `moe-ckpt diff`. */
#ifndef CKPT_DIFF_H
#define CKPT_DIFF_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd ckpt_diff_cmd;

int ckpt_diff(int argc, char **argv, struct moe_err *e);

#endif
