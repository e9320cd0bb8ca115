/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checkpoint store: a directory of packs, manifests of saves and refs, whose
 * layout is in moe-store(5). Opening one takes a lease as reader or the lock as
 * writer, which end when it is closed.
 */
#ifndef MOE_STORE_STORE_H
#define MOE_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/store/names.h"
#include "common/store/packs.h"
#include "common/store/ref.h"
#include "common/store/snapshot.h"

#define MOE_STORE_MARK "moe-store"      /* the file that makes a directory a store */

struct moe_store {
    char *path;
    int dirfd;
    int held;                   /* the lock or the lease */
    bool writer;
    struct moe_packs *packs;
};

/*
 * Make a new, empty store at path, which must not exist or be an empty
 * directory. Errors: MOE_EEXIST, MOE_EIO.
 */
int moe_store_init(const char *path, struct moe_err *e);

/*
 * Open one; as writer after waiting at most wait_ms for another. Errors:
 * MOE_ENOENT, MOE_EFORMAT (it is none, or of a later form), MOE_EEXIST (a writer
 * is at work), MOE_EIO, MOE_ENOMEM.
 */
int moe_store_open(const char *path, bool writer, int wait_ms, struct moe_store **out,
    struct moe_err *e);
void moe_store_close(struct moe_store *s);

/* Whether a directory has the mark of a store. */
bool moe_store_is(const char *path);

/* The saves, ascending; out is to be ended by moe_names_fini(). */
int moe_store_ids(const struct moe_store *s, struct moe_names *out, struct moe_err *e);

/* Whether there is a save of this number. */
bool moe_store_has(const struct moe_store *s, uint64_t id);

/* The manifest of save id; out is to be ended. Errors: MOE_ENOENT, MOE_EFORMAT. */
int moe_store_read(const struct moe_store *s, uint64_t id, struct moe_snapshot *out,
    struct moe_err *e);

/*
 * The save that a word means: a number, a tag, or `latest`, which without such
 * a ref is the highest number. A ref pins the manifest. out is to be ended.
 */
int moe_store_find(const struct moe_store *s, const char *word, struct moe_snapshot *out,
    struct moe_err *e);

/*
 * Make a save visible: its manifest, whose id must be free, and then the ref
 * `latest`. The packs are durable. Errors: MOE_EEXIST and as moe_out_commit(); on
 * failure the save is not there.
 */
int moe_store_commit(const struct moe_store *s, struct moe_snapshot *snap, struct moe_err *e);

/* Remove the manifest of save id, durably; its packs stay for a collection. */
int moe_store_drop(const struct moe_store *s, uint64_t id, struct moe_err *e);

/* The first pack number that is free for good, the trash included. */
int moe_store_next_pack(const struct moe_store *s, uint64_t *number, struct moe_err *e);

#endif
