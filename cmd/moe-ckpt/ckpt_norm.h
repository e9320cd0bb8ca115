/* SPDX-License-Identifier: Apache-2.0 */
/* The norm over all tensors of a model or of the difference of two. */
#ifndef CMD_CKPT_NORM_H
#define CMD_CKPT_NORM_H

#include "cmd/moe-ckpt/ckpt_peers.h"

/*
 * The 2-norm of model k less model `base` (SIZE_MAX: as it is) over all tensors
 * of float types, in double: pieces in order, tensors in order of name, so that
 * it does not depend on files. x and y hold MOE_BLEND_PIECE. Errors: of
 * reading; MOE_EFORMAT (NaN, infinity, over what a double holds).
 */
int ckpt_norm(struct ckpt_peers *p, size_t k, size_t base, double *x, double *y, double *norm,
    struct moe_err *e);

#endif
