/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folders of a store: numbered files listed in order, and directories made
 * durable.
 */
#ifndef MOE_STORE_NAMES_H
#define MOE_STORE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* Numbers are below 2^63: decimal without leading zeros. */
#define MOE_NAMES_MAX (UINT64_MAX >> 1)

struct moe_names { uint64_t *v; size_t n, cap; };

/* The number that text of n bytes is; false if it is none. */
bool moe_names_number(const char *p, size_t n, uint64_t *v);

/*
 * The numbers of the entries N followed by suffix in folder `sub` of dirfd,
 * ascending; other names are passed over. out is to be ended in every case.
 * path is for messages. Errors: MOE_EIO, MOE_ENOMEM.
 */
int moe_names_list(int dirfd, const char *path, const char *sub, const char *suffix,
    struct moe_names *out, struct moe_err *e);
void moe_names_fini(struct moe_names *n);

/* fsync folder sub. */
int moe_names_sync(int dirfd, const char *path, const char *sub, struct moe_err *e);

/* Remove the temporaries of outputs from folder sub. The caller is the only writer. */
int moe_names_tidy(int dirfd, const char *path, const char *sub, struct moe_err *e);

/* Whether folder sub is one, and no link to one. Errors: MOE_EFORMAT. */
int moe_names_check(int dirfd, const char *path, const char *sub, struct moe_err *e);

#endif
