/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the way from references to bytes in order: which chunks are decoded at
 * the same time, and that what is handed on is what was saved.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/stop.h"
#include "common/store/chunk.h"
#include "common/store/loader.h"

#define SLOTS 32

struct slot {
    struct moe_pack_ref ref;
    unsigned char *p;
    size_t len, part;
    uint64_t at;            /* of its first byte in the part */
    int rc;
    struct moe_err why;
};

/* Chunks of one part within a batch, whose digest goes on. */
struct run {
    size_t first, n;
    bool ends;              /* with the part */
    int rc;
    unsigned char sum[MOE_DIGEST_LEN];
};

struct moe_loader {
    struct moe_packs *packs;
    struct moe_pool *pool;
    struct moe_chunk_room *room;    /* [workers] */
    struct slot slot[SLOTS];
    struct run run[SLOTS];
    struct moe_digest d[SLOTS];     /* of the runs; the first may go on from the last batch */
    size_t n, runs;
    /* What comes next. */
    const struct moe_parts_one *v;
    size_t parts, part, chunk;
    struct moe_pack_ref *table;     /* of the current part */
    size_t chunks;
    /* Where it failed. */
    size_t bad_part;
    uint64_t bad_at;
};

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

int
moe_loader_new(struct moe_packs *packs, struct moe_pool *pool, struct moe_loader **out,
    struct moe_err *e)
{
    struct moe_loader *l = calloc(1, sizeof(*l));

    *out = NULL;
    if (l == NULL)
        return no_memory(e);
    l->packs = packs;
    l->pool = pool;
    l->room = calloc((size_t)moe_pool_size(pool), sizeof(*l->room));
    for (size_t i = 0; l->room != NULL && i < SLOTS; i++)
        if ((l->slot[i].p = malloc(MOE_PACK_CHUNK)) == NULL) {
            moe_loader_free(l);
            return no_memory(e);
        }
    if (l->room == NULL) {
        free(l);
        return no_memory(e);
    }
    *out = l;
    return 0;
}

void
moe_loader_free(struct moe_loader *l)
{
    if (l == NULL)
        return;
    for (int w = 0; w < moe_pool_size(l->pool); w++)
        moe_chunk_room_fini(&l->room[w]);
    for (size_t i = 0; i < SLOTS; i++) {
        free(l->slot[i].p);
        moe_digest_fini(&l->d[i]);
    }
    free(l->room);
    free(l->table);
    free(l);
}

/* ---- One batch ---------------------------------------------------------------------------- */

static int
failed(struct moe_loader *l, size_t part, uint64_t at, int rc)
{
    l->bad_part = part;
    l->bad_at = at;
    return rc;
}

/* Add the next chunk of the current part to the batch. */
static void
take(struct moe_loader *l)
{
    struct slot *s = &l->slot[l->n];
    bool starts = l->chunk == 0;
    struct run *r;

    s->ref = l->table[l->chunk];
    s->part = l->part;
    s->at = (uint64_t)l->chunk * MOE_PACK_CHUNK;
    s->len = moe_parts_chunk_len(l->v[l->part].len, l->chunk);
    if (l->runs == 0 || starts) {
        r = &l->run[l->runs++];
        r->first = l->n;
        r->n = 0;
        r->ends = false;
    }
    r = &l->run[l->runs - 1];
    r->n++;
    l->n++;
    if (++l->chunk == l->chunks) {
        r->ends = true;
        free(l->table);
        l->table = NULL;
        l->part++;
    }
}

/* Fill a batch; l->n is 0 when nothing is left. */
static int
fill(struct moe_loader *l, struct moe_err *e)
{
    int rc;

    l->n = l->runs = 0;
    while (l->n < SLOTS && l->part < l->parts) {
        if (l->table == NULL) {
            l->chunk = 0;
            if ((rc = moe_parts_table(l->packs, &l->v[l->part], &l->table, &l->chunks, e)) != 0) {
                /* What comes before it is still handed on. */
                return failed(l, l->part, 0, rc);
            }
            if ((rc = moe_digest_begin(&l->d[l->runs], e)) != 0)
                return rc;
        }
        take(l);
    }
    return 0;
}

static void
decode(void *ctx, size_t i, int w)
{
    struct moe_loader *l = ctx;
    struct slot *s = &l->slot[i];
    struct moe_pack_record r;

    s->rc = moe_chunk_read(l->packs, &s->ref, s->len, s->p, &r, &l->room[w], &s->why);
}

/* The digest of a part longer than a chunk; a lone chunk's has been compared. */
static void
digest(void *ctx, size_t i, int w)
{
    struct moe_loader *l = ctx;
    struct run *r = &l->run[i];
    const struct slot *first = &l->slot[r->first];

    (void)w;
    r->rc = 0;
    if (l->v[first->part].ref.type != MOE_PACK_IS_TABLE)
        return;
    for (size_t k = r->first; k < r->first + r->n; k++)
        if (l->slot[k].rc == 0)
            moe_digest_add(&l->d[i], l->slot[k].p, l->slot[k].len);
    if (r->ends && moe_digest_end(&l->d[i], r->sum, NULL) != 0)
        r->rc = MOE_EIO;
}

