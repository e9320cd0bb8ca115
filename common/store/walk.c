/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns going through a pack from its first record to its index.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/beneath.h"
#include "common/base/read.h"
#include "common/store/walk.h"

struct walk {
    struct moe_pack pack;
    int fd;
    int bad;                    /* heads that were */
    char name[64];
    bool bodies;
    moe_walk_fn *fn;
    void *ctx;
    struct moe_buf b;
};

static int
visit(const struct walk *w, uint64_t at, int rc, const struct moe_pack_record *r,
    struct moe_err *e)
{
    struct moe_walk_place place = { at, rc, r };

    return w->fn(w->ctx, &place, e);
}

/* One record; *next is where the one behind it begins. */
static int
one(struct walk *w, uint64_t at, uint64_t *next, struct moe_err *e)
{
    unsigned char head[MOE_PACK_RECORD];
    struct moe_pack_record r, again;
    uint32_t sum;
    int rc;

    *next = 0;
    if (w->pack.index_at - at < MOE_PACK_RECORD)
        rc = moe_err_set(e, MOE_EFORMAT, "bytes that are no record");
    else if ((rc = moe_read_at(w->fd, w->name, head, sizeof(head), at, e)) == 0)
        rc = moe_pack_get_record(head, &r, &sum, e);
    if (rc != 0) {
        *next = ++w->bad < MOE_WALK_BAD ? moe_pack_next(&w->pack, at) : w->pack.index_at;
        return visit(w, at, rc, NULL, e);
    }
    r.ref.pack = w->pack.number;
    r.ref.at = at;
    moe_buf_clear(&w->b);
    rc = moe_pack_read(&w->pack, w->fd, w->name, &r.ref, &again, w->bodies ? &w->b : NULL, e);
    *next = w->pack.index_at - at < MOE_PACK_RECORD + (uint64_t)r.ref.stored
        ? w->pack.index_at : at + MOE_PACK_RECORD + r.ref.stored;
    return visit(w, at, rc, &r, e);
}

static int
all(struct walk *w, struct moe_err *e)
{
    uint64_t at = MOE_PACK_HEAD, next, n = 0;
    int rc;

    /* Without an index the records can be gone through all the same. */
    if ((rc = moe_pack_load(&w->pack, w->fd, w->name, e)) != 0 &&
        (rc = visit(w, 0, rc, NULL, e)) != 0)
        return rc;
    for (; at < w->pack.index_at; at = next, n++)
        if ((rc = one(w, at, &next, e)) != 0)
            return rc;
    if (n == w->pack.n)
        return 0;
    return visit(w, 0, moe_err_set(e, MOE_EFORMAT, "%" PRIu64 " records, and an index of %" PRIu64,
        n, w->pack.n), NULL, e);
}

int
moe_walk_pack(int dirfd, const char *path, uint64_t number, bool bodies, moe_walk_fn *fn,
    void *ctx, struct moe_err *e)
{
    struct walk w = { .bodies = bodies, .fn = fn, .ctx = ctx, .b = MOE_BUF_INIT };
    int rc;

    (void)snprintf(w.name, sizeof(w.name), "packs/%" PRIu64 ".pack", number);
    if ((w.fd = moe_beneath_open(dirfd, path, w.name, e)) < 0)
        return visit(&w, 0, w.fd, NULL, e);
    if ((rc = moe_pack_open(&w.pack, w.fd, w.name, number, e)) != 0)
        rc = visit(&w, 0, rc, NULL, e);
    else
        rc = all(&w, e);
    moe_pack_fini(&w.pack);
    moe_buf_fini(&w.b);
    (void)close(w.fd);
    return rc;
}
