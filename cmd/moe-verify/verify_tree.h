/* SPDX-License-Identifier: Apache-2.0 */
/* moe-verify tree: one digest for all tensors of a model. */
#ifndef MOE_VERIFY_TREE_H
#define MOE_VERIFY_TREE_H

#include "common/base/err.h"
#include "common/base/opt.h"

extern const struct moe_opt_cmd verify_tree_cmd;

/* Returns the exit status, or a negative MOE_E* with text in e. */
int verify_tree(int argc, char **argv, struct moe_err *e);

#endif
