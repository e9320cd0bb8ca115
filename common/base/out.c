/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns writing one output: the buffer, the bytes, the order of flush, fsync and
 * rename. Names and locks of temporaries are part.c's.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/num.h"
#include "common/base/out.h"
#include "common/base/out_file.h"
#include "common/base/part.h"
#include "common/base/stop.h"

#define ALIGN ((size_t)4096)
#define PIECE ((size_t)1 << 20)

enum kind { STREAM, ALONE, IN_DIRECTORY };

struct moe_out {
    enum kind kind;
    char *path;             /* for messages */
    int fd;
    bool own_fd;            /* not stdout */
    struct moe_part part;   /* ALONE */
    bool force;
    int dirfd;              /* IN_DIRECTORY, our own, and name in it */
    char *name;
    bool reserved;          /* blocks may be left after the end */
    atomic_int failed;      /* code of the first failure, or 0 */
    /* The buffer holds `n` bytes that belong at offset `at`; the lock is for it. */
    pthread_mutex_t lock;
    unsigned char *buf;
    size_t n;
    uint64_t at;
};

/* ---- Bytes --------------------------------------------------------------------------- */

static int
fail(struct moe_out *o, int rc)
{
    int none = 0;

    (void)atomic_compare_exchange_strong(&o->failed, &none, rc);
    return rc;
}

/* Write all n bytes, in pieces between which a stop is looked for. */
static int
put(struct moe_out *o, const unsigned char *p, size_t n, uint64_t at, struct moe_err *e)
{
    int rc;

    while (n > 0) {
        size_t k = n < 8 * PIECE ? n : 8 * PIECE;
        ssize_t done;

        if ((rc = moe_stop_check(e)) != 0)
            return fail(o, rc);
        if (at > INT64_MAX - k)
            return fail(o, moe_err_set(e, MOE_EIO, "%s: larger than a file can be", o->path));
        done = o->kind == STREAM ? write(o->fd, p, k) : pwrite(o->fd, p, k, (off_t)at);
        if (done < 0 && errno != EINTR)
            return fail(o, moe_err_sys(e, MOE_EIO, errno, "%s", o->path));
        if (done == 0)
            return fail(o, moe_err_set(e, MOE_EIO, "%s: nothing more can be written", o->path));
        if (done > 0) {
            p += done;
            n -= (size_t)done;
            at += (uint64_t)done;
        }
    }
    return 0;
}

/* The lock is held. */
static int
flush(struct moe_out *o, struct moe_err *e)
{
    int rc = o->n > 0 ? put(o, o->buf, o->n, o->at, e) : 0;

    if (rc == 0) {
        o->at += o->n;
        o->n = 0;
    }
    return rc;
}

/* The lock is held. */
static int
append(struct moe_out *o, const unsigned char *p, size_t n, struct moe_err *e)
{
    int rc;

    while (n > 0) {
        size_t k = PIECE - o->n;

        if (o->n == 0 && n >= PIECE) {
            /* Whole pieces need no copy. */
            k = n / PIECE * PIECE;
            if ((rc = put(o, p, k, o->at, e)) != 0)
                return rc;
            o->at += k;
        } else {
            k = k < n ? k : n;
            memcpy(o->buf + o->n, p, k);
            o->n += k;
            if (o->n == PIECE && (rc = flush(o, e)) != 0)
                return rc;
        }
        p += k;
        n -= k;
    }
    return 0;
}

static int
earlier(struct moe_out *o, struct moe_err *e)
{
    int code = atomic_load(&o->failed);

    return code == 0 ? 0 : moe_err_set(e, code, "%s: an earlier write failed", o->path);
}

/* ---- Opening ------------------------------------------------------------------------- */

static void
release(struct moe_out *o)
{
    if (o->own_fd && o->fd >= 0)
        (void)close(o->fd);
    if (o->dirfd >= 0)
        (void)close(o->dirfd);
    if (o->part.fd == o->fd)
        o->part.fd = -1;
    moe_part_fini(&o->part);
    pthread_mutex_destroy(&o->lock);
    free(o->buf);
    free(o->path);
    free(o->name);
    free(o);
}

static struct moe_out *
new_out(enum kind kind, const char *path, struct moe_err *e)
{
    struct moe_out *o = calloc(1, sizeof(*o));

    if (o != NULL) {
        o->kind = kind;
        o->fd = o->dirfd = -1;
        o->own_fd = true;
        o->part = (struct moe_part)MOE_PART_INIT;
        if (pthread_mutex_init(&o->lock, NULL) != 0) {
            free(o);
            o = NULL;
        }
    }
    if (o != NULL &&
        ((o->path = strdup(path)) == NULL || (o->buf = aligned_alloc(ALIGN, PIECE)) == NULL)) {
        release(o);
        o = NULL;
    }
    if (o == NULL)
        (void)moe_err_set(e, MOE_ENOMEM, "%s: out of memory", path);
    return o;
}

