/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the rule by which names from files become descriptors. Does not read.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/beneath.h"
#include "common/base/beneath_walk.h"

/* A named pipe or a device is not waited for: it is opened and refused. */
#define FILE_FLAGS (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
#define STEP_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/* openat2 may lose a race against renames; so often in a row, somebody plays. */
#define MAX_TRIES 100

struct place {
    int dirfd;
    const char *dir, *name;
};

static int
refuse(struct place at, struct moe_err *e, const char *what)
{
    return moe_err_set(e, MOE_EFORMAT, "%s/%s: %s", at.dir, at.name, what);
}

/* What a failed open() of any kind means. */
static int
failed(struct place at, struct moe_err *e, int sys)
{
    switch (sys) {
    case EXDEV: return refuse(at, e, "leads out of its directory");
    case ELOOP: return refuse(at, e, "is a link that is not followed");
    case ENXIO: return refuse(at, e, "not a regular file");
    case ENAMETOOLONG: return refuse(at, e, "the name is too long");
    case ENOENT:
    case ENOTDIR: return moe_err_sys(e, MOE_ENOENT, sys, "%s/%s", at.dir, at.name);
    default: return moe_err_sys(e, MOE_EIO, sys, "%s/%s", at.dir, at.name);
    }
}

/* Refuse what no honest file says: absolute names, "..", a "/" at the end. */
static int
check_name(struct place at, struct moe_err *e)
{
    const char *p = at.name;

    if (*p == '\0')
        return refuse(at, e, "the name is empty");
    if (*p == '/')
        return refuse(at, e, "the name is absolute");
    if (strlen(p) >= PATH_MAX)
        return refuse(at, e, "the name is too long");
    for (;;) {
        size_t n = strcspn(p, "/");

        if (n == 2 && p[0] == '.' && p[1] == '.')
            return refuse(at, e, "the name leads out of its directory");
        if (p[n] == '\0')
            break;
        p += n + 1;
    }
    return *p == '\0' ? refuse(at, e, "not a regular file") : 0;
}

/* fd, if it is a regular file; it is closed otherwise. */
static int
regular(int fd, struct place at, struct moe_err *e)
{
    struct stat st;
    int rc = 0;

    if (fstat(fd, &st) != 0)
        rc = failed(at, e, errno);
    else if (!S_ISREG(st.st_mode))
        rc = refuse(at, e, "not a regular file");
    else if (fcntl(fd, F_SETFL, O_RDONLY) != 0)
        rc = failed(at, e, errno);
    if (rc == 0)
        return fd;
    (void)close(fd);
    return rc;
}

/* The component at p, copied to part; returns its length. */
static size_t
component(const char *p, char part[static NAME_MAX + 1])
{
    size_t n = strcspn(p, "/");

    if (n > NAME_MAX)
        return n;
    memcpy(part, p, n);
    part[n] = '\0';
    return n;
}

/*
 * The directory that holds the last component of at.name, reached without a
 * link, in *fd (to be closed unless it is at.dirfd); *last is that component,
 * *depth how many directories were entered.
 */
