/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the way of bytes into packs: which chunks are new, in which order the
 * records are written, and that the result does not depend on the threads. How
 * packs begin and end is saver_pack.h's.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/stop.h"
#include "common/store/chunk.h"
#include "common/store/codec.h"
#include "common/store/saver.h"
#include "common/store/saver_pack.h"

#define SLOTS 32

/* A chunk of a batch. */
struct slot {
    unsigned char *p, *body;        /* plain bytes; encoded ones */
    size_t len;
    enum moe_dtype dtype;
    struct moe_pack_ref base;       /* type 0: none */
    size_t base_len;
    struct moe_pack_record r;       /* what it becomes */
    bool known;                     /* r.ref is in the store, or will be when its turn comes */
    int rc;
    struct moe_err why;
};

/* Chunks of one part within a batch. */
struct run {
    size_t first, n;
    bool starts, ends;              /* with the part */
    bool same;                      /* all of it is the base, which was one table */
    struct moe_pack_ref base;       /* that table */
    uint64_t len;                   /* of the part, when it ends */
    enum moe_dtype dtype;
    int rc;
    unsigned char sum[MOE_DIGEST_LEN];
};

struct moe_saver {
    struct moe_store *store;
    struct moe_pool *pool;
    bool delta;
    struct moe_saver_packs packs;
    struct moe_chunk_room *room;    /* [workers] */
    unsigned char **plain;          /* [workers] a base */
    struct moe_saver_sums sums;
    struct moe_snapshot files;      /* only its list of files is used */

    /* The file that is given. */
    struct moe_snapshot_file file;
    char *name;
    struct moe_pack_ref old;        /* the parent's list, type 0: none */
    struct moe_buf list;            /* of its parts */
    bool in_file;

    /* The part that is given. */
    uint64_t len, given;
    enum moe_dtype dtype;
    bool in_part;
    struct moe_parts_one base;      /* len 0: none */
    struct moe_pack_ref *bases;     /* its chunks */
    size_t n_bases;
    struct moe_buf table;           /* of the part whose chunks are being written */

    /* The batch. */
    struct slot slot[SLOTS];
    struct run run[SLOTS];
    struct moe_digest d[SLOTS];     /* of the runs */
    size_t n, runs;
    size_t fill;                    /* bytes in slot n */
};

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

/* ---- Beginning and end ------------------------------------------------------------------ */

static int
make_room(struct moe_saver *s, struct moe_err *e)
{
    size_t workers = (size_t)moe_pool_size(s->pool);

    s->room = calloc(workers, sizeof(*s->room));
    s->plain = calloc(workers, sizeof(*s->plain));
    if (s->room == NULL || s->plain == NULL)
        return no_memory(e);
    for (size_t w = 0; w < workers; w++)
        if ((s->plain[w] = malloc(MOE_PACK_CHUNK)) == NULL)
            return no_memory(e);
    for (size_t i = 0; i < SLOTS; i++)
        if ((s->slot[i].p = malloc(MOE_PACK_CHUNK)) == NULL ||
            (s->slot[i].body = malloc(moe_codec_bound(MOE_PACK_CHUNK))) == NULL)
            return no_memory(e);
    return 0;
}

int
moe_saver_new(struct moe_store *store, struct moe_pool *pool, bool delta,
    struct moe_saver **out, struct moe_err *e)
{
    struct moe_saver *s = calloc(1, sizeof(*s));
    int rc;

