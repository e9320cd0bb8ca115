/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns second readings. What is read first and how is the callers'.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/read.h"
#include "common/base/stop.h"
#include "common/trust/reread.h"

#define PIECE ((size_t)1 << 20)
#define ALIGN ((uint64_t)4096)      /* what O_DIRECT asks of addresses and sizes, at most */

const char *
moe_reread_name(enum moe_reread r)
{
    static const char *const names[] = { "changed while checking", "transient", "page cache",
        "disk", "memory or disk" };

    return names[r];
}

/* One reading: OpenSSL's digest of pieces that arrive in order. */
struct reading {
    EVP_MD_CTX *md;
    unsigned char *buf;         /* PIECE bytes, aligned */
};

static int
begin(struct reading *r, struct moe_err *e)
{
    r->md = EVP_MD_CTX_new();
    r->buf = aligned_alloc(ALIGN, PIECE);
    if (r->md == NULL || r->buf == NULL || EVP_DigestInit_ex(r->md, EVP_sha256(), NULL) != 1)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    return 0;
}

static int
end(struct reading *r, int rc, unsigned char *sum, struct moe_err *e)
{
    if (rc == 0 && EVP_DigestFinal_ex(r->md, sum, NULL) != 1)
        rc = moe_err_set(e, MOE_EIO, "SHA-256 failed");
    EVP_MD_CTX_free(r->md);
    free(r->buf);
    return rc;
}

static int
cached(int fd, const char *name, uint64_t at, uint64_t len, unsigned char *sum,
    struct moe_err *e)
{
    struct reading r = { NULL, NULL };
    int rc = begin(&r, e);

    while (rc == 0 && len > 0) {
        size_t k = len < PIECE ? (size_t)len : PIECE;
        if ((rc = moe_read_at(fd, name, r.buf, k, at, e)) == 0 &&
            EVP_DigestUpdate(r.md, r.buf, k) != 1)
            rc = moe_err_set(e, MOE_EIO, "SHA-256 failed");
        at += k;
        len -= k;
    }
    return end(&r, rc, sum, e);
}

/* A descriptor of the same file that goes past the cache, or -1. */
static int
open_direct(int fd)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
}

int
moe_reread_direct(int fd, const char *name, uint64_t at, uint64_t len,
    unsigned char sum[static MOE_DIGEST_LEN], bool *direct, struct moe_err *e)
{
    struct reading r = { NULL, NULL };
    int d = open_direct(fd), rc = begin(&r, e);

    *direct = d >= 0;
    while (*direct && rc == 0 && len > 0) {
        uint64_t from = at & ~(ALIGN - 1);
        size_t skip = (size_t)(at - from);
        ssize_t got = pread(d, r.buf, PIECE, (off_t)from);
        if (got < 0 && errno == EINVAL) {
            *direct = false;
        } else if (got < 0 && errno != EINTR) {
            rc = moe_err_sys(e, MOE_EIO, errno, "%s", name);
        } else if (got >= 0 && (size_t)got <= skip) {
            rc = moe_err_set(e, MOE_EFORMAT, "%s: ends early", name);
        } else if (got >= 0) {
            size_t k = (size_t)got - skip;
            k = k < len ? k : (size_t)len;
            if (EVP_DigestUpdate(r.md, r.buf + skip, k) != 1)
                rc = moe_err_set(e, MOE_EIO, "SHA-256 failed");
            at += k;
            len -= k;
        }
        if (rc == 0)
            rc = moe_stop_check(e);
    }
    if (d >= 0)
        (void)close(d);
    return end(&r, rc, sum, e);
}

static bool
same_file(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
        a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
        a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int
moe_reread_judge(int fd, const char *name, uint64_t at, uint64_t len,
    const unsigned char sum[static MOE_DIGEST_LEN], const struct stat *before,
    enum moe_reread *out, struct moe_err *e)
{
    unsigned char memory[MOE_DIGEST_LEN], disk[MOE_DIGEST_LEN];
    struct stat now;
    bool direct = false, m, d;
    int rc = cached(fd, name, at, len, memory, e);

    if (rc == 0)
        rc = moe_reread_direct(fd, name, at, len, disk, &direct, e);
    if (rc == 0 && fstat(fd, &now) != 0)
        rc = moe_err_sys(e, MOE_EIO, errno, "%s", name);
    if (rc != 0)
        return rc;
    m = memcmp(memory, sum, MOE_DIGEST_LEN) == 0;
    d = direct && memcmp(disk, sum, MOE_DIGEST_LEN) == 0;
    if (!same_file(before, &now))
        *out = MOE_REREAD_CHANGED;
    else if (m && (d || !direct))
        *out = MOE_REREAD_TRANSIENT;
    else if (d)
        *out = MOE_REREAD_CACHE;
    else
        *out = direct ? MOE_REREAD_DISK : MOE_REREAD_UNKNOWN;
    return 0;
}
