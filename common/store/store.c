/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the directory of a store: how it begins, who opens it, and the order in
 * which a save becomes visible. Does not know what is in packs.
 */
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
#include "common/store/lease.h"
#include "common/store/store.h"

#define MARK_TEXT "moe-store 1\n"
#define MARK_MAX ((size_t)64)
#define NAME 64

static const char *const folders[] = { "lease", "packs", "refs", "saves", "trash", NULL };

static int
no_memory(const char *path, struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", path);
}

/* ---- Beginning --------------------------------------------------------------------------- */

/* An empty file, durable but for its name. */
static int
touch(int dirfd, const char *path, const char *name, struct moe_err *e)
{
    int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);

    if (fd < 0 || fsync(fd) != 0) {
        int rc = moe_err_sys(e, MOE_EIO, errno, "%s/%s", path, name);

        if (fd >= 0)
            (void)close(fd);
        return rc;
    }
    (void)close(fd);
    return 0;
}

/* All of a store but its mark. Done again after a crash it does no harm. */
static int
furnish(int dirfd, const char *path, struct moe_err *e)
{
    int rc = 0;

    for (size_t i = 0; folders[i] != NULL; i++)
        if (mkdirat(dirfd, folders[i], 0777) != 0 && errno != EEXIST)
            return moe_err_sys(e, MOE_EIO, errno, "%s/%s", path, folders[i]);
    if ((rc = touch(dirfd, path, "lock", e)) == 0 &&
        (rc = touch(dirfd, path, "lease/0", e)) == 0 &&
        (rc = moe_names_sync(dirfd, path, "lease", e)) == 0)
        rc = moe_names_sync(dirfd, path, ".", e);
    return rc;
}

/* Write a small file through a temporary. */
static int
put_file(const char *path, const char *name, bool force, const void *p, size_t n,
    struct moe_err *e)
{
    struct moe_buf full = MOE_BUF_INIT;
    struct moe_out *o = NULL;
    int rc;

    moe_buf_fmt(&full, "%s/%s", path, name);
    if (full.bad)
        rc = no_memory(path, e);
    else if ((rc = moe_out_open(full.p, force, 0, &o, e)) == 0 &&
        (rc = moe_out_write(o, p, n, e)) == 0) {
        rc = moe_out_commit(o, e);
        o = NULL;
    }
    moe_out_abort(o);
    moe_buf_fini(&full);
    return rc;
}