/* Set blocks aside for size bytes, or fail for want of room. */
static int
reserve(struct moe_out *o, uint64_t size, struct moe_err *e)
{
    struct statvfs fs;
    char human[32];
    int rc, sys;

    if (size == 0)
        return 0;
    if (size > INT64_MAX)
        return moe_err_set(e, MOE_EIO, "%s: larger than a file can be", o->path);
    while (fallocate(o->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size) != 0) {
        sys = errno;
        if (sys == EINTR) {
            if ((rc = moe_stop_check(e)) != 0)
                return rc;
            continue;
        }
        if (sys == EOPNOTSUPP || sys == ENOSYS) {
            /* No such call on this file system: look at least at what is free. */
            if (fstatvfs(o->fd, &fs) != 0 || fs.f_frsize == 0 ||
                size / fs.f_frsize <= fs.f_bavail)
                return 0;
            sys = ENOSPC;
        }
        return moe_err_sys(e, MOE_EIO, sys, "%s: %s are needed", o->path,
            moe_num_human(human, sizeof(human), size));
    }
    o->reserved = true;
    return 0;
}

/* Whether what has the name is written as it is; or MOE_E*. */
static int
look_at_old(const struct moe_part *p, bool force, bool *stream, struct moe_err *e)
{
    mode_t mode = p->old.st_mode;

    *stream = false;
    if (!p->exists)
        return 0;
    if (S_ISDIR(mode))
        return moe_err_set(e, MOE_EEXIST, "%s: is a directory", p->path);
    if (S_ISCHR(mode) || S_ISFIFO(mode)) {
        *stream = true;
        return 0;
    }
    if (!S_ISREG(mode))
        return moe_err_set(e, MOE_EEXIST, "%s: exists and is not a file", p->path);
    if (!force)
        return moe_err_set(e, MOE_EEXIST, "%s: exists already", p->path);
    return 0;
}

static int
open_named(struct moe_out *o, const char *path, bool force, uint64_t size_hint,
    struct moe_err *e)
{
    size_t n = strlen(path);
    bool stream;
    int rc;

    if (n > 0 && path[n - 1] == '/')
        return moe_err_set(e, MOE_EIO, "%s: not a name for a file", path);
    if ((rc = moe_part_find(&o->part, path, e)) != 0 ||
        (rc = look_at_old(&o->part, force, &stream, e)) != 0)
        return rc;
    if (stream) {
        o->kind = STREAM;
        o->fd = openat(o->part.dirfd, o->part.name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
        return o->fd < 0 ? moe_err_sys(e, MOE_EIO, errno, "%s", path) : 0;
    }
    if ((rc = moe_part_begin(&o->part, false, e)) != 0)
        return rc;
    o->fd = o->part.fd;
    o->force = force;
    return reserve(o, size_hint, e);
}

int
moe_out_open(const char *path, bool force, uint64_t size_hint, struct moe_out **out,
    struct moe_err *e)
{
    bool std = strcmp(path, "-") == 0;
    struct moe_out *o = new_out(std ? STREAM : ALONE, std ? "stdout" : path, e);
    int rc = 0;

    *out = NULL;
    if (o == NULL)
        return MOE_ENOMEM;
    if (std) {
        o->fd = STDOUT_FILENO;
        o->own_fd = false;
    } else if ((rc = open_named(o, path, force, size_hint, e)) != 0) {
        moe_out_abort(o);
        return rc;
    }
    *out = o;
    return 0;
}

int
moe_out_at(int dirfd, const char *dir, const char *name, uint64_t size_hint,
    struct moe_out **out, struct moe_err *e)
{
    char path[2 * MOE_ERR_TEXT];
    struct moe_out *o;
    int rc = 0;

    *out = NULL;
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);     /* for messages: may be cut */
    if ((o = new_out(IN_DIRECTORY, path, e)) == NULL)
        return MOE_ENOMEM;
    o->fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (o->fd < 0) {
        rc = moe_err_sys(e, errno == EEXIST ? MOE_EEXIST : MOE_EIO, errno, "%s", path);
    } else if ((o->name = strdup(name)) == NULL ||
        (o->dirfd = fcntl(dirfd, F_DUPFD_CLOEXEC, 0)) < 0) {
        (void)unlinkat(dirfd, name, 0);
        rc = moe_err_sys(e, o->name == NULL ? MOE_ENOMEM : MOE_EIO, errno, "%s", path);
    } else {
        rc = reserve(o, size_hint, e);
    }
    if (rc != 0) {
        moe_out_abort(o);
        return rc;
    }
    *out = o;
    return 0;
}

