/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns how a chain of deltas becomes the bytes of a chunk.
 */
#include <string.h>

#include "common/store/chunk.h"
#include "common/store/codec.h"

void
moe_chunk_room_fini(struct moe_chunk_room *m)
{
    moe_buf_fini(&m->body);
    moe_buf_fini(&m->plain[0]);
    moe_buf_fini(&m->plain[1]);
    moe_codec_free(m->codec);
    m->codec = NULL;
}

struct moe_codec *
moe_chunk_codec(struct moe_chunk_room *m)
{
    if (m->codec == NULL)
        (void)moe_codec_new(&m->codec, NULL);
    return m->codec;
}

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

/*
 * The heads of the chain that begins at ref, the chunk's own first. The depth
 * of each is below that of the one before, so that no chain is endless.
 */
static int
chain(struct moe_packs *packs, const struct moe_pack_ref *ref, size_t len,
    struct moe_pack_record v[MOE_PACK_DEPTH + 1], int *n, struct moe_buf *body,
    struct moe_err *e)
{
    const struct moe_pack_ref *next = ref;
    int rc;

    for (*n = 0; *n <= MOE_PACK_DEPTH; next = &v[(*n)++].base) {
        if (*n > 0 && v[*n - 1].depth == 0)
            return 0;
        /* The last body is wanted first; the others are read when their turn comes. */
        moe_buf_clear(body);
        if ((rc = moe_packs_read(packs, next, &v[*n], body, e)) != 0)
            return rc;
        if (v[*n].plain != len)
            return moe_err_set(e, MOE_EFORMAT, "a chunk has another length");
        if (*n > 0 && v[*n].depth >= v[*n - 1].depth)
            return moe_err_set(e, MOE_EFORMAT, "a chain of deltas without an end");
    }
    return 0;
}

int
moe_chunk_read(struct moe_packs *packs, const struct moe_pack_ref *ref, size_t len, void *out,
    struct moe_pack_record *r, struct moe_chunk_room *m, struct moe_err *e)
{
    struct moe_pack_record v[MOE_PACK_DEPTH + 1];
    unsigned char id[MOE_DIGEST_LEN];
    const char *base = NULL;
    int n, rc;

    if (moe_chunk_codec(m) == NULL)
        return no_memory(e);
    if ((rc = chain(packs, ref, len, v, &n, &m->body, e)) != 0)
        return rc;
    *r = v[0];
    for (int i = n; rc == 0 && i-- > 0;) {
        char *to = out;

        if (i < n - 1) {
            struct moe_pack_record again;

            moe_buf_clear(&m->body);
            if ((rc = moe_packs_read(packs, &v[i].ref, &again, &m->body, e)) != 0)
                return rc;
        }
        if (i > 0) {
            moe_buf_clear(&m->plain[i & 1]);
            if ((to = moe_buf_room(&m->plain[i & 1], len)) == NULL)
                return no_memory(e);
        }
        rc = moe_codec_decode(m->codec, v[i].kind, v[i].dtype, m->body.p, m->body.len, base, to,
            len, e);
        base = to;
    }
    if (rc != 0 || (rc = moe_digest_of(out, len, id, e)) != 0)
        return rc;
    if (memcmp(id, ref->id, MOE_DIGEST_LEN) != 0)
        return moe_err_set(e, MOE_EFORMAT, "a chunk decodes to other bytes than were saved");
    return 0;
}
