/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing one pack of a store: records are appended, the index follows, and the
 * file gets its name when all of it is on disk. One thread.
 */
#ifndef MOE_STORE_PACKW_H
#define MOE_STORE_PACKW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/store/pack.h"

/* When a pack should be ended and the next begun; bounds the memory of its index. */
#define MOE_PACKW_FULL_RECORDS ((size_t)1 << 18)
#define MOE_PACKW_FULL_BYTES ((uint64_t)16 << 30)

struct moe_packw;

/* Begin the file path, pack `number`. Errors: as moe_out_open(). */
int moe_packw_open(const char *path, uint64_t number, struct moe_packw **out, struct moe_err *e);

/*
 * Append a record: r->ref.pack and .at are given by this, the other fields and
 * the r->ref.stored bytes of body by the caller. Errors: MOE_EIO, MOE_ENOMEM, MOE_ESTOP.
 */
int moe_packw_add(struct moe_packw *w, struct moe_pack_record *r, const void *body,
    struct moe_err *e);

/* The record with this id and type, if it has been added. */
bool moe_packw_find(const struct moe_packw *w, const unsigned char id[MOE_DIGEST_LEN], int type,
    struct moe_pack_record *out);

size_t moe_packw_n(const struct moe_packw *w);
uint64_t moe_packw_bytes(const struct moe_packw *w);
bool moe_packw_full(const struct moe_packw *w);

/* Make it durable and give it its name; frees w in every case. */
int moe_packw_commit(struct moe_packw *w, struct moe_err *e);
void moe_packw_abort(struct moe_packw *w);

#endif
