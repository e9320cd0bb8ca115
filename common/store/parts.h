/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two kinds of lists in a store. A file is parts behind each other: its
 * header, then each tensor; an opaque file is one part. A part of up to
 * MOE_PACK_CHUNK bytes is one chunk; a longer one is a table of chunks, all of
 * that size but the last, whose id is the SHA-256 of all its bytes.
 */
#ifndef MOE_STORE_PARTS_H
#define MOE_STORE_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/formats/dtype.h"
#include "common/store/pack.h"
#include "common/store/packs.h"
#include "common/store/snapshot.h"

#define MOE_PARTS_ENTRY 72      /* bytes of a part in a list */

struct moe_parts_one {
    uint64_t len;               /* > 0 */
    enum moe_dtype dtype;       /* of its elements, for the codec */
    struct moe_pack_ref ref;    /* a chunk or a table */
};

struct moe_parts { struct moe_parts_one *v; size_t n; };

/* Append a part to a list. */
void moe_parts_put(struct moe_buf *b, const struct moe_parts_one *p);

/* The id of a list: of lengths, types and ids, whatever pack they are in. */
int moe_parts_id(const void *list, size_t len, unsigned char id[static MOE_DIGEST_LEN],
    struct moe_err *e);

/*
 * The parts of f from a list of len bytes, whose id and sum of lengths must be
 * f's. out is to be ended in every case. Errors: MOE_EFORMAT, MOE_ENOMEM.
 */
int moe_parts_decode(const void *list, size_t len, const struct moe_snapshot_file *f,
    struct moe_parts *out, struct moe_err *e);

/* Read them from the packs. */
int moe_parts_read(struct moe_packs *packs, const struct moe_snapshot_file *f,
    struct moe_parts *out, struct moe_err *e);
void moe_parts_fini(struct moe_parts *p);

/* Chunks of a part of len bytes, and plain bytes of chunk k of it. */
uint64_t moe_parts_chunks(uint64_t len);
size_t moe_parts_chunk_len(uint64_t len, uint64_t k);

/* The chunks of a part, n of them: freed by the caller. Errors: MOE_EFORMAT, MOE_ENOMEM. */
int moe_parts_table(struct moe_packs *packs, const struct moe_parts_one *p,
    struct moe_pack_ref **out, size_t *n, struct moe_err *e);

#endif
