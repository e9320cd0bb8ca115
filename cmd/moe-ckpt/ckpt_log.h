/* SPDX-License-Identifier: Apache-2.0 */
/* `moe-ckpt log`. */
#ifndef CKPT_LOG_H
#define CKPT_LOG_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd ckpt_log_cmd;

int ckpt_log(int argc, char **argv, struct moe_err *e);

#endif
