/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the order in which a pack is written, and the table of what it holds so
 * far.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/out.h"
#include "common/store/packw.h"
#include "kernels/kernels.h"

#define PIECE ((size_t)1024)    /* rows of the index written at a time */

struct moe_packw {
    struct moe_out *out;
    uint64_t number;
    struct moe_pack_record *r;  /* in order of the file */
    size_t n, cap;
    size_t *slot;               /* hash table of 1 + index into r, 0 = free */
    size_t slots;               /* a power of two, over twice n */
};

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

int
moe_packw_open(const char *path, uint64_t number, struct moe_packw **out, struct moe_err *e)
{
    unsigned char head[MOE_PACK_HEAD];
    struct moe_packw *w = calloc(1, sizeof(*w));
    int rc;

    *out = NULL;
    if (w == NULL)
        return no_memory(e);
    w->number = number;
    moe_pack_put_head(number, head);
    if ((rc = moe_out_open(path, false, 0, &w->out, e)) != 0 ||
        (rc = moe_out_write(w->out, head, sizeof(head), e)) != 0) {
        moe_packw_abort(w);
        return rc;
    }
    *out = w;
    return 0;
}

/* The slot of an id, or the free one where it would be. */
static size_t *
slot_of(const struct moe_packw *w, const unsigned char id[MOE_DIGEST_LEN], int type)
{
    size_t at;

    memcpy(&at, id, sizeof(at));
    for (;; at++) {
        size_t *s = &w->slot[at & (w->slots - 1)];

        if (*s == 0 || (w->r[*s - 1].ref.type == type &&
                memcmp(w->r[*s - 1].ref.id, id, MOE_DIGEST_LEN) == 0))
            return s;
    }
}

/* Room for one record more. */
static int
grow(struct moe_packw *w, struct moe_err *e)
{
    size_t cap = w->cap > 0 ? 2 * w->cap : 256;
    struct moe_pack_record *r;

    if (w->n < w->cap)
        return 0;
    if ((r = reallocarray(w->r, cap, sizeof(*r))) == NULL)
        return no_memory(e);
    w->r = r;
    free(w->slot);
    if ((w->slot = calloc(4 * cap, sizeof(*w->slot))) == NULL)
        return no_memory(e);
    w->slots = 4 * cap;
    w->cap = cap;
    for (size_t i = 0; i < w->n; i++)
        *slot_of(w, r[i].ref.id, r[i].ref.type) = i + 1;
    return 0;
}

int
moe_packw_add(struct moe_packw *w, struct moe_pack_record *r, const void *body,
    struct moe_err *e)
{
    unsigned char head[MOE_PACK_RECORD];
    int rc;

    if ((rc = grow(w, e)) != 0)
        return rc;
    r->ref.pack = w->number;
    r->ref.at = moe_out_pos(w->out);
    moe_pack_put_record(r, moe_kernels()->crc32c(0, body, r->ref.stored), head);
    if ((rc = moe_out_write(w->out, head, sizeof(head), e)) != 0 ||
        (rc = moe_out_write(w->out, body, r->ref.stored, e)) != 0)
        return rc;
    w->r[w->n++] = *r;
    *slot_of(w, r->ref.id, r->ref.type) = w->n;
    return 0;
}

bool
moe_packw_find(const struct moe_packw *w, const unsigned char id[MOE_DIGEST_LEN], int type,
    struct moe_pack_record *out)
{
    size_t *s = w->slots > 0 ? slot_of(w, id, type) : NULL;

    if (s == NULL || *s == 0)
        return false;
    *out = w->r[*s - 1];
    return true;
}

size_t
moe_packw_n(const struct moe_packw *w)
{
    return w->n;
}

uint64_t
moe_packw_bytes(const struct moe_packw *w)
{
    return moe_out_pos(w->out);
}

bool
moe_packw_full(const struct moe_packw *w)
{
    return w->n >= MOE_PACKW_FULL_RECORDS || moe_out_pos(w->out) >= MOE_PACKW_FULL_BYTES;
}

static int
by_id(const void *a, const void *b)
{
    return moe_pack_compare(&((const struct moe_pack_record *)a)->ref,
        &((const struct moe_pack_record *)b)->ref);
}

/* Index and foot. The records are put in order of their ids. */
static int
finish(struct moe_packw *w, struct moe_err *e)
{
    unsigned char foot[MOE_PACK_FOOT], sum[MOE_DIGEST_LEN], *piece;
    struct moe_digest d = MOE_DIGEST_INIT;
    uint64_t at = moe_out_pos(w->out);
    size_t n;
    int rc;

    if ((piece = malloc(PIECE * MOE_PACK_ENTRY)) == NULL)
        return no_memory(e);
    if (w->n > 0)
        qsort(w->r, w->n, sizeof(*w->r), by_id);
    rc = moe_digest_begin(&d, e);
    for (size_t i = 0; rc == 0 && i < w->n; i += n) {
        n = w->n - i < PIECE ? w->n - i : PIECE;
        for (size_t k = 0; k < n; k++)
            moe_pack_put_entry(&w->r[i + k].ref, piece + k * MOE_PACK_ENTRY);
        moe_digest_add(&d, piece, n * MOE_PACK_ENTRY);
        rc = moe_out_write(w->out, piece, n * MOE_PACK_ENTRY, e);
    }
    if (rc == 0 && (rc = moe_digest_end(&d, sum, e)) == 0) {
        moe_pack_put_foot(at, w->n, sum, foot);
        rc = moe_out_write(w->out, foot, sizeof(foot), e);
    }
    moe_digest_fini(&d);
    free(piece);
    return rc;
}

int
moe_packw_commit(struct moe_packw *w, struct moe_err *e)
{
    int rc = finish(w, e);

    if (rc == 0) {
        rc = moe_out_commit(w->out, e);
        w->out = NULL;
    }
    moe_packw_abort(w);
    return rc;
}

void
moe_packw_abort(struct moe_packw *w)
{
    if (w == NULL)
        return;
    moe_out_abort(w->out);
    free(w->r);
    free(w->slot);
    free(w);
}
