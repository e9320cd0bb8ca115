/* SPDX-License-Identifier: Apache-2.0 */
/* `moe-ckpt fsck`. */
#ifndef CKPT_FSCK_H
#define CKPT_FSCK_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd ckpt_fsck_cmd;

int ckpt_fsck(int argc, char **argv, struct moe_err *e);

#endif