static int
walk(struct place at, int *fd, const char **last, int *depth, struct moe_err *e)
{
    char part[NAME_MAX + 1];
    const char *p = at.name, *slash;
    struct stat st;

    *fd = at.dirfd;
    *depth = 0;
    for (; (slash = strchr(p, '/')) != NULL; p = slash + 1) {
        size_t n = component(p, part);
        int next = -1, sys = ENAMETOOLONG;

        if (n == 0 || (n == 1 && *p == '.'))
            continue;
        if (n <= NAME_MAX) {
            next = openat(*fd, part, STEP_FLAGS);
            sys = errno;
        }
        if (next < 0 && sys == ENOTDIR && fstatat(*fd, part, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISLNK(st.st_mode))
            sys = ELOOP;
        if (*fd != at.dirfd)
            (void)close(*fd);
        *fd = next;
        if (next < 0)
            return failed(at, e, sys);
        ++*depth;
    }
    *last = p;
    return 0;
}

/* ---- The cache of Hugging Face ---------------------------------------------------- */

/*
 * The digest in link text "../../blobs/HASH", with one "../" more for each of
 * depth directories; NULL: it is another link.
 */
static const char *
blob_name(const char *link, int depth)
{
    size_t n;

    for (int i = 0; i < depth + 2; i++, link += 3)
        if (strncmp(link, "../", 3) != 0)
            return NULL;
    if (strncmp(link, "blobs/", 6) != 0)
        return NULL;
    link += 6;
    n = strlen(link);
    /* SHA-1 of a git blob, or SHA-256 of a large file. */
    if ((n != 40 && n != 64) || strspn(link, "0123456789abcdef") != n)
        return NULL;
    return link;
}

/* The repository of snapshot directory dirfd, or -1 when it is none. */
static int
repository(int dirfd)
{
    int repo = openat(dirfd, "../..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat up, snapshots;

    if (repo < 0)
        return -1;
    if (fstatat(dirfd, "..", &up, 0) == 0 &&
        fstatat(repo, "snapshots", &snapshots, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(snapshots.st_mode) && up.st_dev == snapshots.st_dev &&
        up.st_ino == snapshots.st_ino)
        return repo;
    (void)close(repo);
    return -1;
}

/* Follow link `last` of directory fd if it has the cache's exact shape. */
static int
open_blob(struct place at, int fd, const char *last, int depth, struct moe_err *e)
{
    char link[PATH_MAX];
    ssize_t n = readlinkat(fd, last, link, sizeof(link) - 1);
    const char *blob;
    int repo, blobs, got;

    if (n < 0)
        return errno == EINVAL ? failed(at, e, ELOOP) : failed(at, e, errno);
    link[n] = '\0';
    if ((blob = blob_name(link, depth)) == NULL || (repo = repository(at.dirfd)) < 0)
        return failed(at, e, EXDEV);
    blobs = openat(repo, "blobs", STEP_FLAGS);
    (void)close(repo);
    if (blobs < 0)
        return failed(at, e, errno == ENOTDIR ? EXDEV : errno);
    got = openat(blobs, blob, FILE_FLAGS | O_NOFOLLOW);
    if (got < 0) {
        int sys = errno;

        (void)close(blobs);
        return failed(at, e, sys);
    }
    (void)close(blobs);
    return regular(got, at, e);
}

/* ---- Public ----------------------------------------------------------------------- */

int
moe_beneath_dir(const char *path, struct moe_err *e)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return moe_err_sys(e, errno == ENOENT ? MOE_ENOENT : MOE_EIO, errno, "%s", path);
    return fd;
}

int
moe_beneath_walk(int dirfd, const char *dir, const char *name, struct moe_err *e)
{
    struct place at = { dirfd, dir, name };
    int rc, fd = -1, got, depth, sys;
    const char *last = name;

    if ((rc = check_name(at, e)) != 0 || (rc = walk(at, &fd, &last, &depth, e)) != 0)
        return rc;
    got = openat(fd, last, FILE_FLAGS | O_NOFOLLOW);
    sys = errno;
    if (got >= 0)
        rc = regular(got, at, e);
    else if (sys == ELOOP)
        rc = open_blob(at, fd, last, depth, e);
    else
        rc = failed(at, e, sys);
    if (fd != dirfd)
        (void)close(fd);
    return rc;
}

int
moe_beneath_open(int dirfd, const char *dir, const char *name, struct moe_err *e)
{
    const struct open_how how = {
        .flags = FILE_FLAGS,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    struct place at = { dirfd, dir, name };
    int rc, tries = 0;
    long fd;

    if ((rc = check_name(at, e)) != 0)
        return rc;
    do
        fd = syscall(SYS_openat2, dirfd, name, &how, sizeof(how));
    while (fd < 0 && (errno == EAGAIN || errno == EINTR) && ++tries < MAX_TRIES);
    if (fd >= 0)
        return regular((int)fd, at, e);
    /* EPERM: filters of system calls that do not know this one. EXDEV: perhaps a cache. */
    if (errno == ENOSYS || errno == EPERM || errno == EXDEV)
        return moe_beneath_walk(dirfd, dir, name, e);
    return failed(at, e, errno);
}
