/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns which packs there are, their open files and loaded indexes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/beneath.h"
#include "common/store/names.h"
#include "common/store/packs.h"

#define NAME 96

struct one {
    struct moe_pack pack;
    uint64_t number;
    int fd;                     /* -1: not open */
    int users;                  /* reads under way: it stays open */
    bool checked;               /* head and foot have been read */
};

struct moe_packs {
    int dirfd;
    const char *path;
    pthread_mutex_t lock;       /* of all that follows */
    struct one **v;             /* by number, ascending */
    size_t n;
    size_t open, hand;          /* files that are; where the next to close is looked for */
    bool listed;
};

static void
name_of(uint64_t number, char name[static NAME])
{
    (void)snprintf(name, NAME, "packs/%" PRIu64 ".pack", number);
}

int
moe_packs_new(int dirfd, const char *path, struct moe_packs **out, struct moe_err *e)
{
    struct moe_packs *p = calloc(1, sizeof(*p));

    *out = NULL;
    if (p == NULL || pthread_mutex_init(&p->lock, NULL) != 0) {
        free(p);
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", path);
    }
    p->dirfd = dirfd;
    p->path = path;
    *out = p;
    return 0;
}

static void
free_one(struct one *o)
{
    if (o == NULL)
        return;
    if (o->fd >= 0)
        (void)close(o->fd);
    moe_pack_fini(&o->pack);
    free(o);
}

void
moe_packs_free(struct moe_packs *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->n; i++)
        free_one(p->v[i]);
    free(p->v);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

size_t
moe_packs_n(const struct moe_packs *p)
{
    return p->n;
}

uint64_t
moe_packs_at(const struct moe_packs *p, size_t i)
{
    return p->v[i]->number;
}

/* ---- With the lock held -------------------------------------------------------------- */

