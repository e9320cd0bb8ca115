/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the order of a check and the words for what it finds: packs first, byte
 * by byte, then from the refs and the saves down to each tensor.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/stop.h"
#include "common/store/chunk.h"
#include "common/store/fsck.h"
#include "common/store/loader.h"
#include "common/store/marks.h"
#include "common/store/walk.h"

struct fsck {
    struct moe_fsck *f;
    struct moe_loader *loader;
    struct moe_marks bad;       /* records whose bytes are damaged */
    struct moe_marks seen;      /* lists and parts that have been looked at */
    struct moe_chunk_room room;
    unsigned char *chunk;
};

__attribute__((format(printf, 2, 3))) static void
tell(struct fsck *g, const char *fmt, ...)
{
    struct moe_err e;
    char text[MOE_ERR_TEXT];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    g->f->bad++;
    (void)moe_err_set(&e, MOE_EFORMAT, "%s", text);     /* makes hostile names harmless */
    g->f->told(g->f->ctx, e.text);
}

/* ---- Packs ---------------------------------------------------------------------------------- */

struct in_pack { struct fsck *g; uint64_t number; };

static int
check_record(void *ctx, const struct moe_walk_place *at, struct moe_err *e)
{
    struct in_pack *in = ctx;
    struct fsck *g = in->g;
    bool fresh;
    int rc = 0;

    if (at->rc == MOE_ENOMEM || at->rc == MOE_ESTOP)
        return at->rc;
    g->f->records += at->r != NULL;
    if (at->rc != 0) {
        if (at->r != NULL || strncmp(e->text, "packs/", 6) == 0)
            tell(g, "%s", e->text);
        else
            tell(g, "pack %" PRIu64 ": byte %" PRIu64 ": %s", in->number, at->at, e->text);
        rc = at->at == 0 ? 0 : moe_marks_add(&g->bad, in->number, at->at, &fresh, e);
    } else if (at->r != NULL) {
        g->f->bytes += MOE_PACK_RECORD + at->r->ref.stored;
        if (g->f->progress != NULL)
            moe_progress_add(g->f->progress, MOE_PACK_RECORD + at->r->ref.stored);
    }
    return rc != 0 ? rc : moe_stop_check(e);
}

static int
check_packs(struct fsck *g, struct moe_err *e)
{
    const struct moe_store *s = g->f->store;
    struct moe_names names;
    int rc = moe_names_list(s->dirfd, s->path, "packs", ".pack", &names, e);

    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        struct in_pack in = { g, names.v[i] };

        g->f->packs++;
        rc = moe_walk_pack(s->dirfd, s->path, names.v[i], true, check_record, &in, e);
    }
    moe_names_fini(&names);
    return rc;
}

/* ---- One part ------------------------------------------------------------------------------- */

/* Where a part is: for the words. */
struct place {
    const struct moe_snapshot *snap;
    const struct moe_snapshot_file *file;
    const struct moe_loader_box *box;   /* NULL: the parts are not known as tensors */
    size_t part;
};

static void
tell_part(struct fsck *g, const struct place *at, uint64_t offset, const char *what)
{
    const struct moe_tensor *t = at->box != NULL && at->part < at->box->layout.n
        ? at->box->layout.v[at->part].t : NULL;

    if (t != NULL)
        tell(g, "save %" PRIu64 ": %s: %s: byte %" PRIu64 ": %s", at->snap->id, at->file->name,
            t->name, offset, what);
    else if (at->part == 0)
        tell(g, "save %" PRIu64 ": %s: byte %" PRIu64 ": %s", at->snap->id, at->file->name,
            offset, what);
    else
        tell(g, "save %" PRIu64 ": %s: part %zu: byte %" PRIu64 ": %s", at->snap->id,
            at->file->name, at->part, offset, what);
}

