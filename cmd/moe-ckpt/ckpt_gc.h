/* SPDX-License-Identifier: Apache-2.0 */
/* `moe-ckpt gc`. */
#ifndef CKPT_GC_H
#define CKPT_GC_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd ckpt_gc_cmd;

int ckpt_gc(int argc, char **argv, struct moe_err *e);

#endif