static size_t
place_of(const struct moe_packs *p, uint64_t number)
{
    size_t lo = 0, hi = p->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (p->v[mid]->number < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static struct one *
by_number(const struct moe_packs *p, uint64_t number)
{
    size_t i = place_of(p, number);

    return i < p->n && p->v[i]->number == number ? p->v[i] : NULL;
}

/* Know of one more; fd is that of its file, or -1. */
static int
insert(struct moe_packs *p, uint64_t number, int fd, struct moe_err *e)
{
    size_t i = place_of(p, number);
    struct one **v = reallocarray(p->v, p->n + 1, sizeof(struct one *)), *o = NULL;

    if (v != NULL)
        p->v = v;
    if (v == NULL || (o = calloc(1, sizeof(*o))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", p->path);
    o->number = number;
    o->fd = fd;
    p->open += fd >= 0;
    memmove(v + i + 1, v + i, (p->n - i) * sizeof(struct one *));
    v[i] = o;
    p->n++;
    return 0;
}

/* Add packs that are new; those that are gone stay known, they may be in the trash. */
static int
list(struct moe_packs *p, struct moe_err *e)
{
    struct moe_names names;
    int rc = moe_names_list(p->dirfd, p->path, "packs", ".pack", &names, e);

    for (size_t i = 0; rc == 0 && i < names.n; i++)
        if (by_number(p, names.v[i]) == NULL)
            rc = insert(p, names.v[i], -1, e);
    moe_names_fini(&names);
    p->listed = p->listed || rc == 0;
    return rc;
}

/*
 * Open the file of a pack. One that was collected after its reader began lies
 * in a folder of the trash.
 */
static int
open_file(const struct moe_packs *p, uint64_t number, struct moe_err *e)
{
    struct moe_names epochs;
    char name[NAME];
    int fd, rc;

    name_of(number, name);
    if ((fd = moe_beneath_open(p->dirfd, p->path, name, e)) != MOE_ENOENT)
        return fd;
    rc = moe_names_list(p->dirfd, p->path, "trash", "", &epochs, e);
    for (size_t i = epochs.n; rc == 0 && fd == MOE_ENOENT && i-- > 0;) {
        (void)snprintf(name, sizeof(name), "trash/%" PRIu64 "/%" PRIu64 ".pack", epochs.v[i],
            number);
        fd = moe_beneath_open(p->dirfd, p->path, name, e);
    }
    moe_names_fini(&epochs);
    return rc != 0 ? rc : fd;
}

static void
close_some(struct moe_packs *p)
{
    for (size_t tries = p->n; tries-- > 0 && p->open > MOE_PACKS_OPEN;) {
        struct one *o = p->v[p->hand++ % p->n];

        if (o->fd >= 0 && o->users == 0) {
            (void)close(o->fd);
            o->fd = -1;
            p->open--;
        }
    }
}

/* Open pack o and count the caller as its user. */
static int
hold(struct moe_packs *p, struct one *o, struct moe_err *e)
{
    char name[NAME];
    int rc;

    name_of(o->number, name);
    if (o->fd < 0) {
        if ((o->fd = open_file(p, o->number, e)) < 0) {
            rc = o->fd;
            o->fd = -1;
            return rc;
        }
        p->open++;
    }
    if (!o->checked && moe_pack_open(&o->pack, o->fd, name, o->number, e) != 0)
        return moe_err_at(e, "%s", p->path);
    o->checked = true;
    o->users++;
    close_some(p);
    return 0;
}

static void
release(struct moe_packs *p, struct one *o)
{
    pthread_mutex_lock(&p->lock);
    o->users--;
    pthread_mutex_unlock(&p->lock);
}

/* ---- Public ----------------------------------------------------------------------------- */

int
moe_packs_again(struct moe_packs *p, struct moe_err *e)
{
    int rc;

    pthread_mutex_lock(&p->lock);
    rc = list(p, e);
    pthread_mutex_unlock(&p->lock);
    return rc;
}

static int
read_in(struct moe_packs *p, const struct one *o, const struct moe_pack_ref *ref,
    struct moe_pack_record *r, struct moe_buf *b, struct moe_err *e)
{
    size_t before = b != NULL ? b->len : 0;
    char name[NAME];

    name_of(o->number, name);
    if (moe_pack_read(&o->pack, o->fd, name, ref, r, b, e) != 0) {
        if (b != NULL)
            b->len = before;
        return moe_err_at(e, "%s", p->path);
    }
    return 0;
}

/* One pack's candidates for an id: 1 and *r, or 0, or MOE_E*. */
static int
find_in(struct moe_packs *p, struct one *o, const unsigned char id[MOE_DIGEST_LEN], int type,
    struct moe_pack_record *r, struct moe_err *e)
{
    struct moe_pack_ref ref;
    char name[NAME];
    int rc;

    name_of(o->number, name);
    pthread_mutex_lock(&p->lock);
    rc = hold(p, o, e);
    if (rc == 0 && (rc = moe_pack_load(&o->pack, o->fd, name, e)) != 0) {
        o->users--;
        (void)moe_err_at(e, "%s", p->path);
    }
    pthread_mutex_unlock(&p->lock);
    if (rc != 0)
        return rc;
    for (size_t k = 0; rc == 0 && moe_pack_find(&o->pack, id, type, k, &ref); k++)
        rc = read_in(p, o, &ref, r, NULL, e) == 0;
    release(p, o);
    return rc;
}

int
moe_packs_find(struct moe_packs *p, const unsigned char id[MOE_DIGEST_LEN], int type,
    struct moe_pack_record *r, struct moe_err *e)
{
    struct one *o;
    size_t i, n;
    int rc, failed = 0;

    pthread_mutex_lock(&p->lock);
    rc = p->listed ? 0 : list(p, e);
    n = p->n;
    pthread_mutex_unlock(&p->lock);
    if (rc != 0)
        return rc;
    for (i = n; i-- > 0;) {
        pthread_mutex_lock(&p->lock);
        o = i < p->n ? p->v[i] : NULL;
        pthread_mutex_unlock(&p->lock);
        if (o == NULL)
            continue;
        if ((rc = find_in(p, o, id, type, r, e)) > 0)
            return rc;
        /* One bad pack does not hide what another has. */
        if (rc < 0 && rc != MOE_ENOENT)
            failed = rc;
    }
    return failed;
}

/* The pack of this number, also one that came or went after the last listing; or NULL. */
static struct one *
known(struct moe_packs *p, uint64_t number, struct moe_err *e)
{
    struct one *o = by_number(p, number);
    int fd;

    if (o != NULL || number > MOE_NAMES_MAX || (fd = open_file(p, number, e)) < 0)
        return o;
    if (insert(p, number, fd, e) != 0) {
        (void)close(fd);
        return NULL;
    }
    return by_number(p, number);
}

int
moe_packs_read(struct moe_packs *p, const struct moe_pack_ref *ref,
    struct moe_pack_record *r, struct moe_buf *b, struct moe_err *e)
{
    struct moe_err why = { 0 };
    struct moe_pack_ref there;
    struct one *o;
    int rc = 0, found;

    pthread_mutex_lock(&p->lock);
    o = known(p, ref->pack, &why);
    rc = o == NULL ? MOE_ENOENT : hold(p, o, &why);
    pthread_mutex_unlock(&p->lock);
    if (rc == 0) {
        rc = read_in(p, o, ref, r, b, &why);
        release(p, o);
        if (rc == 0)
            return 0;
    }
    if (rc == MOE_ENOMEM || rc == MOE_ESTOP)
        return moe_err_set(e, rc, "%s", why.text);
    found = moe_packs_find(p, ref->id, ref->type, r, e);
    if (found < 0)
        return found;
    if (found == 0 && why.text[0] != '\0' && rc != MOE_ENOENT)
        return moe_err_set(e, rc, "%s", why.text);
    if (found == 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: pack %" PRIu64 " is missing", p->path, ref->pack);
    there = r->ref;
    pthread_mutex_lock(&p->lock);
    o = by_number(p, there.pack);
    rc = o == NULL ? moe_err_set(e, MOE_EIO, "%s: a pack has vanished", p->path) : hold(p, o, e);
    pthread_mutex_unlock(&p->lock);
    if (rc != 0)
        return rc;
    rc = read_in(p, o, &there, r, b, e);
    release(p, o);
    return rc;
}
