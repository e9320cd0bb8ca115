/* SPDX-License-Identifier: Apache-2.0 */
/* Which records the saves of a store need. */
#ifndef MOE_STORE_LIVE_H
#define MOE_STORE_LIVE_H

#include "common/base/err.h"
#include "common/store/marks.h"
#include "common/store/store.h"

/*
 * Mark the records of one save: lists, tables, chunks and the bases they stand
 * on, where they lie now. Errors: MOE_EFORMAT (something is missing or damaged:
 * then nothing may be concluded), MOE_EIO, MOE_ENOMEM, MOE_ESTOP.
 */
int moe_live_save(const struct moe_store *s, const struct moe_snapshot *snap,
    struct moe_marks *m, struct moe_err *e);

/* Mark those of all saves. */
int moe_live_all(const struct moe_store *s, struct moe_marks *m, struct moe_err *e);

#endif
