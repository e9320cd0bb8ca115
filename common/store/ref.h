/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The refs of a store: names for saves, in STORE/refs, one small file each that
 * holds the number of the save and the SHA-256 of its manifest, so that it
 * cannot come to mean another one. `latest` is the ref that saving moves.
 */
#ifndef MOE_STORE_REF_H
#define MOE_STORE_REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/trust/digest.h"

#define MOE_REF_LATEST "latest"
#define MOE_REF_MAX 100         /* bytes of a name */

struct moe_ref {
    uint64_t id;
    unsigned char sum[MOE_DIGEST_LEN];
};

/*
 * Letters, digits, '.', '_', '-', the first no '.' and no '-', and not all of them
 * digits: such a name cannot be taken for a number or an option.
 */
bool moe_ref_name_ok(const char *name);

/* The text of a ref's file. Errors: MOE_EFORMAT. */
int moe_ref_parse(const char *p, size_t n, const char *name, struct moe_ref *out,
    struct moe_err *e);

/* dirfd and path are the store's. Errors: MOE_ENOENT, MOE_EFORMAT, MOE_EIO. */
int moe_ref_read(int dirfd, const char *path, const char *name, struct moe_ref *out,
    struct moe_err *e);

/* Make or move a ref, durably and in one step. The caller is the writer. */
int moe_ref_write(int dirfd, const char *path, const char *name, const struct moe_ref *r,
    struct moe_err *e);

/* Remove one, durably. Errors: MOE_ENOENT, MOE_EIO. */
int moe_ref_drop(int dirfd, const char *path, const char *name, struct moe_err *e);

/* The names, ascending; freed by moe_ref_list_fini(). */
struct moe_ref_list { char **name; size_t n; };

int moe_ref_list(int dirfd, const char *path, struct moe_ref_list *out, struct moe_err *e);
void moe_ref_list_fini(struct moe_ref_list *l);

#endif
