/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the names, locks and renames of temporaries. Does not write content.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/base/part.h"

#define RANDOM_CHARS 6
#define SUFFIX ".part"
#define SUFFIX_LEN (sizeof(SUFFIX) - 1)
#define MAX_TRIES 100

static int
io_error(const struct moe_part *p, struct moe_err *e)
{
    return moe_err_sys(e, MOE_EIO, errno, "%s", p->path);
}

/* ---- Where it is ------------------------------------------------------------------- */

/* p->real: path without "/" at the end, its last link resolved. */
static int
resolve(struct moe_part *p, struct moe_err *e)
{
    struct stat st;
    size_t n = strlen(p->path);

    if ((p->real = strdup(p->path)) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", p->path);
    while (n > 1 && p->real[n - 1] == '/')
        p->real[--n] = '\0';
    if (lstat(p->real, &st) != 0 || !S_ISLNK(st.st_mode))
        return 0;   /* what is missing or forbidden shows when the directory is opened */
    free(p->real);
    if ((p->real = realpath(p->path, NULL)) == NULL)
        return errno == ENOENT ? moe_err_set(e, MOE_EIO, "%s: a link to nothing", p->path)
                               : io_error(p, e);
    return 0;
}

int
moe_part_find(struct moe_part *p, const char *path, struct moe_err *e)
{
    char *slash;
    int rc;

    *p = (struct moe_part)MOE_PART_INIT;
    if ((p->path = strdup(path)) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", path);
    if ((rc = resolve(p, e)) != 0)
        return rc;
    slash = strrchr(p->real, '/');
    p->name = slash == NULL ? p->real : slash + 1;
    if (*p->name == '\0' || strcmp(p->name, ".") == 0 || strcmp(p->name, "..") == 0)
        return moe_err_set(e, MOE_EIO, "%s: not a name for an output", path);
    if (slash == NULL || slash == p->real) {
        p->dirfd = open(slash == NULL ? "." : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    } else {
        *slash = '\0';
        p->dirfd = open(p->real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        *slash = '/';
    }
    if (p->dirfd < 0)
        return io_error(p, e);
    p->exists = fstatat(p->dirfd, p->name, &p->old, AT_SYMLINK_NOFOLLOW) == 0;
    return p->exists || errno == ENOENT ? 0 : io_error(p, e);
}

/* ---- Removing ---------------------------------------------------------------------- */

/* Remove all that is in directory fd, which is closed. */
static int
empty(int fd, int depth)
{
    DIR *d = fdopendir(fd);
    struct dirent *at;
    int rc = 0;

    if (d == NULL) {
        (void)close(fd);
        return -1;
    }
    while ((at = readdir(d)) != NULL) {
        int below;

        if (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, at->d_name, 0) == 0 || errno == ENOENT)
            continue;
        if ((errno != EISDIR && errno != EPERM) || depth == MOE_PART_MAX_DEPTH ||
            (below = openat(fd, at->d_name,
                 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0 ||
            empty(below, depth + 1) != 0 || unlinkat(fd, at->d_name, AT_REMOVEDIR) != 0)
            rc = -1;
    }
    (void)closedir(d);
    return rc;
}

/* Remove file or directory name of dirfd with all that is in it. */
static int
remove_tree(int dirfd, const char *name)
{
    int fd;

    if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || empty(fd, 1) != 0)
        return -1;
    return unlinkat(dirfd, name, AT_REMOVEDIR);
}

/* How much of the destination's name goes into the temporary's. */
static size_t
stem_len(const struct moe_part *p)
{
    size_t n = strlen(p->name), most = NAME_MAX - 2 - RANDOM_CHARS - SUFFIX_LEN;

    return n < most ? n : most;
}

/* Whether name is one of this output's temporaries. */
static bool
is_temporary(const struct moe_part *p, const char *name)
{
    size_t stem = stem_len(p), n = strlen(name);

    return n == 1 + stem + 1 + RANDOM_CHARS + SUFFIX_LEN && name[0] == '.' &&
        strncmp(name + 1, p->name, stem) == 0 && name[1 + stem] == '.' &&
        strcmp(name + n - SUFFIX_LEN, SUFFIX) == 0;
}

/* Remove temporary name unless somebody holds its lock. */
static void
remove_stale(const struct moe_part *p, const char *name)
{
    struct stat a, b;
    int fd = openat(p->dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &a) == 0 &&
        (S_ISREG(a.st_mode) || S_ISDIR(a.st_mode)) &&
        fstatat(p->dirfd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 && a.st_ino == b.st_ino &&
        a.st_dev == b.st_dev)
        (void)remove_tree(p->dirfd, name);
    (void)close(fd);
}

static void
remove_all_stale(const struct moe_part *p)
{
    int fd = openat(p->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *at;

    if (d == NULL) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    while ((at = readdir(d)) != NULL)
        if (is_temporary(p, at->d_name))
            remove_stale(p, at->d_name);
    (void)closedir(d);
}

/* ---- Making ------------------------------------------------------------------------ */

static int
random_name(struct moe_part *p, struct moe_err *e)
{
    static const char set[] = "abcdefghijklmnopqrstuvwxyz012345";
    unsigned char r[RANDOM_CHARS];
    size_t stem = stem_len(p), at = stem + 2;

    if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
        return io_error(p, e);
    p->tmp[0] = '.';
    memcpy(p->tmp + 1, p->name, stem);
    p->tmp[stem + 1] = '.';
    for (int i = 0; i < RANDOM_CHARS; i++)
        p->tmp[at++] = set[r[i] % 32];
    memcpy(p->tmp + at, SUFFIX, SUFFIX_LEN + 1);
    return 0;
}

/* Make p->tmp and open it as p->fd; false: errno says why. */
static bool
make(struct moe_part *p, bool directory)
{
    if (!directory) {
        p->fd = openat(p->dirfd, p->tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        return p->fd >= 0;
    }
    if (mkdirat(p->dirfd, p->tmp, 0777) != 0)
        return false;
    p->fd = openat(p->dirfd, p->tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (p->fd < 0) {
        int sys = errno;

        (void)unlinkat(p->dirfd, p->tmp, AT_REMOVEDIR);
        errno = sys;
    }
    return p->fd >= 0;
}

/*
 * Lock p->fd. False: another process cleaned it away in the moment before.
 * Where a file system has no locks, nothing is ever taken for left over.
 */
static bool
lock(const struct moe_part *p)
{
    struct stat st;

    if (flock(p->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return false;
    return fstatat(p->dirfd, p->tmp, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int
moe_part_begin(struct moe_part *p, bool directory, struct moe_err *e)
{
    int rc;

    remove_all_stale(p);
    for (int tries = 0;; tries++) {
        if ((rc = random_name(p, e)) != 0) {
            p->tmp[0] = '\0';
            return rc;
        }
        if (make(p, directory)) {
            if (lock(p))
                break;
            (void)close(p->fd);
            p->fd = -1;
            errno = EEXIST;
        }
        if (errno != EEXIST || tries == MAX_TRIES) {
            rc = io_error(p, e);
            p->tmp[0] = '\0';
            return rc;
        }
    }
    if (p->exists)
        (void)fchmod(p->fd, (p->old.st_mode & 0777) | (directory ? 0700 : 0));
    return 0;
}

int
moe_part_keep(struct moe_part *p, struct moe_err *e)
{
    size_t n = strlen(p->name);

    if (n + SUFFIX_LEN > NAME_MAX)
        return moe_err_set(e, MOE_EIO, "%s: too long a name for what may be resumed", p->path);
    memcpy(p->tmp, p->name, n);
    memcpy(p->tmp + n, SUFFIX, SUFFIX_LEN + 1);
    p->kept = true;
    if (mkdirat(p->dirfd, p->tmp, 0777) != 0 && errno != EEXIST)
        return moe_err_sys(e, MOE_EIO, errno, "%s%s", p->path, SUFFIX);
    p->fd = openat(p->dirfd, p->tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (p->fd < 0)
        return moe_err_sys(e, MOE_EIO, errno, "%s%s", p->path, SUFFIX);
    if (!lock(p))
        return moe_err_set(e, MOE_EEXIST, "%s%s: another process works on it", p->path, SUFFIX);
    if (fsync(p->dirfd) != 0 && errno != EINVAL && errno != EROFS)
        return io_error(p, e);
    return 0;
}

/* ---- Publishing -------------------------------------------------------------------- */

/* Rename without replacing, also where the file system cannot do that in one call. */
static int
rename_new(const struct moe_part *p)
{
    struct stat st;

    if (renameat2(p->dirfd, p->tmp, p->dirfd, p->name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (linkat(p->dirfd, p->tmp, p->dirfd, p->name, 0) == 0) {
        (void)unlinkat(p->dirfd, p->tmp, 0);
        return 0;
    }
    if (errno == EEXIST)
        return -1;
    if (fstatat(p->dirfd, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EEXIST;
        return -1;
    }
    return renameat(p->dirfd, p->tmp, p->dirfd, p->name);
}

int
moe_part_publish(struct moe_part *p, enum moe_part_how how, bool *named, struct moe_err *e)
{
    int rc;

    *named = false;
    switch (how) {
    case MOE_PART_NEW: rc = rename_new(p); break;
    case MOE_PART_REPLACE: rc = renameat(p->dirfd, p->tmp, p->dirfd, p->name); break;
    default: rc = renameat2(p->dirfd, p->tmp, p->dirfd, p->name, RENAME_EXCHANGE); break;
    }
    if (rc != 0) {
        if (errno == EEXIST || errno == ENOTEMPTY)
            return moe_err_set(e, MOE_EEXIST, "%s: appeared while it was being written",
                p->path);
        if (how == MOE_PART_EXCHANGE && (errno == EINVAL || errno == ENOSYS))
            return moe_err_set(e, MOE_EIO,
                "%s: this file system cannot exchange directories: remove the old one first",
                p->path);
        return io_error(p, e);
    }
    *named = true;
    if (how != MOE_PART_EXCHANGE)
        p->tmp[0] = '\0';
    rc = 0;
    /* Not every file system syncs directories. */
    if (fsync(p->dirfd) != 0 && errno != EINVAL && errno != EROFS)
        rc = moe_err_sys(e, MOE_EIO, errno, "%s: is there, but may not survive a crash", p->path);
    if (how == MOE_PART_EXCHANGE && remove_tree(p->dirfd, p->tmp) != 0)
        rc = moe_err_sys(e, MOE_EIO, errno, "%s: is there, but the old one is left as %s",
            p->path, p->tmp);
    p->tmp[0] = '\0';
    return rc;
}

void
moe_part_drop(struct moe_part *p)
{
    if (p->tmp[0] != '\0' && !p->kept)
        (void)remove_tree(p->dirfd, p->tmp);
    p->tmp[0] = '\0';
}

void
moe_part_fini(struct moe_part *p)
{
    if (p->fd >= 0)
        (void)close(p->fd);
    if (p->dirfd >= 0)
        (void)close(p->dirfd);
    free(p->path);
    free(p->real);
    *p = (struct moe_part)MOE_PART_INIT;
}
