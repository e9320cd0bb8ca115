/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns mapping whole files for reading. Gives no advice about order.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/map.h"

int
moe_map_fd(struct moe_map *m, int fd, const char *name, struct moe_err *e)
{
    struct stat st;
    void *p;

    *m = (struct moe_map)MOE_MAP_INIT;
    if (fstat(fd, &st) != 0)
        return moe_err_sys(e, MOE_EIO, errno, "%s", name);
    if (!S_ISREG(st.st_mode))
        return moe_err_set(e, MOE_EFORMAT, "%s: not a regular file", name);
    if (st.st_size == 0)
        return 0;
    if ((uint64_t)st.st_size > SIZE_MAX)
        return moe_err_set(e, MOE_ELIMIT, "%s: too large to be mapped", name);
    p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return moe_err_sys(e, errno == ENOMEM ? MOE_ENOMEM : MOE_EIO, errno, "%s", name);
    m->p = p;
    m->len = (size_t)st.st_size;
    return 0;
}

int
moe_map_open(struct moe_map *m, const char *path, struct moe_err *e)
{
    /* Not to wait for the writer of a named pipe, only to refuse it. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), rc;

    *m = (struct moe_map)MOE_MAP_INIT;
    if (fd < 0)
        return moe_err_sys(e, errno == ENOENT || errno == ENOTDIR ? MOE_ENOENT : MOE_EIO, errno,
            "%s", path);
    rc = moe_map_fd(m, fd, path, e);
    (void)close(fd);
    return rc;
}

void
moe_map_close(struct moe_map *m)
{
    if (m->p != NULL)
        (void)munmap((void *)m->p, m->len);
    *m = (struct moe_map)MOE_MAP_INIT;
}
