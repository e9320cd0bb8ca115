/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the locks of a store. What they protect is the caller's business.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/stop.h"
#include "common/store/lease.h"
#include "common/store/names.h"

#define NAP_NS 5000000L     /* between two tries for a lock */
#define MAX_TRIES 1000

static int
sys_error(const char *path, const char *what, struct moe_err *e)
{
    return moe_err_sys(e, MOE_EIO, errno, "%s: %s", path, what);
}

/* Take a lock of this type on all of fd: 1 taken, 0 somebody is in the way, or MOE_EIO. */
static int
try_lock(int fd, short type, const char *path, struct moe_err *e)
{
    struct flock l = { .l_type = type, .l_whence = SEEK_SET };

    for (;;) {
        if (fcntl(fd, F_OFD_SETLK, &l) == 0)
            return 1;
        if (errno == EAGAIN || errno == EACCES)
            return 0;
        if (errno != EINTR)
            return sys_error(path, "cannot be locked", e);
    }
}

static void
nap(void)
{
    struct timespec t = { 0, NAP_NS };

    (void)nanosleep(&t, NULL);
}

int
moe_lease_write(int dirfd, const char *path, int wait_ms, struct moe_err *e)
{
    uint64_t end = moe_clock_ns() + (uint64_t)wait_ms * 1000000;
    int rc, fd = openat(dirfd, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return sys_error(path, "lock", e);
    while ((rc = try_lock(fd, F_WRLCK, path, e)) == 0) {
        if ((rc = moe_stop_check(e)) != 0)
            break;
        if (moe_clock_ns() >= end) {
            rc = moe_err_set(e, MOE_EEXIST, "%s: another process is writing to it", path);
            break;
        }
        nap();
    }
    if (rc > 0)
        return fd;
    (void)close(fd);
    return rc;
}

/* Lowest and highest number in STORE/lease. */
static int
span(int dirfd, const char *path, uint64_t *lo, uint64_t *hi, struct moe_err *e)
{
    struct moe_names n;
    int rc = moe_names_list(dirfd, path, "lease", "", &n, e);

    if (rc == 0 && n.n == 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: lease: no epoch is there", path);
    if (rc == 0) {
        *lo = n.v[0];
        *hi = n.v[n.n - 1];
    }
    moe_names_fini(&n);
    return rc;
}

static int
open_epoch(int dirfd, uint64_t epoch, int flags)
{
    char name[64];

    (void)snprintf(name, sizeof(name), "lease/%" PRIu64, epoch);
    return openat(dirfd, name, flags | O_NOFOLLOW | O_CLOEXEC, 0666);
}

int
moe_lease_epoch(int dirfd, const char *path, uint64_t *epoch, struct moe_err *e)
{
    uint64_t lo;

    return span(dirfd, path, &lo, epoch, e);
}

int
moe_lease_read(int dirfd, const char *path, struct moe_err *e)
{
    uint64_t epoch;
    struct stat st;
    int rc, fd;

    for (int tries = 0; tries < MAX_TRIES; tries++) {
        if ((rc = moe_stop_check(e)) != 0 || (rc = moe_lease_epoch(dirfd, path, &epoch, e)) != 0)
            return rc;
        if ((fd = open_epoch(dirfd, epoch, O_RDONLY)) < 0) {
            if (errno != ENOENT)
                return sys_error(path, "lease", e);
            continue;
        }
        rc = try_lock(fd, F_RDLCK, path, e);
        /* An epoch that was ended between its opening and its lock protects nothing. */
        if (rc > 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink > 0)
            return fd;
        (void)close(fd);
        if (rc < 0)
            return rc;
        nap();
    }
    return moe_err_set(e, MOE_EIO, "%s: lease: no epoch stays long enough to be locked", path);
}

int
moe_lease_next(int dirfd, const char *path, struct moe_err *e)
{
    uint64_t epoch;
    int rc, fd;

    if ((rc = moe_lease_epoch(dirfd, path, &epoch, e)) != 0)
        return rc;
    fd = open_epoch(dirfd, epoch + 1, O_RDWR | O_CREAT | O_EXCL);
    if (fd < 0)
        return sys_error(path, "lease", e);
    (void)close(fd);
    return moe_names_sync(dirfd, path, "lease", e);
}

int
moe_lease_held(int dirfd, const char *path, uint64_t epoch, struct moe_err *e)
{
    uint64_t lo, hi;
    char name[64];
    int rc, fd;

    if ((rc = span(dirfd, path, &lo, &hi, e)) != 0)
        return rc;
    for (uint64_t at = lo; at <= epoch && at < hi; at++) {
        if ((fd = open_epoch(dirfd, at, O_RDWR)) < 0) {
            if (errno != ENOENT)
                return sys_error(path, "lease", e);
            continue;
        }
        rc = try_lock(fd, F_WRLCK, path, e);
        if (rc > 0) {
            /* Unlinked while locked: who waits for it sees that it is gone. */
            (void)snprintf(name, sizeof(name), "lease/%" PRIu64, at);
            if (unlinkat(dirfd, name, 0) != 0)
                rc = sys_error(path, name, e);
        }
        (void)close(fd);
        if (rc <= 0)
            return rc < 0 ? rc : 1;
    }
    return 0;
}
