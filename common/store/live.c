/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from a save to all that it needs. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/stop.h"
#include "common/store/live.h"
#include "common/store/parts.h"

/* Mark what ref means and return its record; *fresh: it was not marked before. */
static int
mark(const struct moe_store *s, const struct moe_pack_ref *ref, struct moe_pack_record *r,
    struct moe_marks *m, bool *fresh, struct moe_err *e)
{
    int rc;

    /* Where ref says it was, another may be now: its head is read in every case. */
    *fresh = false;
    if ((rc = moe_packs_read(s->packs, ref, r, NULL, e)) != 0)
        return rc;
    return moe_marks_add(m, r->ref.pack, r->ref.at, fresh, e);
}

/* A chunk and its bases. Depths fall, so that this ends. */
static int
mark_chunk(const struct moe_store *s, const struct moe_pack_ref *ref, struct moe_marks *m,
    struct moe_err *e)
{
    struct moe_pack_record r = { 0 };
    struct moe_pack_ref next = *ref;
    int rc, depth = MOE_PACK_DEPTH + 1;
    bool fresh = true;

    while (fresh) {
        if ((rc = mark(s, &next, &r, m, &fresh, e)) != 0)
            return rc;
        if (!fresh || r.depth == 0)
            return 0;
        if (r.depth >= depth)
            return moe_err_set(e, MOE_EFORMAT, "a chain of deltas without an end");
        depth = r.depth;
        next = r.base;
    }
    return 0;
}

static int
mark_part(const struct moe_store *s, const struct moe_parts_one *p, struct moe_marks *m,
    struct moe_err *e)
{
    struct moe_pack_ref *v;
    struct moe_pack_record r;
    bool fresh;
    size_t n;
    int rc;

    if (p->ref.type == MOE_PACK_IS_CHUNK)
        return mark_chunk(s, &p->ref, m, e);
    if ((rc = mark(s, &p->ref, &r, m, &fresh, e)) != 0 || !fresh)
        return rc;
    rc = moe_parts_table(s->packs, p, &v, &n, e);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = mark_chunk(s, &v[i], m, e);
    free(v);
    return rc;
}

int
moe_live_save(const struct moe_store *s, const struct moe_snapshot *snap,
    struct moe_marks *m, struct moe_err *e)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < snap->n; i++) {
        const struct moe_snapshot_file *f = &snap->files[i];
        struct moe_parts parts = { 0 };
        struct moe_pack_record r;
        bool fresh;

        if (f->size == 0)
            continue;
        if ((rc = moe_stop_check(e)) != 0 || (rc = mark(s, &f->list, &r, m, &fresh, e)) != 0)
            break;
        if (fresh && (rc = moe_parts_read(s->packs, f, &parts, e)) == 0)
            for (size_t k = 0; rc == 0 && k < parts.n; k++)
                rc = mark_part(s, &parts.v[k], m, e);
        moe_parts_fini(&parts);
        if (rc != 0)
            (void)moe_err_at(e, "%s", f->name);
    }
    return rc == 0 || rc == MOE_ESTOP ? rc : moe_err_at(e, "save %" PRIu64, snap->id);
}

int
moe_live_all(const struct moe_store *s, struct moe_marks *m, struct moe_err *e)
{
    struct moe_names ids;
    int rc = moe_store_ids(s, &ids, e);

    for (size_t i = 0; rc == 0 && i < ids.n; i++) {
        struct moe_snapshot snap;

        if ((rc = moe_store_read(s, ids.v[i], &snap, e)) == 0)
            rc = moe_live_save(s, &snap, m, e);
        moe_snapshot_fini(&snap);
    }
    moe_names_fini(&ids);
    return rc;
}
