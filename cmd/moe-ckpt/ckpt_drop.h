/* SPDX-License-Identifier: Apache-2.0 */
/* `moe-ckpt drop`. */
#ifndef CKPT_DROP_H
#define CKPT_DROP_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd ckpt_drop_cmd;

int ckpt_drop(int argc, char **argv, struct moe_err *e);

#endif
