/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns which packs go and the order in which they do. Which records are needed
 * is live's, who still reads is lease's.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/stop.h"
#include "common/store/lease.h"
#include "common/store/live.h"
#include "common/store/saver_pack.h"
#include "common/store/sweep.h"
#include "common/store/walk.h"

#define NAME 96

/* One pack, as it was found. */
struct pack {
    uint64_t number, size;          /* of the file */
    uint64_t total, needed;         /* bytes of records */
    bool bad;                       /* something in it cannot be read: it stays */
    bool copy;
};

struct sweep {
    struct moe_store *s;
    struct moe_sweep *w;
    struct moe_marks live;
    struct pack *v;
    size_t n;
    struct moe_saver_packs out;     /* the copies */
};

static void
pack_name(uint64_t number, char name[static NAME])
{
    (void)snprintf(name, NAME, "packs/%" PRIu64 ".pack", number);
}

/* ---- What there is ------------------------------------------------------------------------ */

struct count { const struct sweep *g; struct pack *p; };

static int
count_record(void *ctx, const struct moe_walk_place *at, struct moe_err *e)
{
    struct count *c = ctx;

    (void)e;
    if (at->rc != 0) {
        c->p->bad = true;
        return 0;
    }
    c->p->total += MOE_PACK_RECORD + at->r->ref.stored;
    if (moe_marks_has(&c->g->live, at->r->ref.pack, at->r->ref.at))
        c->p->needed += MOE_PACK_RECORD + at->r->ref.stored;
    return moe_stop_check(e);
}

static int
look(struct sweep *g, struct moe_err *e)
{
    struct moe_names names;
    char name[NAME];
    struct stat st;
    int rc = moe_names_list(g->s->dirfd, g->s->path, "packs", ".pack", &names, e);

    if (rc == 0 && (g->v = calloc(names.n + 1, sizeof(*g->v))) == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        struct pack *p = &g->v[g->n++];
        struct count c = { g, p };

        p->number = names.v[i];
        pack_name(p->number, name);
        if (fstatat(g->s->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode)) {
            p->bad = true;
            continue;
        }
        p->size = (uint64_t)st.st_size;
        g->w->packs++;
        g->w->bytes += p->size;
        rc = moe_walk_pack(g->s->dirfd, g->s->path, p->number, false, count_record, &c, e);
    }
    moe_names_fini(&names);
    return rc;
}

/* Which packs go. What cannot be read is left for fsck to name, unless nothing needs it. */
static void
choose(struct sweep *g)
{
    for (size_t i = 0; i < g->n; i++) {
        struct pack *p = &g->v[i];

        if (p->size == 0)
            continue;
        if (p->needed == 0 && !p->bad) {
            g->w->dead++;
            g->w->moved += p->size;
        } else if (!p->bad && p->needed < p->total &&
            (p->total - p->needed) * 100 >= p->total * (uint64_t)g->w->waste) {
            p->copy = true;
            g->w->copied++;
            g->w->moved += p->size;
            g->w->added += p->needed;
        }
    }
}

/* ---- Copying -------------------------------------------------------------------------------- */

static int
copy_record(void *ctx, const struct moe_walk_place *at, struct moe_err *e)
{
    struct sweep *g = ctx;
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_pack_record r;
    int rc;

    if (at->rc != 0)
        return at->rc;
    if (!moe_marks_has(&g->live, at->r->ref.pack, at->r->ref.at))
        return moe_stop_check(e);
    if ((rc = moe_packs_read(g->s->packs, &at->r->ref, &r, &b, e)) == 0) {
        /* A base that has been copied is referred to where it is now. */
        struct moe_pack_record base = { .ref = r.base, .plain = r.plain };

        if (r.base.type != 0 && moe_saver_pack_find(&g->out, &base))
            r.base = base.ref;
        rc = moe_saver_pack_add(&g->out, &r, b.p, e);
    }
    moe_buf_fini(&b);
    return rc;
}

static int
copy(struct sweep *g, struct moe_err *e)
{
    int rc = moe_saver_pack_begin(&g->out, g->s, e);

    for (size_t i = 0; rc == 0 && i < g->n; i++)
        if (g->v[i].copy)
            rc = moe_walk_pack(g->s->dirfd, g->s->path, g->v[i].number, false, copy_record, g, e);
    if (rc == 0)
        rc = moe_saver_pack_end(&g->out, e);
    if (rc == 0)
        moe_saver_pack_keep(&g->out);
    moe_saver_pack_abort(&g->out);
    return rc;
}

/* ---- The trash ------------------------------------------------------------------------------ */

static int
failed(const struct sweep *g, const char *name, struct moe_err *e)
{
    return moe_err_sys(e, MOE_EIO, errno, "%s/%s", g->s->path, name);
}

