/* SPDX-License-Identifier: Apache-2.0 */
/* `moe-ckpt cat`. */
#ifndef CKPT_CAT_H
#define CKPT_CAT_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd ckpt_cat_cmd;

int ckpt_cat(int argc, char **argv, struct moe_err *e);

#endif
