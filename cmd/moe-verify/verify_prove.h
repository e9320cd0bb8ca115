/* SPDX-License-Identifier: Apache-2.0 */
/* moe-verify prove: that a tensor is one of a model, from its bytes alone. */
#ifndef MOE_VERIFY_PROVE_H
#define MOE_VERIFY_PROVE_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd verify_prove_cmd;

/* Returns the exit status, or a negative MOE_E* with text in e. */
int verify_prove(int argc, char **argv, struct moe_err *e);

#endif