/* Make the name of path itself durable. */
static int
sync_parent(const char *path, struct moe_err *e)
{
    char *up = NULL;
    int rc = 0, fd;

    if (asprintf(&up, "%s/..", path) < 0)
        return no_memory(path, e);
    fd = open(up, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
        rc = moe_err_sys(e, MOE_EIO, errno, "%s", up);
    if (fd >= 0)
        (void)close(fd);
    free(up);
    return rc;
}

/* Only what an earlier, interrupted beginning leaves may be there. */
static int
check_empty(int dirfd, const char *path, struct moe_err *e)
{
    static const char *const filled[] = { "packs", "refs", "saves", NULL };
    struct moe_names n;
    struct stat st;
    int rc = 0;

    if (fstatat(dirfd, MOE_STORE_MARK, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return moe_err_set(e, MOE_EEXIST, "%s: is a store already", path);
    for (size_t i = 0; rc == 0 && filled[i] != NULL; i++) {
        if (faccessat(dirfd, filled[i], F_OK, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        rc = moe_names_list(dirfd, path, filled[i], i == 0 ? ".pack" : "", &n, e);
        if (rc == 0 && n.n > 0)
            rc = moe_err_set(e, MOE_EEXIST, "%s: is not empty", path);
        moe_names_fini(&n);
    }
    return rc;
}

int
moe_store_init(const char *path, struct moe_err *e)
{
    int rc, fd;

    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return moe_err_sys(e, MOE_EIO, errno, "%s", path);
    if ((fd = moe_beneath_dir(path, e)) < 0)
        return fd;
    if ((rc = check_empty(fd, path, e)) == 0 && (rc = furnish(fd, path, e)) == 0 &&
        (rc = put_file(path, MOE_STORE_MARK, false, MARK_TEXT, strlen(MARK_TEXT), e)) == 0)
        rc = sync_parent(path, e);
    (void)close(fd);
    return rc;
}

/* ---- Opening ------------------------------------------------------------------------------ */

bool
moe_store_is(const char *path)
{
    char *mark = NULL;
    bool yes = asprintf(&mark, "%s/%s", path, MOE_STORE_MARK) >= 0 && access(mark, F_OK) == 0;

    free(mark);
    return yes;
}

static int
check_mark(const struct moe_store *s, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc, fd = moe_beneath_open(s->dirfd, s->path, MOE_STORE_MARK, e);

    if (fd < 0)
        return fd == MOE_ENOENT ? moe_err_set(e, MOE_EFORMAT, "%s: is no store (moe-ckpt init "
                                      "makes one)", s->path) : fd;
    rc = moe_read_fd(fd, s->path, MARK_MAX, &b, e);
    (void)close(fd);
    if (rc == MOE_ELIMIT || (rc == 0 && (b.len != strlen(MARK_TEXT) ||
            memcmp(b.p, MARK_TEXT, b.len) != 0)))
        rc = moe_err_set(e, MOE_EFORMAT, "%s/%s: damaged, or of a form this program does not know",
            s->path, MOE_STORE_MARK);
    moe_buf_fini(&b);
    for (size_t i = 0; rc == 0 && folders[i] != NULL; i++)
        rc = moe_names_check(s->dirfd, s->path, folders[i], e);
    return rc;
}

int
moe_store_open(const char *path, bool writer, int wait_ms, struct moe_store **out,
    struct moe_err *e)
{
    struct moe_store *s = calloc(1, sizeof(*s));
    int rc = 0;

    *out = NULL;
    if (s == NULL || (s->path = strdup(path)) == NULL) {
        free(s);
        return no_memory(path, e);
    }
    s->held = -1;
    s->writer = writer;
    if ((s->dirfd = moe_beneath_dir(path, e)) < 0)
        rc = s->dirfd;
    else if ((rc = check_mark(s, e)) == 0) {
        s->held = writer ? moe_lease_write(s->dirfd, path, wait_ms, e)
                         : moe_lease_read(s->dirfd, path, e);
        rc = s->held < 0 ? s->held : moe_packs_new(s->dirfd, s->path, &s->packs, e);
    }
    if (rc != 0) {
        moe_store_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void
moe_store_close(struct moe_store *s)
{
    if (s == NULL)
        return;
    moe_packs_free(s->packs);
    if (s->held >= 0)
        (void)close(s->held);
    if (s->dirfd >= 0)
        (void)close(s->dirfd);
    free(s->path);
    free(s);
}

/* ---- Saves -------------------------------------------------------------------------------- */

int
moe_store_ids(const struct moe_store *s, struct moe_names *out, struct moe_err *e)
{
    return moe_names_list(s->dirfd, s->path, "saves", "", out, e);
}

static void
file_of(uint64_t id, char name[static NAME])
{
    (void)snprintf(name, NAME, "saves/%" PRIu64, id);
}

bool
moe_store_has(const struct moe_store *s, uint64_t id)
{
    char name[NAME];

    file_of(id, name);
    return faccessat(s->dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int
moe_store_read(const struct moe_store *s, uint64_t id, struct moe_snapshot *out,
    struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    char name[NAME];
    int rc, fd;

    *out = (struct moe_snapshot)MOE_SNAPSHOT_INIT;
    file_of(id, name);
    if ((fd = moe_beneath_open(s->dirfd, s->path, name, e)) < 0)
        return fd == MOE_ENOENT
            ? moe_err_set(e, fd, "%s: there is no save %" PRIu64, s->path, id) : fd;
    if ((rc = moe_read_fd(fd, name, MOE_SNAPSHOT_MAX, &b, e)) == 0 &&
        (rc = moe_snapshot_decode(b.p, b.len, name, out, e)) == 0 && out->id != id)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: is save %" PRIu64, name, out->id);
    (void)close(fd);
    moe_buf_fini(&b);
    return rc == 0 ? 0 : moe_err_at(e, "%s", s->path);
}

int
moe_store_find(const struct moe_store *s, const char *word, struct moe_snapshot *out,
    struct moe_err *e)
{
    bool latest = strcmp(word, MOE_REF_LATEST) == 0;
    struct moe_names ids;
    struct moe_ref ref;
    uint64_t id;
    int rc;

    *out = (struct moe_snapshot)MOE_SNAPSHOT_INIT;
    if (moe_names_number(word, strlen(word), &id))
        return moe_store_read(s, id, out, e);
    rc = moe_ref_read(s->dirfd, s->path, word, &ref, e);
    if (rc == MOE_ENOENT && latest) {
        /* The very first save may have ended between its manifest and the ref. */
        if ((rc = moe_store_ids(s, &ids, e)) == 0)
            rc = ids.n > 0 ? moe_store_read(s, ids.v[ids.n - 1], out, e)
                           : moe_err_set(e, MOE_ENOENT, "%s: holds no save", s->path);
        moe_names_fini(&ids);
        return rc;
    }
    if (rc != 0 || (rc = moe_store_read(s, ref.id, out, e)) != 0)
        return rc;
    if (memcmp(out->sum, ref.sum, MOE_DIGEST_LEN) != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s/refs/%s: save %" PRIu64 " is not the one it named",
            s->path, word, ref.id);
    return 0;
}

int
moe_store_commit(const struct moe_store *s, struct moe_snapshot *snap, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_ref ref;
    char name[NAME];
    int rc;

    file_of(snap->id, name);
    if (moe_store_has(s, snap->id))
        return moe_err_set(e, MOE_EEXIST, "%s: save %" PRIu64 " is there already", s->path,
            snap->id);
    if ((rc = moe_snapshot_encode(snap, &b, e)) != 0)
        goto out;
    if ((rc = put_file(s->path, name, false, b.p, b.len, e)) == 0) {
        ref.id = snap->id;
        memcpy(ref.sum, snap->sum, MOE_DIGEST_LEN);
        rc = moe_ref_write(s->dirfd, s->path, MOE_REF_LATEST, &ref, e);
    }
    /*
     * Who is told of a failure must find the store as it was; unless the ref
     * has moved, and only what came after failed: then the save stays.
     */
    if (rc != 0 && rc != MOE_EEXIST &&
        (moe_ref_read(s->dirfd, s->path, MOE_REF_LATEST, &ref, NULL) != 0 || ref.id != snap->id))
        (void)unlinkat(s->dirfd, name, 0);
out:
    moe_buf_fini(&b);
    return rc;
}

int
moe_store_drop(const struct moe_store *s, uint64_t id, struct moe_err *e)
{
    char name[NAME];

    file_of(id, name);
    if (unlinkat(s->dirfd, name, 0) != 0)
        return moe_err_sys(e, errno == ENOENT ? MOE_ENOENT : MOE_EIO, errno, "%s/%s", s->path,
            name);
    return moe_names_sync(s->dirfd, s->path, "saves", e);
}

/* Raise *next above all packs in a folder. */
static int
above(const struct moe_store *s, const char *folder, uint64_t *next, struct moe_err *e)
{
    struct moe_names n;
    int rc = moe_names_list(s->dirfd, s->path, folder, ".pack", &n, e);

    if (rc == 0 && n.n > 0 && n.v[n.n - 1] >= *next)
        *next = n.v[n.n - 1] + 1;
    moe_names_fini(&n);
    return rc;
}

int
moe_store_next_pack(const struct moe_store *s, uint64_t *number, struct moe_err *e)
{
    struct moe_names epochs;
    char folder[64];
    int rc;

    *number = 1;
    if ((rc = above(s, "packs", number, e)) != 0)
        return rc;
    rc = moe_names_list(s->dirfd, s->path, "trash", "", &epochs, e);
    for (size_t i = 0; rc == 0 && i < epochs.n; i++) {
        (void)snprintf(folder, sizeof(folder), "trash/%" PRIu64, epochs.v[i]);
        rc = above(s, folder, number, e);
    }
    moe_names_fini(&epochs);
    if (rc == 0 && *number > MOE_NAMES_MAX)
        rc = moe_err_set(e, MOE_ELIMIT, "%s: no number for a pack is left", s->path);
    return rc;
}
