/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns lists of parts and tables of chunks. Reads no chunk.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/le.h"
#include "common/base/num.h"
#include "common/store/parts.h"

#define ID_PREFIX "moe-file"

/* 0 length, 8 type of elements, 12 zero, 16 reference. */
void
moe_parts_put(struct moe_buf *b, const struct moe_parts_one *p)
{
    unsigned char x[MOE_PARTS_ENTRY];

    moe_le_put64(x, p->len);
    moe_le_put32(x + 8, p->dtype);
    moe_le_put32(x + 12, 0);
    moe_pack_put_ref(&p->ref, x + 16);
    moe_buf_add(b, x, sizeof(x));
}

int
moe_parts_id(const void *list, size_t len, unsigned char id[static MOE_DIGEST_LEN],
    struct moe_err *e)
{
    struct moe_digest d = MOE_DIGEST_INIT;
    int rc = moe_digest_begin(&d, e);

    if (rc == 0) {
        moe_digest_add(&d, ID_PREFIX, 8);
        for (size_t at = 0; at + MOE_PARTS_ENTRY <= len; at += MOE_PARTS_ENTRY) {
            const unsigned char *x = (const unsigned char *)list + at;

            moe_digest_add(&d, x, 16 + MOE_DIGEST_LEN);
            moe_digest_add(&d, x + 16 + MOE_PACK_REF - 4, 4);
        }
        rc = moe_digest_end(&d, id, e);
    }
    moe_digest_fini(&d);
    return rc;
}

uint64_t
moe_parts_chunks(uint64_t len)
{
    return len / MOE_PACK_CHUNK + (len % MOE_PACK_CHUNK != 0);
}

size_t
moe_parts_chunk_len(uint64_t len, uint64_t k)
{
    uint64_t left = len - k * MOE_PACK_CHUNK;

    return left < MOE_PACK_CHUNK ? (size_t)left : MOE_PACK_CHUNK;
}

static int
take(const unsigned char *x, struct moe_parts_one *p)
{
    uint32_t dtype = moe_le_get32(x + 8);

    p->len = moe_le_get64(x);
    p->dtype = dtype;
    return p->len > 0 && dtype < MOE_DTYPE_N && moe_le_get32(x + 12) == 0 &&
            moe_pack_get_ref(x + 16, &p->ref) &&
            p->ref.type == (p->len <= MOE_PACK_CHUNK ? MOE_PACK_IS_CHUNK : MOE_PACK_IS_TABLE)
        ? 0 : MOE_EFORMAT;
}

int
moe_parts_decode(const void *list, size_t len, const struct moe_snapshot_file *f,
    struct moe_parts *out, struct moe_err *e)
{
    const unsigned char *x = list;
    unsigned char id[MOE_DIGEST_LEN];
    uint64_t sum = 0;
    int rc;

    memset(out, 0, sizeof(*out));
    if (len % MOE_PARTS_ENTRY != 0 || len / MOE_PARTS_ENTRY != f->parts)
        return moe_err_set(e, MOE_EFORMAT, "%s: the list of its parts has another length",
            f->name);
    if ((rc = moe_parts_id(list, len, id, e)) != 0)
        return rc;
    if (memcmp(id, f->list.id, MOE_DIGEST_LEN) != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: the list of its parts is damaged", f->name);
    if ((out->v = calloc(f->parts + 1, sizeof(*out->v))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", f->name);
    for (; out->n < f->parts; out->n++, x += MOE_PARTS_ENTRY)
        if (take(x, &out->v[out->n]) != 0 || !moe_num_add(sum, out->v[out->n].len, &sum))
            return moe_err_set(e, MOE_EFORMAT, "%s: a part out of its range", f->name);
    if (sum != f->size)
        return moe_err_set(e, MOE_EFORMAT, "%s: its parts do not add up to its size", f->name);
    return 0;
}

int
moe_parts_read(struct moe_packs *packs, const struct moe_snapshot_file *f,
    struct moe_parts *out, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_pack_record r;
    int rc;

    memset(out, 0, sizeof(*out));
    if (f->size == 0)
        return 0;
    if ((rc = moe_packs_read(packs, &f->list, &r, &b, e)) != 0)
        (void)moe_err_at(e, "%s", f->name);
    else
        rc = moe_parts_decode(b.p, b.len, f, out, e);
    moe_buf_fini(&b);
    return rc;
}

void
moe_parts_fini(struct moe_parts *p)
{
    free(p->v);
    memset(p, 0, sizeof(*p));
}

int
moe_parts_table(struct moe_packs *packs, const struct moe_parts_one *p,
    struct moe_pack_ref **out, size_t *n, struct moe_err *e)
{
    uint64_t chunks = moe_parts_chunks(p->len);
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_pack_record r;
    int rc = 0;

    *out = NULL;
    *n = 0;
    if (p->ref.type == MOE_PACK_IS_TABLE &&
        ((rc = moe_packs_read(packs, &p->ref, &r, &b, e)) != 0))
        goto out;
    if (p->ref.type == MOE_PACK_IS_TABLE &&
        (b.len % MOE_PACK_REF != 0 || b.len / MOE_PACK_REF != chunks)) {
        rc = moe_err_set(e, MOE_EFORMAT, "a table of chunks has another length");
        goto out;
    }
    if ((*out = calloc(chunks, sizeof(**out))) == NULL) {
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
        goto out;
    }
    if (p->ref.type == MOE_PACK_IS_CHUNK)
        (*out)[0] = p->ref;
    for (size_t i = 0; p->ref.type == MOE_PACK_IS_TABLE && rc == 0 && i < chunks; i++)
        if (!moe_pack_get_ref((unsigned char *)b.p + i * MOE_PACK_REF, &(*out)[i]) ||
            (*out)[i].type != MOE_PACK_IS_CHUNK)
            rc = moe_err_set(e, MOE_EFORMAT, "a table of chunks is damaged");
    *n = (size_t)chunks;
out:
    if (rc != 0) {
        free(*out);
        *out = NULL;
        *n = 0;
    }
    moe_buf_fini(&b);
    return rc;
}
