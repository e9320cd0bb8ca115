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

int
moe_outdir_open(const char *path, bool force, struct moe_outdir **out, struct moe_err *e)
{
    struct moe_outdir *d = calloc(1, sizeof(*d));
    int rc;

    *out = NULL;
    if (d == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", path);
    if ((rc = moe_part_find(&d->part, path, e)) == 0 && (rc = look_at_old(d, force, e)) == 0)
        rc = moe_part_begin(&d->part, true, e);
    if (rc != 0) {
        moe_outdir_abort(d);
        return rc;
    }
    *out = d;
    return 0;
}

int
moe_outdir_file(struct moe_outdir *d, const char *name, uint64_t size_hint,
    struct moe_out **out, struct moe_err *e)
{
    *out = NULL;
    if (*name == '\0' || strchr(name, '/') != NULL || strcmp(name, ".") == 0 ||
        strcmp(name, "..") == 0)
        return moe_err_set(e, MOE_EIO, "%s/%s: not a name for a file", d->part.path, name);
    return moe_out_at(d->part.fd, d->part.path, name, size_hint, out, e);
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

int
moe_outdir_commit(struct moe_outdir *d, struct moe_err *e)
{
    struct moe_part *p = &d->part;
    bool named;
    int rc;

    /* Not every file system syncs directories. */
    if (fsync(p->fd) != 0 && errno != EINVAL)
        rc = moe_err_sys(e, MOE_EIO, errno, "%s", p->path);
    else if (p->exists && fchmod(p->fd, p->old.st_mode & 0777) != 0)
        rc = moe_err_sys(e, MOE_EIO, errno, "%s", p->path);
    else
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
