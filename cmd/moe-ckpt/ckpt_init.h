/* SPDX-License-Identifier: Apache-2.0 */
/* `moe-ckpt init`. */
#ifndef CKPT_INIT_H
#define CKPT_INIT_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd ckpt_init_cmd;

int ckpt_init(int argc, char **argv, struct moe_err *e);

#endif
