/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns what the names in a store's folders mean as numbers.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/store/names.h"

static int
failed(const char *path, const char *sub, struct moe_err *e)
{
    return moe_err_sys(e, MOE_EIO, errno, "%s/%s", path, sub);
}

static int
open_dir(int dirfd, const char *sub)
{
    return openat(dirfd, sub, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool
moe_names_number(const char *p, size_t n, uint64_t *v)
{
    *v = 0;
    if (n == 0 || n > 19 || (p[0] == '0' && n > 1))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        *v = *v * 10 + (uint64_t)(p[i] - '0');
    }
    return *v <= MOE_NAMES_MAX;
}

static int
add(struct moe_names *n, uint64_t v)
{
    if (n->n == n->cap) {
        size_t cap = n->cap > 0 ? 2 * n->cap : 64;
        uint64_t *more = reallocarray(n->v, cap, sizeof(*more));

        if (more == NULL)
            return -1;
        n->v = more;
        n->cap = cap;
    }
    n->v[n->n++] = v;
    return 0;
}

static int
ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

int
moe_names_list(int dirfd, const char *path, const char *sub, const char *suffix,
    struct moe_names *out, struct moe_err *e)
{
    size_t tail = strlen(suffix);
    struct dirent *at;
    int rc = 0, fd = open_dir(dirfd, sub);
    DIR *d;

    memset(out, 0, sizeof(*out));
    if (fd < 0)
        return failed(path, sub, e);
    if ((d = fdopendir(fd)) == NULL) {
        rc = failed(path, sub, e);
        (void)close(fd);
        return rc;
    }
    while (errno = 0, (at = readdir(d)) != NULL) {
        size_t n = strlen(at->d_name);
        uint64_t v;

        if (n > tail && strcmp(at->d_name + n - tail, suffix) == 0 &&
            moe_names_number(at->d_name, n - tail, &v) && add(out, v) != 0) {
            rc = moe_err_set(e, MOE_ENOMEM, "%s/%s: out of memory", path, sub);
            break;
        }
    }
    if (rc == 0 && at == NULL && errno != 0)
        rc = failed(path, sub, e);
    (void)closedir(d);
    if (rc == 0 && out->n > 1)
        qsort(out->v, out->n, sizeof(*out->v), ascending);
    return rc;
}

void
moe_names_fini(struct moe_names *n)
{
    free(n->v);
    memset(n, 0, sizeof(*n));
}

int
moe_names_sync(int dirfd, const char *path, const char *sub, struct moe_err *e)
{
    int rc = 0, fd = open_dir(dirfd, sub);

    if (fd < 0)
        return failed(path, sub, e);
    while (fsync(fd) != 0)
        if (errno != EINTR) {
            rc = failed(path, sub, e);
            break;
        }
    (void)close(fd);
    return rc;
}

int
moe_names_tidy(int dirfd, const char *path, const char *sub, struct moe_err *e)
{
    struct dirent *at;
    int rc = 0, fd = open_dir(dirfd, sub);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (d == NULL) {
        rc = failed(path, sub, e);
        if (fd >= 0)
            (void)close(fd);
        return rc;
    }
    while ((at = readdir(d)) != NULL) {
        size_t n = strlen(at->d_name);

        if (at->d_name[0] == '.' && n > 5 && strcmp(at->d_name + n - 5, ".part") == 0 &&
            unlinkat(fd, at->d_name, 0) != 0 && errno != ENOENT)
            rc = failed(path, sub, e);
    }
    (void)closedir(d);
    return rc;
}

int
moe_names_check(int dirfd, const char *path, const char *sub, struct moe_err *e)
{
    struct stat st;

    if (fstatat(dirfd, sub, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return moe_err_sys(e, MOE_EFORMAT, errno, "%s/%s", path, sub);
    return S_ISDIR(st.st_mode) ? 0
                               : moe_err_set(e, MOE_EFORMAT, "%s/%s: is no directory", path, sub);
}
