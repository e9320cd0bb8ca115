/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns directories as one output. The files in it are out.c's.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/out.h"
#include "common/base/out_file.h"
#include "common/base/part.h"

struct moe_outdir {
    struct moe_part part;
    enum moe_part_how how;
};

/* Whether directory name of dirfd has nothing in it; unreadable ones have. */
static bool
is_empty(int dirfd, const char *name)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *at;

    if (d == NULL) {
        if (fd >= 0)
            (void)close(fd);
        return false;
    }
    do
        at = readdir(d);
    while (at != NULL && (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0));
    (void)closedir(d);
    return at == NULL;
}

/* Whether the process stands in the old directory or below it. */
static bool
holds_current(const struct moe_part *p)
{
    int fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), up;
    struct stat at, above;
    bool yes = false;

    while (fd >= 0 && fstat(fd, &at) == 0) {
        if ((yes = at.st_dev == p->old.st_dev && at.st_ino == p->old.st_ino))
            break;
        up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (up >= 0 && fstat(up, &above) == 0 && above.st_dev == at.st_dev &&
            above.st_ino == at.st_ino) {
            (void)close(up);    /* the root is its own parent */
            break;
        }
        (void)close(fd);
        fd = up;
    }
    if (fd >= 0)
        (void)close(fd);
    return yes;
}

/* What may happen to what has the name already. */
static int
look_at_old(struct moe_outdir *d, bool force, struct moe_err *e)
{
    const struct moe_part *p = &d->part;

    d->how = MOE_PART_NEW;
    if (!p->exists)
        return 0;
    if (!S_ISDIR(p->old.st_mode))
        return moe_err_set(e, MOE_EEXIST, "%s: exists and is not a directory", p->path);
    d->how = MOE_PART_REPLACE;
    if (is_empty(p->dirfd, p->name))
        return 0;
    d->how = MOE_PART_EXCHANGE;
    if (!force)
        return moe_err_set(e, MOE_EEXIST, "%s: exists already and is not empty", p->path);
    if (holds_current(p))
        return moe_err_set(e, MOE_EEXIST, "%s: is in use as the current directory", p->path);
    return 0;
}

static int
begin(const char *path, bool force, bool keep, struct moe_outdir **out, struct moe_err *e)
{
    struct moe_outdir *d = calloc(1, sizeof(*d));
    int rc;

    *out = NULL;
    if (d == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", path);
    if ((rc = moe_part_find(&d->part, path, e)) == 0 && (rc = look_at_old(d, force, e)) == 0)
        rc = keep ? moe_part_keep(&d->part, e) : moe_part_begin(&d->part, true, e);
    if (rc != 0) {
        moe_outdir_abort(d);
        return rc;
    }
    *out = d;
    return 0;
}

int
moe_outdir_open(const char *path, bool force, struct moe_outdir **out, struct moe_err *e)
{
    return begin(path, force, false, out, e);
}

int
moe_outdir_keep(const char *path, bool force, struct moe_outdir **out, struct moe_err *e)
{
    return begin(path, force, true, out, e);
}

static bool
is_component(const char *name, size_t n)
{
    return n > 0 && n <= NAME_MAX && memchr(name, '/', n) == NULL &&
        !(n == 1 && name[0] == '.') && !(n == 2 && name[0] == '.' && name[1] == '.');
}

/* The directory of n bytes of name within d, made if it is not there. */
static int
enter(struct moe_outdir *d, const char *name, size_t n, int *fd, struct moe_err *e)
{
    char sub[NAME_MAX + 1];

    memcpy(sub, name, n);
    sub[n] = '\0';
    if (mkdirat(d->part.fd, sub, 0777) != 0 && errno != EEXIST)
        return moe_err_sys(e, MOE_EIO, errno, "%s/%s", d->part.path, sub);
    *fd = openat(d->part.fd, sub, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *fd >= 0 ? 0 : moe_err_sys(e, MOE_EIO, errno, "%s/%s", d->part.path, sub);
}

int
moe_outdir_again(struct moe_outdir *d, const char *name, uint64_t from, uint64_t size_hint,
    struct moe_out **out, struct moe_err *e)
{
    *out = NULL;
    if (!is_component(name, strlen(name)))
        return moe_err_set(e, MOE_EIO, "%s/%s: not a name for a file", d->part.path, name);
    return moe_out_again(d->part.fd, d->part.path, name, from, size_hint, out, e);
}

int
moe_outdir_file(struct moe_outdir *d, const char *name, uint64_t size_hint,
    struct moe_out **out, struct moe_err *e)
{
    size_t n = strcspn(name, "/");
    const char *base = name[n] == '/' ? name + n + 1 : name;
    int fd, rc;

    *out = NULL;
    if (!is_component(name, n) || !is_component(base, strlen(base)))
        return moe_err_set(e, MOE_EIO, "%s/%s: not a name for a file", d->part.path, name);
    if (base == name && d->part.kept)
        return moe_out_again(d->part.fd, d->part.path, name, 0, size_hint, out, e);
    if (base == name)
        return moe_out_at(d->part.fd, d->part.path, name, size_hint, out, e);
    if ((rc = enter(d, name, n, &fd, e)) != 0)
        return rc;
    rc = moe_out_at(fd, d->part.path, base, size_hint, out, e);
    (void)close(fd);
    return rc;
}

int
moe_outdir_put(struct moe_outdir *d, const char *name, const void *p, size_t n,
    struct moe_err *e)
{
    struct moe_out *o;
    int rc;

    if ((rc = moe_outdir_file(d, name, 0, &o, e)) != 0)
        return rc;
    if ((rc = moe_out_write(o, p, n, e)) != 0) {
        moe_out_abort(o);
        return rc;
    }
    return moe_out_commit(o, e);
}

/* Make the directories within durable. Not every file system syncs directories. */
static int
sync_within(const struct moe_part *p, struct moe_err *e)
{
    int fd = openat(p->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *at;

    if (d == NULL) {
        rc = moe_err_sys(e, MOE_EIO, errno, "%s", p->path);
        if (fd >= 0)
            (void)close(fd);
        return rc;
    }
    while (rc == 0 && (at = readdir(d)) != NULL) {
        int sub = strcmp(at->d_name, "..") == 0 || (at->d_type != DT_DIR &&
            at->d_type != DT_UNKNOWN) ? -1 :
            openat(fd, at->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (sub >= 0 && fsync(sub) != 0 && errno != EINVAL)
            rc = moe_err_sys(e, MOE_EIO, errno, "%s/%s", p->path, at->d_name);
        if (sub >= 0)
            (void)close(sub);
    }
    (void)closedir(d);
    return rc;
}

int
moe_outdir_commit(struct moe_outdir *d, struct moe_err *e)
{
    struct moe_part *p = &d->part;
    bool named;
    int rc;

    /* "." is among them. */
    rc = sync_within(p, e);
    if (rc == 0 && p->exists && fchmod(p->fd, p->old.st_mode & 0777) != 0)
        rc = moe_err_sys(e, MOE_EIO, errno, "%s", p->path);
    if (rc == 0)
        rc = moe_part_publish(p, d->how, &named, e);
    moe_outdir_abort(d);
    return rc;
}

void
moe_outdir_abort(struct moe_outdir *d)
{
    if (d == NULL)
        return;
    moe_part_drop(&d->part);
    moe_part_fini(&d->part);
    free(d);
}