/* Move what goes to the trash of this epoch, and begin the next. */
static int
throw(struct sweep *g, struct moe_err *e)
{
    char from[NAME], to[NAME], folder[NAME];
    uint64_t epoch;
    int rc;

    if ((rc = moe_lease_epoch(g->s->dirfd, g->s->path, &epoch, e)) != 0)
        return rc;
    (void)snprintf(folder, sizeof(folder), "trash/%" PRIu64, epoch);
    if (mkdirat(g->s->dirfd, folder, 0777) != 0 && errno != EEXIST)
        return failed(g, folder, e);
    if ((rc = moe_names_sync(g->s->dirfd, g->s->path, "trash", e)) != 0)
        return rc;
    for (size_t i = 0; i < g->n; i++) {
        const struct pack *p = &g->v[i];

        if (p->size == 0 || p->bad || (p->needed > 0 && !p->copy))
            continue;
        pack_name(p->number, from);
        (void)snprintf(to, sizeof(to), "trash/%" PRIu64 "/%" PRIu64 ".pack", epoch, p->number);
        if (renameat(g->s->dirfd, from, g->s->dirfd, to) != 0)
            return failed(g, from, e);
    }
    if ((rc = moe_names_sync(g->s->dirfd, g->s->path, folder, e)) != 0 ||
        (rc = moe_names_sync(g->s->dirfd, g->s->path, "packs", e)) != 0)
        return rc;
    return moe_lease_next(g->s->dirfd, g->s->path, e);
}

/* Delete one folder of the trash, or only add up what is in it. */
static int
empty(struct sweep *g, uint64_t epoch, bool remove, uint64_t *bytes, struct moe_err *e)
{
    char folder[NAME], name[2 * NAME];
    struct moe_names packs;
    struct stat st;
    int rc;

    (void)snprintf(folder, sizeof(folder), "trash/%" PRIu64, epoch);
    rc = moe_names_list(g->s->dirfd, g->s->path, folder, ".pack", &packs, e);
    for (size_t i = 0; rc == 0 && i < packs.n; i++) {
        (void)snprintf(name, sizeof(name), "%s/%" PRIu64 ".pack", folder, packs.v[i]);
        if (!remove && fstatat(g->s->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            *bytes += (uint64_t)st.st_size;
        if (remove && unlinkat(g->s->dirfd, name, 0) != 0)
            rc = failed(g, name, e);
    }
    moe_names_fini(&packs);
    if (rc == 0 && remove && unlinkat(g->s->dirfd, folder, AT_REMOVEDIR) != 0)
        rc = failed(g, folder, e);
    return rc;
}

/* Delete what nobody can be reading any more, and what writers that died left. */
static int
take_out(struct sweep *g, struct moe_err *e)
{
    static const char *const swept[] = { "packs", "saves", "refs", NULL };
    struct moe_names epochs;
    uint64_t now;
    int held, rc = moe_names_list(g->s->dirfd, g->s->path, "trash", "", &epochs, e);

    for (size_t i = 0; rc == 0 && !g->w->dry && swept[i] != NULL; i++)
        rc = moe_names_tidy(g->s->dirfd, g->s->path, swept[i], e);
    if (rc == 0)
        rc = moe_lease_epoch(g->s->dirfd, g->s->path, &now, e);
    for (size_t i = 0; rc == 0 && i < epochs.n; i++) {
        /* A collection that was cut off has filled the trash of an epoch and not ended it. */
        if (epochs.v[i] == now && !g->w->dry) {
            if ((rc = moe_lease_next(g->s->dirfd, g->s->path, e)) != 0)
                break;
            now++;
        }
        held = epochs.v[i] >= now ? 1 : 0;
        if (held == 0 && !g->w->dry &&
            (held = moe_lease_held(g->s->dirfd, g->s->path, epochs.v[i], e)) < 0)
            rc = held;
        else
            rc = empty(g, epochs.v[i], held == 0 && !g->w->dry, &g->w->waiting, e);
    }
    moe_names_fini(&epochs);
    return rc;
}

int
moe_sweep_run(struct moe_store *s, struct moe_sweep *w, struct moe_err *e)
{
    struct sweep g = { .s = s, .w = w, .live = MOE_MARKS_INIT };
    int rc;

    if ((rc = moe_live_all(s, &g.live, e)) != 0) {
        if (rc != MOE_ESTOP)
            (void)moe_err_at(e, "%s: nothing was removed", s->path);
        goto out;
    }
    if ((rc = look(&g, e)) != 0)
        goto out;
    choose(&g);
    if (!w->dry && ((w->copied > 0 && (rc = copy(&g, e)) != 0) ||
            (w->dead + w->copied > 0 && (rc = throw(&g, e)) != 0)))
        goto out;
    rc = take_out(&g, e);
out:
    moe_marks_fini(&g.live);
    free(g.v);
    return rc;
}
