/* SPDX-License-Identifier: Apache-2.0 */
/* `moe-ckpt show`. */
#ifndef CKPT_SHOW_H
#define CKPT_SHOW_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd ckpt_show_cmd;

int ckpt_show(int argc, char **argv, struct moe_err *e);

#endif