/* Heads of a chunk and its bases, none of which the packs' check found bad. */
static int
chunk_is_there(struct fsck *g, const struct moe_pack_ref *ref, size_t len, struct moe_err *e)
{
    struct moe_pack_ref next = *ref;
    struct moe_pack_record r;
    int rc, depth = MOE_PACK_DEPTH + 1;

    for (;;) {
        if ((rc = moe_packs_read(g->f->store->packs, &next, &r, NULL, e)) != 0)
            return rc;
        if (moe_marks_has(&g->bad, r.ref.pack, r.ref.at))
            return moe_err_set(e, MOE_EFORMAT, "pack %" PRIu64 " is damaged at byte %" PRIu64,
                r.ref.pack, r.ref.at);
        if (r.plain != len || r.depth >= depth)
            return moe_err_set(e, MOE_EFORMAT, "a chunk of another length, or an endless chain");
        if (r.depth == 0)
            return 0;
        depth = r.depth;
        next = r.base;
    }
}

/* Every chunk by itself, to name all that are bad. */
static int
check_chunks(struct fsck *g, const struct moe_parts_one *p, const struct place *at,
    struct moe_err *e)
{
    struct moe_pack_record r;
    struct moe_pack_ref *v;
    uint64_t before = g->f->bad;
    size_t n;
    int rc;

    if ((rc = moe_parts_table(g->f->store->packs, p, &v, &n, e)) != 0) {
        if (rc == MOE_ENOMEM)
            return rc;
        tell_part(g, at, 0, e->text);
        return 0;
    }
    for (size_t k = 0; rc == 0 && k < n; k++) {
        size_t len = moe_parts_chunk_len(p->len, k);

        rc = g->f->fast ? chunk_is_there(g, &v[k], len, e)
                        : moe_chunk_read(g->f->store->packs, &v[k], len, g->chunk, &r, &g->room, e);
        if (rc != 0 && rc != MOE_ENOMEM) {
            tell_part(g, at, (uint64_t)k * MOE_PACK_CHUNK, e->text);
            rc = 0;
        }
        if (rc == 0)
            rc = moe_stop_check(e);
    }
    free(v);
    if (rc == 0 && !g->f->fast && g->f->bad == before)
        tell_part(g, at, 0, "its chunks are not those that were saved");
    return rc;
}

static int
count(void *ctx, const void *p, size_t n, struct moe_err *e)
{
    struct fsck *g = ctx;

    (void)p;
    (void)e;
    if (g->f->progress != NULL)
        moe_progress_add(g->f->progress, n);
    return 0;
}

static int
check_part(struct fsck *g, const struct moe_parts_one *p, const struct place *at,
    struct moe_err *e)
{
    struct moe_pack_record r;
    bool fresh = true;
    int rc;

    /* A part that an earlier save has as well has been looked at. */
    if (moe_packs_read(g->f->store->packs, &p->ref, &r, NULL, e) == 0 &&
        !moe_marks_has(&g->bad, r.ref.pack, r.ref.at)) {
        if ((rc = moe_marks_add(&g->seen, r.ref.pack, r.ref.at, &fresh, e)) != 0)
            return rc;
        if (!fresh)
            return 0;
    }
    g->f->parts++;
    if (!g->f->fast) {
        rc = moe_loader_run(g->loader, p, 1, count, g, e);
        if (rc == 0 || rc == MOE_ESTOP || rc == MOE_ENOMEM)
            return rc;
    }
    return check_chunks(g, p, at, e);
}

/* ---- Saves ---------------------------------------------------------------------------------- */

static int
check_file(struct fsck *g, const struct moe_snapshot *snap, const struct moe_snapshot_file *f,
    struct moe_err *e)
{
    struct moe_loader_box box = { 0 };
    struct moe_parts plain = { 0 };
    struct place at = { snap, f, NULL, 0 };
    struct moe_pack_record r;
    const struct moe_parts *p = &plain;
    bool fresh = true;
    int rc;

