/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checking a store: every byte of its packs, manifests and refs, and that every
 * tensor of every save comes out as it went in. What is damaged is named: the
 * save, the file, the tensor and the byte.
 */
#ifndef MOE_STORE_FSCK_H
#define MOE_STORE_FSCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/pool.h"
#include "common/base/progress.h"
#include "common/store/store.h"

struct moe_fsck {
    /* Given. */
    struct moe_store *store;
    struct moe_pool *pool;
    bool fast;                          /* checksums and references; nothing is decoded */
    void (*told)(void *ctx, const char *text);      /* one line, for each thing that is bad */
    void *ctx;
    struct moe_progress *progress;      /* told of bytes of packs and tensors, or NULL */
    /* Result. */
    uint64_t saves, files, parts;       /* that were looked at; a part once, however often used */
    uint64_t packs, records, bytes;
    uint64_t bad;                       /* lines told */
};

/* 0 when all was looked at, good or bad; or MOE_ESTOP, MOE_ENOMEM, MOE_EIO (a folder). */
int moe_fsck_run(struct moe_fsck *f, struct moe_err *e);

#endif
