/* SPDX-License-Identifier: Apache-2.0 */
/* `moe-ckpt get`. */
#ifndef CKPT_GET_H
#define CKPT_GET_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd ckpt_get_cmd;

int ckpt_get(int argc, char **argv, struct moe_err *e);

#endif
