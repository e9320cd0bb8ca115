/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All packs of a store as one place to read records from: by where they were
 * last, else by their id. At most MOE_PACKS_OPEN files are held open.
 */
#ifndef MOE_STORE_PACKS_H
#define MOE_STORE_PACKS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/store/pack.h"

#define MOE_PACKS_OPEN 64

struct moe_packs;

/* dirfd and path are the store's and must outlive it; reads nothing yet. */
int moe_packs_new(int dirfd, const char *path, struct moe_packs **out, struct moe_err *e);
void moe_packs_free(struct moe_packs *p);

/* The numbers of the packs, ascending, as they were listed last. */
size_t moe_packs_n(const struct moe_packs *p);
uint64_t moe_packs_at(const struct moe_packs *p, size_t i);

/* List the folder again: packs have come or gone. */
int moe_packs_again(struct moe_packs *p, struct moe_err *e);

/*
 * The record ref speaks of; its body is appended to b (NULL: the head alone).
 * Threads may. Errors: MOE_EFORMAT (it is nowhere, or damaged), MOE_EIO, MOE_ENOMEM.
 */
int moe_packs_read(struct moe_packs *p, const struct moe_pack_ref *ref,
    struct moe_pack_record *r, struct moe_buf *b, struct moe_err *e);

/* Look an id up in all packs, the newest first: 1 and *r, or 0, or MOE_E*. Threads may. */
int moe_packs_find(struct moe_packs *p, const unsigned char id[MOE_DIGEST_LEN], int type,
    struct moe_pack_record *r, struct moe_err *e);

#endif
