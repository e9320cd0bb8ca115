/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns reading to the end and reading exact ranges. Does not buffer and does
 * not look at what it reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/read.h"
#include "common/base/stop.h"

/* How much a pipe is asked for at a time; also where a regular file's end is looked for. */
#define PIECE ((size_t)64 << 10)

static int
open_input(const char *path, int *fd, struct moe_err *e)
{
    int rc;

    while ((*fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)) < 0) {
        if (errno != EINTR)
            return moe_err_sys(e, errno == ENOENT || errno == ENOTDIR ? MOE_ENOENT : MOE_EIO,
                errno, "%s", path);
        if ((rc = moe_stop_check(e)) != 0)
            return rc;
    }
    return 0;
}

int
moe_read_file(const char *path, size_t limit, struct moe_buf *b, struct moe_err *e)
{
    int fd, rc;

    if (strcmp(path, "-") == 0)
        return moe_read_fd(STDIN_FILENO, "stdin", limit, b, e);
    moe_buf_clear(b);
    if ((rc = open_input(path, &fd, e)) != 0)
        return rc;
    rc = moe_read_fd(fd, path, limit, b, e);
    (void)close(fd);
    return rc;
}

int
moe_read_fd(int fd, const char *name, size_t limit, struct moe_buf *b, struct moe_err *e)
{
    size_t want = PIECE;
    struct stat st;
    int rc;

    moe_buf_clear(b);
    /* A regular file tells its size: one read, and one that meets the end. */
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        if ((uint64_t)st.st_size > limit)
            return moe_err_set(e, MOE_ELIMIT, "%s: larger than %zu bytes", name, limit);
        want = (size_t)st.st_size + 1;
    }
    for (;;) {
        char *to = moe_buf_room(b, want);
        ssize_t got;

        if (to == NULL)
            return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
        if ((got = read(fd, to, want)) < 0) {
            if (errno != EINTR)
                return moe_err_sys(e, MOE_EIO, errno, "%s", name);
            if ((rc = moe_stop_check(e)) != 0)
                return rc;
            continue;
        }
        b->len += (size_t)got;
        if (b->len > limit)
            return moe_err_set(e, MOE_ELIMIT, "%s: larger than %zu bytes", name, limit);
        if (got == 0)
            break;
        want = (size_t)got < want ? want - (size_t)got : PIECE;
    }
    moe_buf_add(b, "", 0);
    return 0;
}

int
moe_read_at(int fd, const char *name, void *p, size_t n, uint64_t at, struct moe_err *e)
{
    unsigned char *to = p;
    int rc;

    while (n > 0) {
        ssize_t got = at > INT64_MAX ? 0 : pread(fd, to, n, (off_t)at);

        if (got == 0)
            return moe_err_set(e, MOE_EFORMAT, "%s: offset %llu: the file ends, %zu bytes early",
                name, (unsigned long long)at, n);
        if (got < 0) {
            if (errno != EINTR)
                return moe_err_sys(e, MOE_EIO, errno, "%s: offset %llu", name,
                    (unsigned long long)at);
            if ((rc = moe_stop_check(e)) != 0)
                return rc;
            continue;
        }
        to += got;
        n -= (size_t)got;
        at += (uint64_t)got;
    }
    return 0;
}