    g->f->files++;
    if (f->size == 0)
        return 0;
    /* A list that an earlier save has, too, leads to nothing new. */
    if (moe_packs_read(g->f->store->packs, &f->list, &r, NULL, e) == 0 &&
        !moe_marks_has(&g->bad, r.ref.pack, r.ref.at) &&
        (rc = moe_marks_add(&g->seen, r.ref.pack, r.ref.at, &fresh, e)) != 0)
        return rc;
    if (!fresh)
        return 0;
    rc = f->form == MOE_SNAPSHOT_SAFET ? moe_loader_box(g->loader, f, &box, e) : MOE_EUNSUP;
    if (rc == 0) {
        at.box = &box;
        p = &box.parts;
    } else if (rc != MOE_EUNSUP && rc != MOE_ENOMEM && rc != MOE_ESTOP) {
        tell(g, "save %" PRIu64 ": %s", snap->id, e->text);
    }
    if (rc != 0 && rc != MOE_ENOMEM && rc != MOE_ESTOP &&
        (rc = moe_parts_read(g->f->store->packs, f, &plain, e)) != 0 && rc != MOE_ENOMEM) {
        tell(g, "save %" PRIu64 ": %s", snap->id, e->text);
        plain.n = 0;
        rc = 0;
    }
    for (; rc == 0 && at.part < p->n; at.part++)
        rc = check_part(g, &p->v[at.part], &at, e);
    moe_loader_box_fini(&box);
    moe_parts_fini(&plain);
    return rc;
}

static int
check_saves(struct fsck *g, struct moe_err *e)
{
    struct moe_names ids;
    int rc = moe_store_ids(g->f->store, &ids, e);

    for (size_t i = 0; rc == 0 && i < ids.n; i++) {
        struct moe_snapshot snap;

        g->f->saves++;
        if ((rc = moe_store_read(g->f->store, ids.v[i], &snap, e)) != 0 && rc != MOE_ENOMEM &&
            rc != MOE_ESTOP) {
            tell(g, "save %" PRIu64 ": %s", ids.v[i], e->text);
            rc = 0;
            snap.n = 0;
        }
        for (size_t k = 0; rc == 0 && k < snap.n; k++)
            rc = check_file(g, &snap, &snap.files[k], e);
        moe_snapshot_fini(&snap);
    }
    moe_names_fini(&ids);
    return rc;
}

/* Every ref leads to the save it was made for. */
static int
check_refs(struct fsck *g, struct moe_err *e)
{
    const struct moe_store *s = g->f->store;
    struct moe_ref_list refs;
    int rc = moe_ref_list(s->dirfd, s->path, &refs, e);

    for (size_t i = 0; rc == 0 && i < refs.n; i++) {
        struct moe_snapshot snap;

        rc = moe_store_find(s, refs.name[i], &snap, e);
        moe_snapshot_fini(&snap);
        if (rc != 0 && rc != MOE_ENOMEM && rc != MOE_ESTOP) {
            tell(g, "ref %s: %s", refs.name[i], e->text);
            rc = 0;
        }
    }
    moe_ref_list_fini(&refs);
    return rc;
}

int
moe_fsck_run(struct moe_fsck *f, struct moe_err *e)
{
    struct fsck g = { .f = f, .bad = MOE_MARKS_INIT, .seen = MOE_MARKS_INIT,
        .room = MOE_CHUNK_ROOM_INIT };
    int rc;

    if ((g.chunk = malloc(MOE_PACK_CHUNK)) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    if ((rc = moe_loader_new(f->store->packs, f->pool, &g.loader, e)) == 0 &&
        (rc = check_packs(&g, e)) == 0 && (rc = check_refs(&g, e)) == 0)
        rc = check_saves(&g, e);
    moe_loader_free(g.loader);
    moe_marks_fini(&g.bad);
    moe_marks_fini(&g.seen);
    moe_chunk_room_fini(&g.room);
    free(g.chunk);
    return rc;
}
