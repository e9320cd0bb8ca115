/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving back the room that no save needs. Packs without a needed record, and
 * those that are mostly waste and have been copied, move to the trash; what
 * lies there is deleted when no reader is left who may have begun before. A crash
 * at any point loses nothing: what is needed is copied durably before its pack moves.
 */
#ifndef MOE_STORE_SWEEP_H
#define MOE_STORE_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/store/store.h"

struct moe_sweep {
    /* Given. */
    bool dry;               /* change nothing, only count */
    int waste;              /* percent of a pack's records not needed from which it is copied */
    /* Result. */
    uint64_t packs, bytes;  /* in the store before */
    uint64_t dead;          /* packs that went, or would */
    uint64_t copied;        /* packs of which the rest was copied */
    uint64_t moved;         /* bytes of both kinds */
    uint64_t added;         /* bytes of the copies */
    uint64_t waiting;       /* bytes in the trash that readers hold */
};

/* The caller is the writer. Errors: MOE_EFORMAT (a save is damaged: nothing was removed). */
int moe_sweep_run(struct moe_store *s, struct moe_sweep *w, struct moe_err *e);

#endif
