/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merkle trees of RFC 6962, section 2.1, with SHA-256: leaves are digested with
 * a zero byte before them and nodes with a one, so that neither passes for the
 * other. Roots as leaves come by, and proofs that a leaf is in a tree or that
 * one tree continues another.
 */
#ifndef MOE_TRUST_MERKLE_H
#define MOE_TRUST_MERKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/trust/digest.h"

#define MOE_MERKLE_DEPTH 64     /* digests of the longest proof, and one more */

typedef unsigned char moe_merkle_hash[MOE_DIGEST_LEN];

struct moe_merkle {
    moe_merkle_hash stack[MOE_MERKLE_DEPTH];    /* roots of whole trees, largest first */
    uint64_t n;                                 /* leaves so far; its bits say which there are */
};

/* Digest of a leaf of n bytes, and of a node. Errors: MOE_ENOMEM, MOE_EIO (OpenSSL failed). */
int moe_merkle_leaf(const void *p, size_t n, moe_merkle_hash out, struct moe_err *e);
int moe_merkle_node(const moe_merkle_hash l, const moe_merkle_hash r, moe_merkle_hash out,
    struct moe_err *e);

/* Begin an empty tree, append a leaf's digest, look at the root of what there is. */
void moe_merkle_begin(struct moe_merkle *m);
int moe_merkle_add(struct moe_merkle *m, const moe_merkle_hash leaf, struct moe_err *e);
int moe_merkle_root(const struct moe_merkle *m, moe_merkle_hash root, struct moe_err *e);

/*
 * Proof that leaf i < n is in the tree of n leaves' digests: *count digests,
 * deepest first. Takes n nodes of work.
 */
int moe_merkle_path(const moe_merkle_hash *leaves, size_t n, size_t i,
    moe_merkle_hash path[static MOE_MERKLE_DEPTH], size_t *count, struct moe_err *e);

/* Proof that the tree of n leaves continues that of its first m, 0 < m <= n. */
int moe_merkle_extension(const moe_merkle_hash *leaves, size_t n, size_t m,
    moe_merkle_hash path[static MOE_MERKLE_DEPTH], size_t *count, struct moe_err *e);

/*
 * 1: leaf is number i of the n that make root; 0: it is not, or the proof has
 * another length than it must. Errors as above.
 */
int moe_merkle_check(uint64_t n, uint64_t i, const moe_merkle_hash leaf,
    const moe_merkle_hash *path, size_t count, const moe_merkle_hash root, struct moe_err *e);

/* 1: the tree of n leaves with root b continues the one of m with root a; 0: not proved. */
int moe_merkle_continues(uint64_t m, const moe_merkle_hash a, uint64_t n,
    const moe_merkle_hash b, const moe_merkle_hash *path, size_t count, struct moe_err *e);

#endif