int
moe_out_again(int dirfd, const char *dir, const char *name, uint64_t from, uint64_t size_hint,
    struct moe_out **out, struct moe_err *e)
{
    char path[2 * MOE_ERR_TEXT];
    struct moe_out *o;
    struct stat st;
    int rc = 0;

    *out = NULL;
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);     /* for messages: may be cut */
    if ((o = new_out(IN_DIRECTORY, path, e)) == NULL)
        return MOE_ENOMEM;
    o->fd = openat(dirfd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (o->fd < 0 || fstat(o->fd, &st) != 0)
        rc = moe_err_sys(e, MOE_EIO, errno, "%s", path);
    else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size < from)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: has lost bytes that were written", path);
    else if (ftruncate(o->fd, (off_t)from) != 0 || (fsync(dirfd) != 0 && errno != EINVAL))
        rc = moe_err_sys(e, MOE_EIO, errno, "%s", path);
    else
        rc = reserve(o, size_hint, e);
    o->at = from;
    if (rc != 0) {
        moe_out_abort(o);
        return rc;
    }
    *out = o;
    return 0;
}

/* ---- Public -------------------------------------------------------------------------- */

int
moe_out_write(struct moe_out *o, const void *p, size_t n, struct moe_err *e)
{
    int rc;

    if ((rc = earlier(o, e)) != 0)
        return rc;
    pthread_mutex_lock(&o->lock);
    rc = append(o, p, n, e);
    pthread_mutex_unlock(&o->lock);
    return rc;
}

int
moe_out_pwrite(struct moe_out *o, const void *p, size_t n, uint64_t at, struct moe_err *e)
{
    int rc;

    if (o->kind == STREAM)
        return fail(o, moe_err_set(e, MOE_EIO, "%s: cannot be written out of order", o->path));
    if ((rc = earlier(o, e)) != 0)
        return rc;
    /* What was appended before must not overwrite this when it is flushed. */
    pthread_mutex_lock(&o->lock);
    if (at < o->at + o->n && n > 0 && (at >= o->at || n > o->at - at))
        rc = flush(o, e);
    pthread_mutex_unlock(&o->lock);
    return rc != 0 ? rc : put(o, p, n, at, e);
}

uint64_t
moe_out_pos(const struct moe_out *o)
{
    return o->at + o->n;
}

bool
moe_out_is_stream(const struct moe_out *o)
{
    return o->kind == STREAM;
}

/* Give back reserved blocks that were not written, and make the content durable. */
static int
make_durable(struct moe_out *o, struct moe_err *e)
{
    struct stat st;

    if (o->reserved && (fstat(o->fd, &st) != 0 || ftruncate(o->fd, st.st_size) != 0))
        return moe_err_sys(e, MOE_EIO, errno, "%s", o->path);
    while (fsync(o->fd) != 0)
        if (errno != EINTR)
            return moe_err_sys(e, MOE_EIO, errno, "%s", o->path);
    return 0;
}

int
moe_out_sync(struct moe_out *o, struct moe_err *e)
{
    int rc;

    if ((rc = earlier(o, e)) != 0)
        return rc;
    pthread_mutex_lock(&o->lock);
    rc = flush(o, e);
    pthread_mutex_unlock(&o->lock);
    while (rc == 0 && o->kind != STREAM && fdatasync(o->fd) != 0)
        if (errno != EINTR)
            rc = fail(o, moe_err_sys(e, MOE_EIO, errno, "%s", o->path));
    return rc;
}

int
moe_out_commit(struct moe_out *o, struct moe_err *e)
{
    bool named;
    int rc;

    if ((rc = earlier(o, e)) != 0)
        goto out;
    pthread_mutex_lock(&o->lock);
    rc = flush(o, e);
    pthread_mutex_unlock(&o->lock);
    if (rc != 0)
        goto out;
    if (o->kind == STREAM) {
        if (o->own_fd && close(o->fd) != 0)
            rc = moe_err_sys(e, MOE_EIO, errno, "%s", o->path);
        o->own_fd = false;
        goto out;
    }
    if ((rc = make_durable(o, e)) != 0)
        goto out;
    if (o->kind == ALONE) {
        rc = moe_part_publish(&o->part, o->force ? MOE_PART_REPLACE : MOE_PART_NEW, &named, e);
    } else if (o->dirfd >= 0) {
        (void)close(o->dirfd);  /* it stays where it is */
        o->dirfd = -1;
    }
out:
    moe_out_abort(o);
    return rc;
}

void
moe_out_abort(struct moe_out *o)
{
    if (o == NULL)
        return;
    if (o->kind == ALONE)
        moe_part_drop(&o->part);
    else if (o->dirfd >= 0 && o->name != NULL)
        (void)unlinkat(o->dirfd, o->name, 0);
    release(o);
}
