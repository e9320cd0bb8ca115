/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the opened model: asking about its tensors and reading their data.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/beneath.h"
#include "common/base/read.h"
#include "common/formats/source_load.h"

int
moe_source_open(const char *path, struct moe_source **out, struct moe_err *e)
{
    struct moe_source *s;
    bool pipe = strcmp(path, "-") == 0;
    int rc;

    *out = NULL;
    if ((s = calloc(1, sizeof(*s))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", path);
    s->dir = -1;
    if ((s->path = strdup(pipe ? "stdin" : path)) == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "%s: out of memory", path);
    else
        rc = moe_source_load(s, pipe, e);
    if (rc != 0) {
        moe_source_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void
moe_source_close(struct moe_source *s)
{
    if (s == NULL)
        return;
    for (size_t f = 0; f < s->n_files; f++) {
        moe_map_close(&s->files[f].map);
        moe_safet_free(s->files[f].safet);
        if (s->files[f].fd >= 0)
            close(s->files[f].fd);
    }
    if (s->config.tree != NULL)
        moe_config_free(&s->config);
    moe_gguf_free(s->gguf);
    moe_stream_close(s->stream);
    if (s->dir >= 0)
        close(s->dir);
    free(s->gguf_tensors);
    free(s->files);
    free(s->entries);
    free(s->by_name);
    free(s->aux);
    free(s->path);
    moe_arena_fini(&s->arena);
    free(s);
}

/* ---- Asking ----------------------------------------------------------------- */

const char *
moe_source_path(const struct moe_source *s)
{
    return s->path;
}

bool
moe_source_is_stream(const struct moe_source *s)
{
    return s->stream != NULL;
}

bool
moe_source_is_dir(const struct moe_source *s)
{
    return s->dir >= 0;
}

const struct moe_gguf *
moe_source_gguf(const struct moe_source *s)
{
    return s->gguf;
}

const struct moe_config *
moe_source_config(const struct moe_source *s)
{
    return s->config.tree != NULL ? &s->config : NULL;
}

size_t
moe_source_n(const struct moe_source *s)
{
    return s->n;
}

const struct moe_tensor *
moe_source_at(const struct moe_source *s, size_t i)
{
    return s->entries[i].t;
}

size_t
moe_source_find(const struct moe_source *s, const char *name)
{
    size_t lo = 0, hi = s->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(name, s->entries[s->by_name[mid]].t->name);

        if (c == 0)
            return s->by_name[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return SIZE_MAX;
}

size_t
moe_source_files(const struct moe_source *s)
{
    return s->n_files;
}

const char *
moe_source_file(const struct moe_source *s, size_t f)
{
    return s->files[f].name;
}

uint64_t
moe_source_file_size(const struct moe_source *s, size_t f)
{
    return s->files[f].size;
}

size_t
moe_source_file_of(const struct moe_source *s, size_t i)
{
    return s->entries[i].file;
}

uint64_t
moe_source_bytes(const struct moe_source *s)
{
    return s->bytes;
}

/* ---- Data ------------------------------------------------------------------- */

/* Throw n bytes of the stream away. */
static int
skip(struct moe_source *s, uint64_t n, struct moe_err *e)
{
    char piece[16384];

    while (n > 0) {
        size_t k = n < sizeof(piece) ? (size_t)n : sizeof(piece);
        int rc = moe_stream_get(s->stream, piece, k, e);

        if (rc != 0)
            return rc;
        n -= k;
    }
    return 0;
}

static int
check_end(struct moe_source *s, struct moe_err *e)
{
    const void *p;
    size_t n;
    int rc = moe_stream_next(s->stream, &p, &n, e);

    if (rc == 0 && n > 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: bytes after the last tensor", s->path);
    return rc;
}

static int
read_stream(struct moe_source *s, size_t i, uint64_t at, void *p, size_t n, struct moe_err *e)
{
    const struct moe_tensor *t = s->entries[i].t;
    uint64_t want = t->begin + at;

    if (want < s->stream_at)
        return moe_err_set(e, MOE_EUNSUP, "%s: tensor %s: a stream is not read backwards", s->path,
            t->name);
    if (skip(s, want - s->stream_at, e) != 0 || moe_stream_get(s->stream, p, n, e) != 0)
        return moe_err_at(e, "tensor %s", t->name);
    s->stream_at = want + n;
    if (s->stream_at == moe_safet_data_len(s->files[0].safet))
        return check_end(s, e);
    return 0;
}

int
moe_source_read(struct moe_source *s, size_t i, uint64_t at, void *p, size_t n,
    struct moe_err *e)
{
    const struct moe_tensor *t = s->entries[i].t;
    struct moe_source_file *f = &s->files[s->entries[i].file];
    uint64_t len = t->end - t->begin;
    int fd = f->fd, rc;

    if (at > len || n > len - at)
        return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: reading past its end", s->path, t->name);
    if (s->stream != NULL)
        return read_stream(s, i, at, p, n, e);
    if (fd < 0 && (fd = moe_source_load_again(s, f, e)) < 0)
        return fd;
    rc = moe_read_at(fd, f->name, p, n, f->data_at + t->begin + at, e);
    if (f->fd < 0)
        close(fd);
    return rc != 0 ? moe_err_at(e, "tensor %s", t->name) : 0;
}

const struct moe_safet *
moe_source_header(const struct moe_source *s, size_t f)
{
    return s->gguf != NULL ? NULL : s->files[f].safet;
}

/* The header of a stream, which is gone: what it said, written again. */
static int
make_head(const struct moe_safet *h, const char *name, struct moe_buf *b, struct moe_err *e)
{
    size_t n = moe_safet_n(h), pairs = 0;
    struct moe_tensor *t = calloc(n + 1, sizeof(*t));
    const char **meta;
    int rc;

    while (moe_safet_meta_at(h, pairs) != NULL)
        pairs++;
    meta = calloc(2 * pairs + 1, sizeof(*meta));
    if (t == NULL || meta == NULL) {
        rc = moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
        goto out;
    }
    for (size_t i = 0; i < n; i++)
        t[i] = *moe_safet_at(h, moe_safet_by_offset(h, i));
    for (size_t i = 0; i < pairs; i++) {
        meta[2 * i] = moe_safet_meta_at(h, i)->key;
        meta[2 * i + 1] = moe_safet_meta_at(h, i)->value;
    }
    rc = moe_safet_write(b, t, n, meta, 8, e);
out:
    free(t);
    free(meta);
    return rc;
}

int
moe_source_head(const struct moe_source *s, size_t f, struct moe_buf *b, struct moe_err *e)
{
    const struct moe_source_file *x = &s->files[f];
    int fd = x->fd, rc;
    char *to;

    if (s->stream != NULL)
        return make_head(x->safet, s->path, b, e);
    if ((to = moe_buf_room(b, (size_t)x->data_at)) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", s->path);
    if (fd < 0 && (fd = moe_source_load_again(s, x, e)) < 0)
        return fd;
    if ((rc = moe_read_at(fd, x->name, to, (size_t)x->data_at, 0, e)) == 0)
        b->len += (size_t)x->data_at;
    if (x->fd < 0)
        close(fd);
    return rc;
}

int
moe_source_map(struct moe_source *s, size_t i, const void **p, struct moe_err *e)
{
    const struct moe_tensor *t = s->entries[i].t;
    struct moe_source_file *f = &s->files[s->entries[i].file];
    int rc;

    if (s->stream != NULL || f->fd < 0)
        return moe_err_set(e, MOE_EUNSUP, "%s: cannot be mapped", s->path);
    if (f->map.p == NULL && (rc = moe_map_fd(&f->map, f->fd, f->name, e)) != 0)
        return rc;
    if (f->map.len < f->data_at + t->end)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s changed while it was in use", s->path, f->name);
    *p = f->map.p + f->data_at + t->begin;
    return 0;
}

int
moe_source_aux(const struct moe_source *s, const char *name, size_t limit, struct moe_buf *b,
    struct moe_err *e)
{
    int fd, rc;

    if (s->dir < 0)
        return moe_err_set(e, MOE_ENOENT, "%s: is no directory, so has no %s", s->path, name);
    if ((fd = moe_beneath_open(s->dir, s->path, name, e)) < 0)
        return fd;
    if ((rc = moe_read_fd(fd, name, limit, b, e)) != 0)
        moe_err_at(e, "%s", s->path);
    close(fd);
    return rc;
}

int
moe_source_aux_size(const struct moe_source *s, const char *name, uint64_t *bytes,
    struct moe_err *e)
{
    struct stat st;
    int fd;

    *bytes = 0;
    if (s->dir < 0)
        return moe_err_set(e, MOE_ENOENT, "%s: is no directory, so has no %s", s->path, name);
    if ((fd = moe_beneath_open(s->dir, s->path, name, e)) < 0)
        return fd;
    if (fstat(fd, &st) != 0) {
        int sys = errno;

        close(fd);
        return moe_err_sys(e, MOE_EIO, sys, "%s/%s", s->path, name);
    }
    close(fd);
    *bytes = (uint64_t)st.st_size;
    return 0;
}

const char *
moe_source_aux_name(const struct moe_source *s, size_t i)
{
    return i < s->n_aux ? s->aux[i] : NULL;
}
