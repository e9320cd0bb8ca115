/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leaves of moe-tree(5): pieces of tensors, and tensors. A tensor's pieces
 * make a tree of their own, and its root, name, type, shape and size are a leaf
 * of the model's.
 */
#ifndef MOE_VERIFY_LEAF_H
#define MOE_VERIFY_LEAF_H

#include "cmd/moe-verify/verify_box.h"
#include "common/base/pool.h"
#include "common/base/progress.h"
#include "common/trust/merkle.h"

#define VERIFY_LEAF_BYTES ((uint64_t)1 << 20)

/*
 * Roots of n tensors of one open file, which are read. Memory does not grow with
 * them. Errors: MOE_EIO, MOE_EFORMAT (ends early), MOE_ENOMEM, MOE_ESTOP.
 */
int verify_leaf_roots(struct moe_pool *pool, int fd, const char *name,
    const struct verify_tensor *t, size_t n, moe_merkle_hash *roots,
    struct moe_progress *progress, struct moe_err *e);

/* The leaf of a tensor. shape as verify_box_shape() has it. Errors: MOE_ENOMEM, MOE_EIO. */
int verify_leaf_digest(const char *tensor, const char *type, const char *shape, uint64_t bytes,
    const moe_merkle_hash root, moe_merkle_hash leaf, struct moe_err *e);

#endif
