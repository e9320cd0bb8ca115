/* SPDX-License-Identifier: Apache-2.0 */
/* moe-ckpt ema --weights: the model that a state of an average stands for. */
#ifndef CMD_CKPT_UNBIAS_H
#define CMD_CKPT_UNBIAS_H

#include <stdbool.h>

#include "common/base/err.h"

/* dtype: "f32", "bf16", "f16" or NULL: what the models had. */
int ckpt_unbias(const char *state, const char *out, const char *dtype, bool force, bool quiet,
    struct moe_err *e);

#endif
