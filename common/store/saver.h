/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing one save into a store: bytes in order go in; chunks that the store
 * has are referred to, others are encoded, against the parent's where there is
 * one, and appended to packs. Nothing is visible before moe_saver_commit().
 * Memory: some 80 MiB and the index of the pack that grows, whatever the sizes.
 *
 * A saver belongs to one thread; the store it writes to is open as writer.
 */
#ifndef MOE_STORE_SAVER_H
#define MOE_STORE_SAVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/pool.h"
#include "common/formats/dtype.h"
#include "common/store/parts.h"
#include "common/store/snapshot.h"
#include "common/store/store.h"

#define MOE_SAVER_THREADS 16        /* more find no work */
#define MOE_SAVER_REST UINT64_MAX   /* a part that ends with its file */

struct moe_saver;

/* What a save came to. */
struct moe_saver_sums {
    uint64_t plain;         /* bytes given */
    uint64_t chunks;        /* cut from them */
    uint64_t known;         /* chunks the store had */
    uint64_t deltas;        /* chunks encoded against a base */
    uint64_t written;       /* bytes of packs */
};

/* delta: encode against bases, where the caller gives some. */
int moe_saver_new(struct moe_store *store, struct moe_pool *pool, bool delta,
    struct moe_saver **out, struct moe_err *e);

/*
 * Begin a file, whose parts follow. Files come in ascending order of their
 * names. old: the parent's file, whose list is taken over when all is the same; or NULL.
 */
int moe_saver_file(struct moe_saver *s, const char *name, enum moe_snapshot_form form,
    const struct moe_snapshot_file *old, struct moe_err *e);

/*
 * Begin a part of len > 0 bytes (MOE_SAVER_REST: to the end of the file). base:
 * what its chunks may be equal or near to, of any length; or NULL.
 */
int moe_saver_part(struct moe_saver *s, enum moe_dtype dtype, uint64_t len,
    const struct moe_parts_one *base, struct moe_err *e);

/* The next n bytes of the part; they must not pass its end. */
int moe_saver_add(struct moe_saver *s, const void *p, size_t n, struct moe_err *e);

/* All parts of the file have been given. Errors: MOE_EFORMAT (bytes are missing). */
int moe_saver_file_end(struct moe_saver *s, struct moe_err *e);

/*
 * Make all of it durable, then visible as snap->id; snap has the id, the time,
 * the parent, the shape and the pairs, and gets the files. What is written is
 * removed again when it fails. Frees nothing. Errors: MOE_EIO, MOE_EEXIST.
 */
int moe_saver_commit(struct moe_saver *s, struct moe_snapshot *snap, struct moe_err *e);

/* After the commit. */
struct moe_saver_sums moe_saver_sums(const struct moe_saver *s);

/* Frees s; what has not been committed is removed. NULL is allowed. */
void moe_saver_free(struct moe_saver *s);

#endif
