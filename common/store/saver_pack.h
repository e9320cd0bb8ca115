/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packs of one save: begun when there is something to write, ended when
 * full, and removed again unless they are kept.
 */
#ifndef MOE_STORE_SAVER_PACK_H
#define MOE_STORE_SAVER_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/store/packw.h"
#include "common/store/store.h"

struct moe_saver_packs {
    struct moe_store *store;
    struct moe_packw *w;        /* the one that grows, or NULL */
    uint64_t first, next;       /* numbers: of the first and of the one to begin */
    uint64_t bytes;             /* of those that have ended */
};

int moe_saver_pack_begin(struct moe_saver_packs *p, struct moe_store *store, struct moe_err *e);

/* Whether the store, or the pack that grows, has r->ref's id and type: then r->ref is complete. */
bool moe_saver_pack_find(struct moe_saver_packs *p, struct moe_pack_record *r);

/* As moe_packw_add(). */
int moe_saver_pack_add(struct moe_saver_packs *p, struct moe_pack_record *r, const void *body,
    struct moe_err *e);

/* End the last one. */
int moe_saver_pack_end(struct moe_saver_packs *p, struct moe_err *e);

/* They belong to a save now. */
void moe_saver_pack_keep(struct moe_saver_packs *p);

/* Remove what is not kept. */
void moe_saver_pack_abort(struct moe_saver_packs *p);

#endif
