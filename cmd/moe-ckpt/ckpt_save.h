/* SPDX-License-Identifier: Apache-2.0 */
/* `moe-ckpt save`. */
#ifndef CKPT_SAVE_H
#define CKPT_SAVE_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd ckpt_save_cmd;

int ckpt_save(int argc, char **argv, struct moe_err *e);

#endif
