/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading one chunk of a store: its record, those of the bases it stands on, and
 * the plain bytes they give. A checksum is compared before anything is decoded,
 * the id after.
 */
#ifndef MOE_STORE_CHUNK_H
#define MOE_STORE_CHUNK_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/store/pack.h"
#include "common/store/packs.h"

struct moe_codec;       /* common/store/codec.h */

/* Memory that readings share, one a thread. */
struct moe_chunk_room { struct moe_buf body, plain[2]; struct moe_codec *codec; };

#define MOE_CHUNK_ROOM_INIT { MOE_BUF_INIT, { MOE_BUF_INIT, MOE_BUF_INIT }, NULL }

/* The codec of a room, made when it is first wanted; NULL without memory. */
struct moe_codec *moe_chunk_codec(struct moe_chunk_room *m);

void moe_chunk_room_fini(struct moe_chunk_room *m);

/*
 * The len plain bytes of the chunk at ref, written to out; *r is its record.
 * Threads may, each with a room of its own. Errors: MOE_EFORMAT, MOE_EIO,
 * MOE_ENOMEM.
 */
int moe_chunk_read(struct moe_packs *packs, const struct moe_pack_ref *ref, size_t len, void *out,
    struct moe_pack_record *r, struct moe_chunk_room *m, struct moe_err *e);

#endif
