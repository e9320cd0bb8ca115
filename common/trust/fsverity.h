/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The digest by which Linux knows a file with fs-verity: SHA-256 or SHA-512 of a
 * descriptor with the root of a tree over blocks, and a salt before each block.
 * Bytes come in order; memory is a block a level.
 */
#ifndef MOE_TRUST_FSVERITY_H
#define MOE_TRUST_FSVERITY_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define MOE_FSVERITY_MAX 64         /* bytes of a digest, at most */
#define MOE_FSVERITY_SALT 32

enum moe_fsverity_alg { MOE_FSVERITY_SHA256 = 1, MOE_FSVERITY_SHA512 = 2 };

struct moe_fsverity;

/*
 * block: a power of two from 1024 to 65536. salt: n <= MOE_FSVERITY_SALT bytes.
 * Errors: MOE_EUSAGE, MOE_ENOMEM.
 */
int moe_fsverity_new(enum moe_fsverity_alg alg, size_t block, const void *salt, size_t n,
    struct moe_fsverity **out, struct moe_err *e);

/* The next bytes. A failure is told by the end. */
void moe_fsverity_add(struct moe_fsverity *v, const void *p, size_t n);

/*
 * The digest, and the root of the tree if root is not NULL; len bytes each are
 * written. v can only be freed after. Errors: MOE_EIO (OpenSSL failed).
 */
int moe_fsverity_end(struct moe_fsverity *v, unsigned char digest[static MOE_FSVERITY_MAX],
    unsigned char *root, size_t *len, struct moe_err *e);

void moe_fsverity_free(struct moe_fsverity *v);

#endif
