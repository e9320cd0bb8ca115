/* SPDX-License-Identifier: Apache-2.0 */
/* `moe-ckpt load`. */
#ifndef CKPT_LOAD_H
#define CKPT_LOAD_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd ckpt_load_cmd;

int ckpt_load(int argc, char **argv, struct moe_err *e);

#endif