/* Hand the batch on, as far as it is good. */
static int
deliver(struct moe_loader *l, moe_loader_fn *fn, void *ctx, struct moe_err *e)
{
    int rc;

    for (size_t i = 0; i < l->runs; i++) {
        const struct run *r = &l->run[i];
        const struct moe_parts_one *p = &l->v[l->slot[r->first].part];

        for (size_t k = r->first; k < r->first + r->n; k++) {
            const struct slot *s = &l->slot[k];

            if (s->rc != 0)
                return failed(l, s->part, s->at, moe_err_set(e, s->rc, "%s", s->why.text));
            if ((rc = moe_stop_check(e)) != 0 || (rc = fn(ctx, s->p, s->len, e)) != 0)
                return rc;
        }
        if (r->rc != 0)
            return moe_err_set(e, r->rc, "a digest could not be computed");
        if (r->ends && p->ref.type == MOE_PACK_IS_TABLE &&
            memcmp(r->sum, p->ref.id, MOE_DIGEST_LEN) != 0)
            return failed(l, l->slot[r->first].part, 0,
                moe_err_set(e, MOE_EFORMAT, "its chunks are not those that were saved"));
    }
    return 0;
}

int
moe_loader_run(struct moe_loader *l, const struct moe_parts_one *v, size_t n,
    moe_loader_fn *fn, void *ctx, struct moe_err *e)
{
    struct moe_err why = { 0 };
    int rc, later;

    l->v = v;
    l->parts = n;
    l->part = l->chunk = 0;
    l->bad_part = SIZE_MAX;
    free(l->table);
    l->table = NULL;
    do {
        later = fill(l, &why);
        moe_pool_run(l->pool, l->n, decode, l);
        moe_pool_run(l->pool, l->runs, digest, l);
        if ((rc = deliver(l, fn, ctx, e)) != 0)
            return rc;
        if (later != 0)
            return moe_err_set(e, later, "%s", why.text);
        if (l->runs > 1 && !l->run[l->runs - 1].ends) {
            /* The last part goes on as the first run of the next batch. */
            struct moe_digest d = l->d[0];

            l->d[0] = l->d[l->runs - 1];
            l->d[l->runs - 1] = d;
        }
    } while (l->n > 0);
    return 0;
}

void
moe_loader_where(const struct moe_loader *l, size_t *part, uint64_t *offset)
{
    *part = l->bad_part;
    *offset = l->bad_at;
}

/* ---- Small things whole --------------------------------------------------------------------- */

static int
keep(void *ctx, const void *p, size_t n, struct moe_err *e)
{
    struct moe_buf *b = ctx;

    moe_buf_add(b, p, n);
    return b->bad ? no_memory(e) : 0;
}

int
moe_loader_part(struct moe_loader *l, const struct moe_parts_one *p, size_t limit,
    struct moe_buf *b, struct moe_err *e)
{
    if (p->len > limit)
        return moe_err_set(e, MOE_ELIMIT, "longer than %zu bytes", limit);
    return moe_loader_run(l, p, 1, keep, b, e);
}

int
moe_loader_box(struct moe_loader *l, const struct moe_snapshot_file *f,
    struct moe_loader_box *out, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    const struct moe_parts *p = &out->parts;
    size_t n;
    int rc;

    memset(out, 0, sizeof(*out));
    if ((rc = moe_parts_read(l->packs, f, &out->parts, e)) != 0)
        return rc;
    if (f->form != MOE_SNAPSHOT_SAFET || p->n == 0 || p->v[0].len < 8)
        return moe_err_set(e, MOE_EFORMAT, "%s: is no safetensors file", f->name);
    if ((rc = moe_loader_part(l, &p->v[0], MOE_SAFET_MAX_HEADER + 8, &b, e)) != 0)
        (void)moe_err_at(e, "%s: header", f->name);
    else if ((rc = moe_safet_length((unsigned char *)b.p, f->name, &n, e)) == 0 &&
        n != b.len - 8)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: its first part is not its header", f->name);
    if (rc == 0)
        rc = moe_safet_parse(b.p + 8, b.len - 8, f->size - b.len, f->name, &out->h, e);
    if (rc == 0)
        rc = moe_layout_of(out->h, &out->layout, e);
    for (size_t i = 0; rc == 0 && i < out->layout.n; i++)
        if (out->layout.n != p->n || out->layout.v[i].len != p->v[i].len)
            rc = moe_err_set(e, MOE_EFORMAT, "%s: its parts are not its tensors", f->name);
    moe_buf_fini(&b);
    return rc;
}

void
moe_loader_box_fini(struct moe_loader_box *x)
{
    moe_layout_fini(&x->layout);
    moe_safet_free(x->h);
    moe_parts_fini(&x->parts);
    memset(x, 0, sizeof(*x));
}