    *out = NULL;
    if (s == NULL)
        return no_memory(e);
    s->store = store;
    s->pool = pool;
    s->delta = delta;
    s->files = (struct moe_snapshot)MOE_SNAPSHOT_INIT;
    if ((rc = moe_saver_pack_begin(&s->packs, store, e)) != 0 || (rc = make_room(s, e)) != 0) {
        moe_saver_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

void
moe_saver_free(struct moe_saver *s)
{
    if (s == NULL)
        return;
    moe_saver_pack_abort(&s->packs);
    for (int w = 0; w < moe_pool_size(s->pool); w++) {
        if (s->room != NULL)
            moe_chunk_room_fini(&s->room[w]);
        if (s->plain != NULL)
            free(s->plain[w]);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        free(s->slot[i].p);
        free(s->slot[i].body);
        moe_digest_fini(&s->d[i]);
    }
    free(s->room);
    free(s->plain);
    free(s->bases);
    free(s->name);
    moe_buf_fini(&s->list);
    moe_buf_fini(&s->table);
    moe_snapshot_fini(&s->files);
    free(s);
}

struct moe_saver_sums
moe_saver_sums(const struct moe_saver *s)
{
    return s->sums;
}

/* ---- One batch: what each chunk is --------------------------------------------------------- */

static void
digest_chunk(void *ctx, size_t i, int w)
{
    struct moe_saver *s = ctx;
    struct slot *x = &s->slot[i];

    (void)w;
    memset(&x->r, 0, sizeof(x->r));
    x->r.ref.type = MOE_PACK_IS_CHUNK;
    x->r.plain = (uint32_t)x->len;
    x->r.dtype = (uint8_t)x->dtype;
    x->rc = moe_digest_of(x->p, x->len, x->r.ref.id, &x->why);
}

/* Whether an earlier slot of the batch, which will be written, has the same bytes. */
static bool
twin(const struct moe_saver *s, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (!s->slot[k].known &&
            memcmp(s->slot[k].r.ref.id, s->slot[i].r.ref.id, MOE_DIGEST_LEN) == 0)
            return true;
    return false;
}

/* Find out which chunks the store has. */
static int
look_up(struct moe_saver *s, struct moe_err *e)
{
    for (size_t i = 0; i < s->n; i++) {
        struct slot *x = &s->slot[i];
        int rc = x->rc;

        x->known = false;
        if (rc != 0)
            return moe_err_set(e, rc, "%s", x->why.text);
        if (x->base.type != 0 && x->base_len == x->len &&
            memcmp(x->base.id, x->r.ref.id, MOE_DIGEST_LEN) == 0) {
            x->r.ref = x->base;
            x->known = true;
        } else if (twin(s, i)) {
            x->known = true;
            x->r.ref.pack = 0;      /* found in the pack when it has been written */
        } else {
            x->known = moe_saver_pack_find(&s->packs, &x->r);
        }
        s->sums.known += x->known;
    }
    /* A part that is its base through and through needs no digest of its own. */
    for (size_t k = 0; k < s->runs; k++) {
        struct run *r = &s->run[k];

        r->same = r->starts && r->ends && r->base.type == MOE_PACK_IS_TABLE;
        for (size_t i = r->first; r->same && i < r->first + r->n; i++)
            r->same = s->slot[i].base.type != 0 && s->slot[i].base_len == s->slot[i].len &&
                memcmp(s->slot[i].base.id, s->slot[i].r.ref.id, MOE_DIGEST_LEN) == 0;
    }
    return 0;
}

/* ---- One batch: the new ones ----------------------------------------------------------------- */

static void
encode_chunk(struct moe_saver *s, struct slot *x, int w)
{
    struct moe_pack_record base;
    bool with = s->delta && x->base.type != 0 && x->base_len == x->len;
    size_t len = 0;

    if (x->known)
        return;
    /* A base that cannot be read is no base; what is saved now stands alone then. */
    if (with)
        with = moe_chunk_read(s->store->packs, &x->base, x->len, s->plain[w], &base, &s->room[w],
            &x->why) == 0 && base.depth < MOE_PACK_DEPTH && base.dtype == x->dtype;
    if (moe_chunk_codec(&s->room[w]) == NULL) {
        x->rc = no_memory(&x->why);
        return;
    }
    moe_codec_encode(s->room[w].codec, x->dtype, x->p, x->len, with ? s->plain[w] : NULL, x->body,
        &len, &x->r.kind);
    x->r.ref.stored = (uint32_t)len;
    if (with && moe_codec_is_delta(x->r.kind)) {
        x->r.base = base.ref;
        x->r.depth = base.depth + 1;
    }
}

static void
digest_run(struct moe_saver *s, struct run *r, struct moe_digest *d)
{
    r->rc = 0;
    if (r->same || (r->starts && r->ends && r->n == 1))
        return;
    for (size_t i = r->first; i < r->first + r->n; i++)
        moe_digest_add(d, s->slot[i].p, s->slot[i].len);
    if (r->ends)
        r->rc = moe_digest_end(d, r->sum, NULL);
}

/* Digests of long parts first: they take longest. */
static void
work(void *ctx, size_t i, int w)
{
    struct moe_saver *s = ctx;

    if (i < s->runs)
        digest_run(s, &s->run[i], &s->d[i]);
    else
        encode_chunk(s, &s->slot[i - s->runs], w);
}

/* ---- One batch: writing ---------------------------------------------------------------------- */

/* A list as a record, unless the store has it. */
static int
put_list(struct moe_saver *s, struct moe_pack_record *r, const struct moe_buf *b,
    struct moe_err *e)
{
    if (b->bad)
        return no_memory(e);
    if (b->len > MOE_PACK_LIST)
        return moe_err_set(e, MOE_ELIMIT, "%s: longer than a store can hold", s->name);
    r->plain = r->ref.stored = (uint32_t)b->len;
    return moe_saver_pack_find(&s->packs, r) ? 0 : moe_saver_pack_add(&s->packs, r, b->p, e);
}

/* The chunks of a part are written: it becomes an entry of the list. */
static int
end_part(struct moe_saver *s, const struct run *r, const struct moe_pack_ref *last,
    struct moe_err *e)
{
    struct moe_parts_one p = { r->len, r->dtype, *last };
    struct moe_pack_record t;
    int rc;

    if (r->len > MOE_PACK_CHUNK) {
        memset(&t, 0, sizeof(t));
        t.ref.type = MOE_PACK_IS_TABLE;
        memcpy(t.ref.id, r->same ? r->base.id : r->sum, MOE_DIGEST_LEN);
        if (r->same)
            t.ref = r->base;
        else if ((rc = put_list(s, &t, &s->table, e)) != 0)
            return rc;
        p.ref = t.ref;
    }
    moe_buf_clear(&s->table);
    moe_parts_put(&s->list, &p);
    return s->list.bad ? no_memory(e) : 0;
}

static int
write_batch(struct moe_saver *s, struct moe_err *e)
{
    unsigned char ref[MOE_PACK_REF];
    int rc;

    for (size_t k = 0; k < s->runs; k++) {
        const struct run *r = &s->run[k];
        struct slot *x = NULL;

        for (size_t i = r->first; i < r->first + r->n; i++) {
            x = &s->slot[i];
            if (!x->known) {
                if (x->rc != 0)
                    return moe_err_set(e, x->rc, "%s", x->why.text);
                s->sums.deltas += x->r.depth > 0;
                if ((rc = moe_saver_pack_add(&s->packs, &x->r, x->body, e)) != 0)
                    return rc;
            } else if (x->r.ref.pack == 0 && !moe_saver_pack_find(&s->packs, &x->r)) {
                return moe_err_set(e, MOE_EIO, "a chunk that was written is gone");
            }
            moe_pack_put_ref(&x->r.ref, ref);
            moe_buf_add(&s->table, ref, sizeof(ref));
        }
        if (r->rc != 0)
            return moe_err_set(e, r->rc, "a digest could not be computed");
        if (r->ends && x != NULL && (rc = end_part(s, r, &x->r.ref, e)) != 0)
            return rc;
    }
    return 0;
}

static int
flush(struct moe_saver *s, struct moe_err *e)
{
    bool open = s->runs > 0 && !s->run[s->runs - 1].ends;
    size_t last = s->runs - 1;
    int rc;

    if (s->n == 0)
        return 0;
    moe_pool_run(s->pool, s->n, digest_chunk, s);
    if ((rc = look_up(s, e)) != 0)
        return rc;
    moe_pool_run(s->pool, s->runs + s->n, work, s);
    if ((rc = write_batch(s, e)) != 0)
        return rc;
    s->sums.chunks += s->n;
    s->n = s->runs = 0;
    if (open) {
        /* The part goes on as the first run of the next batch. */
        struct moe_digest d = s->d[0];

        s->d[0] = s->d[last];
        s->d[last] = d;
        s->run[0] = (struct run){ .base = s->run[last].base, .dtype = s->run[last].dtype };
        s->runs = 1;
    }
    return moe_stop_check(e);
}

/* The slot that is being filled is full, or its part ends. */
static int
end_slot(struct moe_saver *s, bool ends, struct moe_err *e)
{
    struct slot *x = &s->slot[s->n];
    struct run *r = &s->run[s->runs - 1];
    size_t k = (size_t)((s->given - 1) / MOE_PACK_CHUNK);

    x->len = s->fill;
    x->dtype = s->dtype;
    memset(&x->base, 0, sizeof(x->base));
    x->base_len = 0;
    if (k < s->n_bases) {
        x->base = s->bases[k];
        x->base_len = moe_parts_chunk_len(s->base.len, k);
    }
    r->n++;
    r->ends = ends;
    r->len = s->given;
    s->n++;
    s->fill = 0;
    return s->n == SLOTS ? flush(s, e) : 0;
}

/* ---- What is given --------------------------------------------------------------------------- */

int
moe_saver_file(struct moe_saver *s, const char *name, enum moe_snapshot_form form,
    const struct moe_snapshot_file *old, struct moe_err *e)
{
    if (!moe_snapshot_name_ok(name))
        return moe_err_set(e, MOE_EUNSUP, "%s: files lie in a directory or one below it, and are "
            "not hidden", name);
    if (s->files.n > 0 && strcmp(s->files.files[s->files.n - 1].name, name) >= 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: is there twice", name);
    free(s->name);
    if ((s->name = strdup(name)) == NULL)
        return no_memory(e);
    memset(&s->file, 0, sizeof(s->file));
    s->file.form = form;
    memset(&s->old, 0, sizeof(s->old));
    if (old != NULL)
        s->old = old->list;
    moe_buf_clear(&s->list);
    moe_buf_clear(&s->table);
    s->in_file = true;
    s->in_part = false;
    return 0;
}

int
moe_saver_part(struct moe_saver *s, enum moe_dtype dtype, uint64_t len,
    const struct moe_parts_one *base, struct moe_err *e)
{
    struct run *r;
    int rc;

    if (!s->in_file || s->in_part || len == 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: a part before the last one has ended", s->name);
    s->len = len;
    s->given = 0;
    s->dtype = dtype;
    free(s->bases);
    s->bases = NULL;
    s->n_bases = 0;
    s->base = base != NULL ? *base : (struct moe_parts_one){ 0 };
    /* A table that cannot be read is no base. */
    if (base != NULL)
        (void)moe_parts_table(s->store->packs, base, &s->bases, &s->n_bases, NULL);
    if (s->runs == SLOTS && (rc = flush(s, e)) != 0)
        return rc;
    r = &s->run[s->runs];
    *r = (struct run){ .first = s->n, .starts = true, .dtype = dtype };
    if (base != NULL && s->n_bases > 0 && base->len == len)
        r->base = base->ref;
    s->in_part = true;
    return moe_digest_begin(&s->d[s->runs++], e);
}

int
moe_saver_add(struct moe_saver *s, const void *p, size_t n, struct moe_err *e)
{
    const unsigned char *from = p;
    int rc;

    if (n > 0 && (!s->in_part || n > s->len - s->given))
        return moe_err_set(e, MOE_EFORMAT, "%s: more bytes than its part has", s->name);
    while (n > 0) {
        size_t k = MOE_PACK_CHUNK - s->fill;
        bool ends;

        k = k < n ? k : n;
        memcpy(s->slot[s->n].p + s->fill, from, k);
        s->fill += k;
        s->given += k;
        s->sums.plain += k;
        s->file.size += k;
        from += k;
        n -= k;
        ends = s->given == s->len;
        if ((s->fill == MOE_PACK_CHUNK && s->len != MOE_SAVER_REST) || ends) {
            if ((rc = end_slot(s, ends, e)) != 0)
                return rc;
        } else if (s->fill == MOE_PACK_CHUNK && n > 0 && (rc = end_slot(s, false, e)) != 0) {
            return rc;
        }
        s->in_part = !ends;
    }
    return 0;
}

int
moe_saver_file_end(struct moe_saver *s, struct moe_err *e)
{
    struct moe_pack_record r;
    int rc;

    if (s->in_part && s->len != MOE_SAVER_REST)
        return moe_err_set(e, MOE_EFORMAT, "%s: ends after %llu of %llu bytes of a part", s->name,
            (unsigned long long)s->given, (unsigned long long)s->len);
    if (s->in_part && s->given == 0)
        s->runs--;              /* an empty file has no parts */
    else if (s->in_part && (rc = end_slot(s, true, e)) != 0)
        return rc;
    s->in_part = s->in_file = false;
    if ((rc = flush(s, e)) != 0)
        return rc;
    memset(&r, 0, sizeof(r));
    r.ref.type = MOE_PACK_IS_FILE;
    s->file.name = s->name;
    for (size_t at = 0; at < s->list.len; at += MOE_PARTS_ENTRY)
        s->file.parts++;
    if (s->list.len > 0) {
        if ((rc = moe_parts_id(s->list.p, s->list.len, r.ref.id, e)) != 0)
            return rc;
        if (s->old.type == MOE_PACK_IS_FILE &&
            memcmp(s->old.id, r.ref.id, MOE_DIGEST_LEN) == 0)
            r.ref = s->old;
        else if ((rc = put_list(s, &r, &s->list, e)) != 0)
            return rc;
        s->file.list = r.ref;
    }
    return moe_snapshot_add(&s->files, &s->file, e);
}

int
moe_saver_commit(struct moe_saver *s, struct moe_snapshot *snap, struct moe_err *e)
{
    int rc;

    for (size_t i = 0; i < s->files.n; i++)
        if ((rc = moe_snapshot_add(snap, &s->files.files[i], e)) != 0)
            return rc;
    if ((rc = moe_saver_pack_end(&s->packs, e)) != 0)
        return rc;
    s->sums.written = s->packs.bytes;
    rc = moe_store_commit(s->store, snap, e);
    if (rc == 0 || moe_store_has(s->store, snap->id))
        moe_saver_pack_keep(&s->packs);
    return rc;
}
