/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading parts of files out of a store, in order, by a team of threads. Every
 * chunk and every tensor is compared with its id. Memory: some 70 MiB, whatever
 * the sizes. A loader belongs to one thread.
 */
#ifndef MOE_STORE_LOADER_H
#define MOE_STORE_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/pool.h"
#include "common/formats/safet.h"
#include "common/store/layout.h"
#include "common/store/packs.h"
#include "common/store/parts.h"

#define MOE_LOADER_THREADS 16       /* more find no work */

struct moe_loader;

/* packs and pool are the caller's and outlive it. */
int moe_loader_new(struct moe_packs *packs, struct moe_pool *pool, struct moe_loader **out,
    struct moe_err *e);
void moe_loader_free(struct moe_loader *l);

/* Takes the next n bytes; a negative result, its text in e, ends the reading. */
typedef int moe_loader_fn(void *ctx, const void *p, size_t n, struct moe_err *e);

/* All bytes of the n parts at v, in order. */
int moe_loader_run(struct moe_loader *l, const struct moe_parts_one *v, size_t n,
    moe_loader_fn *fn, void *ctx, struct moe_err *e);

/* After a failed run: which part, and the offset in it, could not be read; SIZE_MAX: none. */
void moe_loader_where(const struct moe_loader *l, size_t *part, uint64_t *offset);

/* The whole of one part appended to b. Errors: also MOE_ELIMIT (over limit). */
int moe_loader_part(struct moe_loader *l, const struct moe_parts_one *p, size_t limit,
    struct moe_buf *b, struct moe_err *e);

/* A safetensors file of the store: header, and how it is cut, to be ended by the caller. */
struct moe_loader_box {
    struct moe_parts parts;
    struct moe_safet *h;
    struct moe_layout layout;
};

/* Errors: MOE_EFORMAT (the parts are not those of the header). */
int moe_loader_box(struct moe_loader *l, const struct moe_snapshot_file *f,
    struct moe_loader_box *out, struct moe_err *e);
void moe_loader_box_fini(struct moe_loader_box *x);

#endif
