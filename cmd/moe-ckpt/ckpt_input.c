/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns reading what is to be saved: each byte once, in order, and no file that
 * changes meanwhile.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/moe-ckpt/ckpt_input.h"
#include "common/base/beneath.h"
#include "common/base/num.h"
#include "common/base/read.h"
#include "common/base/stream.h"
#include "common/base/tool.h"
#include "common/store/layout.h"

#define STREAM_NAME "model.safetensors"
#define SUFFIX ".safetensors"

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

/* ---- Which files -------------------------------------------------------------------------- */

static int
add(struct ckpt_input *in, const char *folder, const char *name, struct moe_err *e)
{
    char **more = reallocarray(in->name, in->n + 1, sizeof(char *)), *full = NULL;

    if (more == NULL)
        return no_memory(e);
    in->name = more;
    if (in->n == MOE_SNAPSHOT_FILES)
        return moe_err_set(e, MOE_ELIMIT, "%s: more than %d files", in->path, MOE_SNAPSHOT_FILES);
    if (asprintf(&full, "%s%s%s", folder, folder[0] != '\0' ? "/" : "", name) < 0)
        return no_memory(e);
    in->name[in->n++] = full;
    return 0;
}

/* The files of directory fd (closed by this), a folder of that name; "": the first. */
static int
list(struct ckpt_input *in, int fd, const char *folder, struct moe_err *e)
{
    DIR *d = fdopendir(fd);
    struct dirent *at;
    struct stat st;
    int rc = 0, below;

    if (d == NULL) {
        (void)close(fd);
        return moe_err_sys(e, MOE_EIO, errno, "%s", in->path);
    }
    while (rc == 0 && (errno = 0, at = readdir(d)) != NULL) {
        if (at->d_name[0] == '.')
            continue;
        if (fstatat(fd, at->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            rc = moe_err_sys(e, MOE_EIO, errno, "%s/%s", in->path, at->d_name);
        else if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
            rc = add(in, folder, at->d_name, e);
        else if (!S_ISDIR(st.st_mode) || folder[0] != '\0')
            rc = moe_err_set(e, MOE_EUNSUP, "%s/%s%s%s: neither a file nor a folder of files",
                in->path, folder, folder[0] != '\0' ? "/" : "", at->d_name);
        else if ((below = openat(fd, at->d_name,
                      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
            rc = moe_err_sys(e, MOE_EIO, errno, "%s/%s", in->path, at->d_name);
        else
            rc = list(in, below, at->d_name, e);
    }
    if (rc == 0 && errno != 0)
        rc = moe_err_sys(e, MOE_EIO, errno, "%s", in->path);
    (void)closedir(d);
    return rc;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int
open_file(const struct ckpt_input *in, size_t i, struct moe_err *e)
{
    int fd;

    if (in->dirfd >= 0)
        return moe_beneath_open(in->dirfd, in->path, in->name[i], e);
    if (in->stream)
        return STDIN_FILENO;
    if ((fd = open(in->path, O_RDONLY | O_CLOEXEC)) < 0)
        return moe_err_sys(e, errno == ENOENT ? MOE_ENOENT : MOE_EIO, errno, "%s", in->path);
    return fd;
}

static int
measure(struct ckpt_input *in, struct moe_err *e)
{
    struct stat st;
    int rc = 0, fd;

    if ((in->size = calloc(in->n + 1, sizeof(*in->size))) == NULL)
        return no_memory(e);
    for (size_t i = 0; rc == 0 && i < in->n && !in->stream; i++) {
        if ((fd = open_file(in, i, e)) < 0)
            return fd;
        if (fstat(fd, &st) != 0)
            rc = moe_err_sys(e, MOE_EIO, errno, "%s", in->name[i]);
        else
            in->size[i] = (uint64_t)st.st_size;
        (void)close(fd);
        if (rc == 0 && !moe_num_add(in->bytes, in->size[i], &in->bytes))
            rc = moe_err_set(e, MOE_ELIMIT, "%s: too large", in->path);
    }
    return rc;
}

int
ckpt_input_open(const char *path, const char *name, struct ckpt_input *in, struct moe_err *e)
{
    const char *slash = strrchr(path, '/'), *own = slash != NULL ? slash + 1 : path;
    struct stat st;
    int rc;

    *in = (struct ckpt_input)CKPT_INPUT_INIT;
    in->path = path;
    in->shape = MOE_SNAPSHOT_FILE;
    in->stream = strcmp(path, "-") == 0;
    if (!in->stream && stat(path, &st) != 0)
        return moe_err_sys(e, errno == ENOENT ? MOE_ENOENT : MOE_EIO, errno, "%s", path);
    if (!in->stream && S_ISDIR(st.st_mode)) {
        if (name != NULL)
            return moe_err_set(e, MOE_EUSAGE, "%s: a directory's files keep their names", path);
        in->shape = MOE_SNAPSHOT_DIR;
        if ((in->dirfd = moe_beneath_dir(path, e)) < 0)
            return in->dirfd;
        if ((rc = fcntl(in->dirfd, F_DUPFD_CLOEXEC, 0)) < 0)
            return moe_err_sys(e, MOE_EIO, errno, "%s", path);
        if ((rc = list(in, rc, "", e)) != 0)
            return rc;
        if (in->n == 0)
            return moe_err_set(e, MOE_EFORMAT, "%s: holds no file", path);
        qsort(in->name, in->n, sizeof(char *), by_name);
        return measure(in, e);
    }
    if (!in->stream && !S_ISREG(st.st_mode))
        return moe_err_set(e, MOE_EUNSUP, "%s: neither a file nor a directory", path);
    if (name == NULL)
        name = in->stream ? STREAM_NAME : own;
    if (!moe_snapshot_name_ok(name))
        return moe_err_set(e, MOE_EUSAGE, "%s: no name for a file in a save (see --name)", name);
    return (rc = add(in, "", name, e)) != 0 ? rc : measure(in, e);
}

void
ckpt_input_close(struct ckpt_input *in)
{
    for (size_t i = 0; i < in->n; i++)
        free(in->name[i]);
    free(in->name);
    free(in->size);
    if (in->dirfd >= 0)
        (void)close(in->dirfd);
    *in = (struct ckpt_input)CKPT_INPUT_INIT;
}

/* ---- One file ------------------------------------------------------------------------------ */

struct one {
    const char *name;
    struct moe_stream *s;
    const unsigned char *p;     /* what the stream gave and is not yet taken */
    size_t n;
    struct moe_saver *saver;
    struct moe_progress *progress;
    struct moe_loader_box old;  /* of the parent, if it has such a file */
    bool has_old;
};

/* The next bytes, at most max; *n = 0 at the end. They are valid until the next call. */
static int
next(struct one *x, uint64_t max, const unsigned char **p, size_t *n, struct moe_err *e)
{
    const void *more;
    int rc;

    if (x->n == 0) {
        if ((rc = moe_stream_next(x->s, &more, &x->n, e)) != 0)
            return rc;
        x->p = more;
    }
    *p = x->p;
    *n = x->n < max ? x->n : (size_t)max;
    x->p += *n;
    x->n -= *n;
    moe_progress_add(x->progress, *n);
    return 0;
}

/* len bytes of the stream into a part of the saver; already: bytes of it that were read before. */
static int
give(struct one *x, uint64_t len, const struct moe_buf *already, struct moe_err *e)
{
    const unsigned char *p;
    size_t n;
    int rc;

    if (already != NULL) {
        if ((rc = moe_saver_add(x->saver, already->p, already->len, e)) != 0)
            return rc;
        len -= already->len;
    }
    while (len > 0) {
        if ((rc = next(x, len, &p, &n, e)) != 0)
            return rc;
        if (n == 0)
            return len == MOE_SAVER_REST ? 0
                : moe_err_set(e, MOE_EFORMAT, "%s: ends %llu bytes too early", x->name,
                    (unsigned long long)len);
        if ((rc = moe_saver_add(x->saver, p, n, e)) != 0)
            return rc;
        if (len != MOE_SAVER_REST)
            len -= n;
    }
    return 0;
}

/* Exactly len bytes into b. */
static int
collect(struct one *x, size_t len, struct moe_buf *b, struct moe_err *e)
{
    const unsigned char *p;
    size_t n;
    int rc;

    while (len > 0) {
        if ((rc = next(x, len, &p, &n, e)) != 0)
            return rc;
        if (n == 0)
            return moe_err_set(e, MOE_EFORMAT, "%s: ends within its header", x->name);
        moe_buf_add(b, p, n);
        len -= n;
    }
    return b->bad ? no_memory(e) : 0;
}

/* The part of the parent's file that holds the same tensor, or NULL. */
static const struct moe_parts_one *
old_part(const struct one *x, const struct moe_layout_part *p)
{
    const struct moe_layout_part *q;

    if (!x->has_old || x->old.parts.n == 0)
        return NULL;
    if (p->t == NULL)
        return &x->old.parts.v[0];
    q = moe_layout_find(&x->old.layout, x->old.h, p->t->name);
    return q != NULL && q->dtype == p->dtype ? &x->old.parts.v[q - x->old.layout.v] : NULL;
}

/* A safetensors file, its size known or UINT64_MAX. */
static int
safetensors(struct one *x, uint64_t size, struct moe_err *e)
{
    struct moe_buf head = MOE_BUF_INIT;
    struct moe_layout layout = { 0 };
    struct moe_safet *h = NULL;
    const unsigned char *p;
    size_t n;
    int rc;

    if ((rc = collect(x, 8, &head, e)) != 0 ||
        (rc = moe_safet_length((unsigned char *)head.p, x->name, &n, e)) != 0)
        goto out;
    if (size != UINT64_MAX && (size < 8 || n > size - 8)) {
        rc = moe_err_set(e, MOE_EFORMAT, "%s: a header of %zu bytes in a file of %llu", x->name, n,
            (unsigned long long)size);
        goto out;
    }
    if ((rc = collect(x, n, &head, e)) != 0 ||
        (rc = moe_safet_parse(head.p + 8, n, size == UINT64_MAX ? size : size - 8 - n, x->name,
             &h, e)) != 0 ||
        (rc = moe_layout_of(h, &layout, e)) != 0)
        goto out;
    for (size_t i = 0; rc == 0 && i < layout.n; i++) {
        const struct moe_layout_part *v = &layout.v[i];

        if ((rc = moe_saver_part(x->saver, v->dtype, v->len, old_part(x, v), e)) == 0)
            rc = give(x, v->len, i == 0 ? &head : NULL, e);
    }
    if (rc == 0 && (rc = next(x, 1, &p, &n, e)) == 0 && n > 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: bytes after its last tensor", x->name);
out:
    moe_layout_fini(&layout);
    moe_safet_free(h);
    moe_buf_fini(&head);
    return rc;
}

/* Find the parent's file of that name, of the same form. */
static const struct moe_snapshot_file *
find_old(struct one *x, const struct ckpt_input_base *base, enum moe_snapshot_form form)
{
    const struct moe_snapshot_file *f =
        base->snap != NULL ? moe_snapshot_find(base->snap, x->name) : NULL;
    struct moe_err why = { 0 };
    int rc;

    if (f == NULL || f->form != form || f->size == 0)
        return NULL;
    rc = form == MOE_SNAPSHOT_SAFET ? moe_loader_box(base->loader, f, &x->old, &why)
                                    : moe_parts_read(base->packs, f,
                                          &x->old.parts, &why);
    x->has_old = rc == 0;
    if (rc != 0)
        moe_tool_warn("save %llu: %s; saved without a base", (unsigned long long)base->snap->id,
            why.text);
    return rc == 0 ? f : NULL;
}

static bool
same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
        a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int
ckpt_input_save(const struct ckpt_input *in, size_t i, const struct ckpt_input_base *base,
    struct moe_saver *saver, struct moe_progress *progress, struct moe_err *e)
{
    size_t len = strlen(in->name[i]), tail = strlen(SUFFIX);
    bool safet = len >= tail && strcmp(in->name[i] + len - tail, SUFFIX) == 0;
    enum moe_snapshot_form form = safet ? MOE_SNAPSHOT_SAFET : MOE_SNAPSHOT_OPAQUE;
    struct one x = { .name = in->name[i], .saver = saver, .progress = progress };
    const struct moe_snapshot_file *old;
    struct stat before, after;
    int rc, fd;

    if ((fd = open_file(in, i, e)) < 0)
        return fd;
    if (fstat(fd, &before) != 0) {
        rc = moe_err_sys(e, MOE_EIO, errno, "%s", x.name);
        goto out;
    }
    old = find_old(&x, base, form);
    if ((rc = moe_stream_open(fd, x.name, false, &x.s, e)) != 0 ||
        (rc = moe_saver_file(saver, x.name, form, old, e)) != 0)
        goto out;
    if (safet)
        rc = safetensors(&x, in->stream ? UINT64_MAX : (uint64_t)before.st_size, e);
    else if ((rc = moe_saver_part(saver, MOE_U8, MOE_SAVER_REST,
                  x.has_old ? &x.old.parts.v[0] : NULL, e)) == 0)
        rc = give(&x, MOE_SAVER_REST, NULL, e);
    if (rc == 0 && !in->stream && (fstat(fd, &after) != 0 || !same_file(&before, &after)))
        rc = moe_err_set(e, MOE_EFORMAT, "%s: was changed while it was saved", x.name);
    if (rc == 0)
        rc = moe_saver_file_end(saver, e);
out:
    moe_stream_close(x.s);
    moe_loader_box_fini(&x.old);
    if (fd > STDIN_FILENO || !in->stream)
        (void)close(fd);
    return rc;
}
