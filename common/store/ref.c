/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns names of saves and the files that hold them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/beneath.h"
#include "common/base/out.h"
#include "common/base/read.h"
#include "common/store/names.h"
#include "common/store/ref.h"

#define TEXT_MAX ((size_t)96)   /* 19 digits, a blank, 64 digits, a newline */

bool
moe_ref_name_ok(const char *name)
{
    static const char chars[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t n = strlen(name);

    return n > 0 && n <= MOE_REF_MAX && name[0] != '.' && name[0] != '-' &&
        strspn(name, chars) == n && strspn(name, "0123456789") < n;
}

int
moe_ref_parse(const char *p, size_t n, const char *name, struct moe_ref *out, struct moe_err *e)
{
    const char *blank = memchr(p, ' ', n);
    size_t digits = blank != NULL ? (size_t)(blank - p) : 0;
    char hex[MOE_DIGEST_HEX];

    if (blank == NULL || n != digits + 1 + 64 + 1 || p[n - 1] != '\n' ||
        !moe_names_number(p, digits, &out->id) || !moe_digest_unhex(blank + 1, 64, out->sum) ||
        memcmp(moe_digest_hex(out->sum, hex), blank + 1, 64) != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: is no ref", name);
    return 0;
}

/* "refs/NAME" */
static int
file_of(const char *name, char file[static MOE_REF_MAX + 8], struct moe_err *e)
{
    if (!moe_ref_name_ok(name))
        return moe_err_set(e, MOE_EUSAGE, "%s: cannot be the name of a save", name);
    (void)snprintf(file, MOE_REF_MAX + 8, "refs/%s", name);
    return 0;
}

int
moe_ref_read(int dirfd, const char *path, const char *name, struct moe_ref *out,
    struct moe_err *e)
{
    char file[MOE_REF_MAX + 8];
    struct moe_buf b = MOE_BUF_INIT;
    int fd, rc;

    if ((rc = file_of(name, file, e)) != 0)
        return rc;
    if ((fd = moe_beneath_open(dirfd, path, file, e)) < 0)
        return fd == MOE_ENOENT ? moe_err_set(e, fd, "%s: no save is called %s", path, name) : fd;
    if ((rc = moe_read_fd(fd, file, TEXT_MAX, &b, e)) == MOE_ELIMIT)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: is no ref", file);
    if (rc == 0)
        rc = moe_ref_parse(b.p, b.len, file, out, e);
    (void)close(fd);
    moe_buf_fini(&b);
    return rc == 0 ? 0 : moe_err_at(e, "%s", path);
}

int
moe_ref_write(int dirfd, const char *path, const char *name, const struct moe_ref *r,
    struct moe_err *e)
{
    char file[MOE_REF_MAX + 8], hex[MOE_DIGEST_HEX], text[TEXT_MAX];
    struct moe_buf full = MOE_BUF_INIT;
    struct moe_out *o = NULL;
    struct stat st;
    int rc;

    if ((rc = file_of(name, file, e)) != 0)
        return rc;
    /* An output follows links, and a link in a store may lead anywhere. */
    if (fstatat(dirfd, file, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode))
        return moe_err_set(e, MOE_EFORMAT, "%s/%s: is no file", path, file);
    (void)snprintf(text, sizeof(text), "%" PRIu64 " %s\n", r->id, moe_digest_hex(r->sum, hex));
    moe_buf_fmt(&full, "%s/%s", path, file);
    if (full.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "%s: out of memory", path);
    else if ((rc = moe_out_open(full.p, true, 0, &o, e)) == 0 &&
        (rc = moe_out_write(o, text, strlen(text), e)) == 0) {
        rc = moe_out_commit(o, e);
        o = NULL;
    }
    moe_out_abort(o);
    moe_buf_fini(&full);
    return rc;
}

int
moe_ref_drop(int dirfd, const char *path, const char *name, struct moe_err *e)
{
    char file[MOE_REF_MAX + 8];
    int rc;

    if ((rc = file_of(name, file, e)) != 0)
        return rc;
    if (unlinkat(dirfd, file, 0) != 0)
        return errno == ENOENT ? moe_err_set(e, MOE_ENOENT, "%s: no save is called %s", path, name)
                               : moe_err_sys(e, MOE_EIO, errno, "%s/%s", path, file);
    return moe_names_sync(dirfd, path, "refs", e);
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int
moe_ref_list(int dirfd, const char *path, struct moe_ref_list *out, struct moe_err *e)
{
    int rc = 0, fd = openat(dirfd, "refs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct dirent *at;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    char **more;

    memset(out, 0, sizeof(*out));
    if (d == NULL) {
        rc = moe_err_sys(e, MOE_EIO, errno, "%s/refs", path);
        if (fd >= 0)
            (void)close(fd);
        return rc;
    }
    while (rc == 0 && (at = readdir(d)) != NULL) {
        if (!moe_ref_name_ok(at->d_name))
            continue;
        if ((more = reallocarray(out->name, out->n + 1, sizeof(char *))) != NULL)
            out->name = more;
        if (more == NULL || (more[out->n] = strdup(at->d_name)) == NULL)
            rc = moe_err_set(e, MOE_ENOMEM, "%s: out of memory", path);
        else
            out->n++;
    }
    (void)closedir(d);
    if (out->n > 1)
        qsort(out->name, out->n, sizeof(char *), by_name);
    return rc;
}

void
moe_ref_list_fini(struct moe_ref_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->name[i]);
    free(l->name);
    memset(l, 0, sizeof(*l));
}
