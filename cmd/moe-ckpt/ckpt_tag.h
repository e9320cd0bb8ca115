/* SPDX-License-Identifier: Apache-2.0 */
/* `moe-ckpt tag`. */
#ifndef CKPT_TAG_H
#define CKPT_TAG_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd ckpt_tag_cmd;

int ckpt_tag(int argc, char **argv, struct moe_err *e);

#endif
