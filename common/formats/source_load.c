/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the opening of a model: which files, their headers, the list of all
 * tensors. What a header or an index means is safet, gguf and shards.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/beneath.h"
#include "common/base/read.h"
#include "common/formats/ggml.h"
#include "common/formats/shards.h"
#include "common/formats/source_load.h"

#define INDEX "model.safetensors.index.json"
#define SINGLE "model.safetensors"

static int
no_memory(const struct moe_source *s, struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", s->path);
}

/* ---- Names in a directory --------------------------------------------------- */

/* What goes with a model; anything else in its directory is not ours to carry. */
static bool
is_aux(const char *name)
{
    static const char *const patterns[] = {
        "config.json", "*_config.json", "tokenizer.json", "*.model", "tokenizer.model.*",
        "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt",
        "*.tiktoken", "*.jinja", "chat_template.json", "*.py", "LICENSE*", "NOTICE*",
        "USE_POLICY*", "README.md"
    };

    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        if (fnmatch(patterns[i], name, FNM_PERIOD) == 0)
            return true;
    }
    return false;
}

static int
compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Regular files (links included) of the directory that `want` takes, sorted. */
static int
list(struct moe_source *s, bool (*want)(const char *), const char ***out, size_t *n,
    struct moe_err *e)
{
    const char **names = NULL;
    size_t cap = 0;
    int fd, rc = 0;
    struct dirent *x;
    DIR *d;

    *out = NULL;
    *n = 0;
    if ((fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return moe_err_sys(e, MOE_EIO, errno, "%s", s->path);
    if ((d = fdopendir(fd)) == NULL) {
        close(fd);
        return no_memory(s, e);
    }
    while ((x = readdir(d)) != NULL) {
        struct stat st;

        if (!want(x->d_name) || fstatat(s->dir, x->d_name, &st, 0) != 0 || !S_ISREG(st.st_mode))
            continue;
        if (*n == cap) {
            const char **p = realloc(names, (cap = cap == 0 ? 32 : 2 * cap) * sizeof(*p));

            if (p == NULL) {
                rc = no_memory(s, e);
                break;
            }
            names = p;
        }
        if ((names[*n] = moe_arena_text(&s->arena, x->d_name, strlen(x->d_name))) == NULL) {
            rc = no_memory(s, e);
            break;
        }
        ++*n;
    }
    closedir(d);
    if (rc != 0) {
        free(names);
        *n = 0;
        return rc;
    }
    if (*n > 0)
        qsort(names, *n, sizeof(*names), compare_strings);
    *out = names;
    return 0;
}

static bool
is_weights(const char *name)
{
    return fnmatch("*.safetensors", name, FNM_PERIOD) == 0;
}

/* ---- Files ------------------------------------------------------------------ */

static struct moe_source_file *
add_file(struct moe_source *s, const char *name, struct moe_err *e)
{
    struct moe_source_file *f;

    if (s->n_files == s->cap_files) {
        size_t cap = s->cap_files == 0 ? 8 : 2 * s->cap_files;

        if ((f = realloc(s->files, cap * sizeof(*f))) == NULL) {
            no_memory(s, e);
            return NULL;
        }
        s->files = f;
        s->cap_files = cap;
    }
    f = &s->files[s->n_files];
    *f = (struct moe_source_file){ .fd = -1, .map = MOE_MAP_INIT };
    if ((f->name = moe_arena_text(&s->arena, name, strlen(name))) == NULL) {
        no_memory(s, e);
        return NULL;
    }
    s->n_files++;
    return f;
}

static int
open_file(const struct moe_source *s, const struct moe_source_file *f, struct moe_err *e)
{
    int fd;

    if (s->dir >= 0)
        return moe_beneath_open(s->dir, s->path, f->name, e);
    /* A FIFO is refused as no regular file, not waited for. */
    if ((fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
        return moe_err_sys(e, errno == ENOENT ? MOE_ENOENT : MOE_EIO, errno, "%s", s->path);
    return fd;
}

/* Open f, remember which file it is; the descriptor stays open if there are few. */
static int
probe(struct moe_source *s, struct moe_source_file *f, int *fd, struct moe_err *e)
{
    struct stat st;

    if ((*fd = open_file(s, f, e)) < 0)
        return *fd;
    if (fstat(*fd, &st) != 0) {
        int rc = moe_err_sys(e, MOE_EIO, errno, "%s", f->name);

        close(*fd);
        return rc;
    }
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    f->size = (uint64_t)st.st_size;
    if (s->n_files <= MOE_SOURCE_OPEN)
        f->fd = *fd;
    return 0;
}

/* Name of a file in messages: of a directory, with the directory. */
static const char *
label(const struct moe_source *s, const struct moe_source_file *f, struct moe_buf *b)
{
    if (s->dir < 0)
        return s->path;
    moe_buf_clear(b);
    moe_buf_fmt(b, "%s/%s", s->path, f->name);
    return b->bad ? f->name : b->p;
}

static int
load_safet(struct moe_source *s, const char *name, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_source_file *f;
    int fd, rc;

    if ((f = add_file(s, name, e)) == NULL)
        return MOE_ENOMEM;
    if ((rc = probe(s, f, &fd, e)) != 0)
        return rc;
    rc = moe_safet_fd(fd, label(s, f, &b), &f->safet, e);
    if (f->fd < 0)
        close(fd);
    if (rc == 0)
        f->data_at = moe_safet_data_at(f->safet);
    moe_buf_fini(&b);
    return rc;
}

static int
load_index(struct moe_source *s, const char *text, size_t n, struct moe_err *e)
{
    struct moe_buf name = MOE_BUF_INIT;
    struct moe_shards *x = NULL;
    struct stat st;
    bool single = false;
    int rc;

    moe_buf_fmt(&name, "%s/%s", s->path, INDEX);
    if (name.bad)
        return no_memory(s, e);
    if ((rc = moe_shards_parse(text, n, name.p, &x, e)) != 0)
        goto out;
    for (size_t f = 0; rc == 0 && f < moe_shards_files(x); f++) {
        const char *file = moe_shards_file(x, f);

        single = single || strcmp(file, SINGLE) == 0;
        if ((rc = load_safet(s, file, e)) == 0)
            rc = moe_shards_check(x, f, s->files[f].safet, e);
        else if (rc == MOE_ENOENT)
            moe_err_at(e, "%s", name.p);
    }
    if (rc == 0 && !single && fstatat(s->dir, SINGLE, &st, 0) == 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: both %s and an index that does not list it", s->path,
            SINGLE);
out:
    moe_shards_free(x);
    moe_buf_fini(&name);
    return rc;
}

static int
load_config(struct moe_source *s, const char *text, size_t n, const char *name, struct moe_err *e)
{
    return moe_config_parse(text, n, name, &s->config, e);
}

static int
load_dir_config(struct moe_source *s, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT, name = MOE_BUF_INIT;
    int rc = moe_source_aux(s, "config.json", MOE_CONFIG_MAX_BYTES, &b, e);

    if (rc == MOE_ENOENT) {
        rc = 0;
    } else if (rc == 0) {
        moe_buf_fmt(&name, "%s/config.json", s->path);
        rc = name.bad ? no_memory(s, e) : load_config(s, b.p, b.len, name.p, e);
    }
    moe_buf_fini(&b);
    moe_buf_fini(&name);
    return rc;
}

static int
load_dir(struct moe_source *s, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    const char **names = NULL;
    size_t n = 0;
    struct stat st;
    int rc;

    if ((s->dir = moe_beneath_dir(s->path, e)) < 0)
        return s->dir;
    rc = moe_source_aux(s, INDEX, MOE_SHARDS_MAX_BYTES, &b, e);
    if (rc == 0) {
        rc = load_index(s, b.p, b.len, e);
    } else if (rc == MOE_ENOENT && fstatat(s->dir, SINGLE, &st, 0) == 0) {
        rc = load_safet(s, SINGLE, e);
    } else if (rc == MOE_ENOENT && (rc = list(s, is_weights, &names, &n, e)) == 0) {
        if (n == 0)
            rc = moe_err_set(e, MOE_ENOENT, "%s: no weights: no *.safetensors in it", s->path);
        for (size_t i = 0; rc == 0 && i < n; i++)
            rc = load_safet(s, names[i], e);
    }
    free(names);
    moe_buf_fini(&b);
    if (rc == 0 && (rc = load_dir_config(s, e)) == 0)
        rc = list(s, is_aux, &s->aux, &s->n_aux, e);
    return rc;
}

/* ---- GGUF ------------------------------------------------------------------- */

static bool
plain(uint32_t type, enum moe_dtype *t)
{
    switch (type) {
    case MOE_GGML_F32: *t = MOE_F32; return true;
    case MOE_GGML_F16: *t = MOE_F16; return true;
    case MOE_GGML_BF16: *t = MOE_BF16; return true;
    case MOE_GGML_F64: *t = MOE_F64; return true;
    case MOE_GGML_I8: *t = MOE_I8; return true;
    case MOE_GGML_I16: *t = MOE_I16; return true;
    case MOE_GGML_I32: *t = MOE_I32; return true;
    case MOE_GGML_I64: *t = MOE_I64; return true;
    default: *t = MOE_U8; return false;
    }
}

/* A GGUF tensor as a safetensors one would be. */
static int
as_tensor(struct moe_source *s, const struct moe_gguf_tensor *g, struct moe_tensor *t,
    struct moe_err *e)
{
    uint64_t *shape = moe_arena_get(&s->arena, MOE_GGML_DIMS * sizeof(*shape));
    uint64_t elements, bytes;

    if (shape == NULL)
        return no_memory(s, e);
    *t = (struct moe_tensor){ .name = g->name, .name_len = strlen(g->name), .rank = g->n_dims,
        .shape = shape, .begin = g->offset, .end = g->offset + g->bytes };
    for (int i = 0; i < g->n_dims; i++)
        shape[i] = g->ne[g->n_dims - 1 - i];
    if (!plain(g->type, &t->dtype) && moe_ggml_block(g->type, &elements, &bytes) && t->rank > 0)
        shape[t->rank - 1] = shape[t->rank - 1] / elements * bytes;
    return 0;
}

static int
load_gguf(struct moe_source *s, int fd, struct moe_err *e)
{
    size_t n;
    int rc;

    if ((rc = moe_gguf_fd(fd, s->path, &s->gguf, e)) != 0)
        return rc;
    n = moe_gguf_n(s->gguf);
    if ((s->gguf_tensors = calloc(n + 1, sizeof(*s->gguf_tensors))) == NULL)
        return no_memory(s, e);
    for (size_t i = 0; i < n; i++) {
        if ((rc = as_tensor(s, moe_gguf_at(s->gguf, i), &s->gguf_tensors[i], e)) != 0)
            return rc;
    }
    s->files[0].data_at = moe_gguf_data_at(s->gguf);
    return 0;
}

/* ---- One file, a stream ----------------------------------------------------- */

static int
meta_config(struct moe_source *s, const struct moe_safet *h, struct moe_err *e)
{
    const char *text = moe_safet_meta(h, "moe.config");
    struct moe_buf name = MOE_BUF_INIT;
    int rc;

    if (text == NULL)
        return 0;
    moe_buf_fmt(&name, "%s: moe.config", s->path);
    rc = name.bad ? no_memory(s, e) : load_config(s, text, strlen(text), name.p, e);
    moe_buf_fini(&name);
    return rc;
}

static int
load_file(struct moe_source *s, struct moe_err *e)
{
    char magic[4] = "";
    struct moe_source_file *f;
    int fd, rc;

    if ((f = add_file(s, s->path, e)) == NULL)
        return MOE_ENOMEM;
    if ((rc = probe(s, f, &fd, e)) != 0)
        return rc;
    if (f->size >= 4 && (rc = moe_read_at(fd, s->path, magic, 4, 0, e)) != 0)
        return rc;
    if (memcmp(magic, "GGUF", 4) == 0)
        return load_gguf(s, fd, e);
    if ((rc = moe_safet_fd(fd, s->path, &f->safet, e)) != 0)
        return rc;
    f->data_at = moe_safet_data_at(f->safet);
    return meta_config(s, f->safet, e);
}

static int
load_stream(struct moe_source *s, struct moe_err *e)
{
    struct moe_source_file *f;
    int rc;

    if ((f = add_file(s, s->path, e)) == NULL)
        return MOE_ENOMEM;
    if ((rc = moe_stream_open(STDIN_FILENO, s->path, false, &s->stream, e)) != 0 ||
        (rc = moe_safet_stream(s->stream, s->path, &f->safet, e)) != 0)
        return rc;
    f->data_at = moe_safet_data_at(f->safet);
    f->size = f->data_at + moe_safet_data_len(f->safet);
    return meta_config(s, f->safet, e);
}

/* ---- All tensors ------------------------------------------------------------ */

static int
compare_entries(const void *pa, const void *pb, void *ctx)
{
    const struct moe_source_entry *x = ctx;

    return strcmp(x[*(const size_t *)pa].t->name, x[*(const size_t *)pb].t->name);
}

static int
count(const struct moe_source *s, size_t *n, struct moe_err *e)
{
    *n = s->gguf != NULL ? moe_gguf_n(s->gguf) : 0;
    for (size_t f = 0; f < s->n_files; f++)
        *n += s->files[f].safet != NULL ? moe_safet_n(s->files[f].safet) : 0;
    if (*n == 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: no tensors", s->path);
    return 0;
}

static int
collect(struct moe_source *s, struct moe_err *e)
{
    size_t n;
    int rc;

    if ((rc = count(s, &n, e)) != 0)
        return rc;
    if ((s->entries = malloc(n * sizeof(*s->entries))) == NULL ||
        (s->by_name = malloc(n * sizeof(*s->by_name))) == NULL)
        return no_memory(s, e);
    for (size_t f = 0; f < s->n_files; f++) {
        const struct moe_safet *h = s->files[f].safet;

        for (size_t k = 0; h != NULL && k < moe_safet_n(h); k++) {
            const struct moe_tensor *t = moe_safet_at(h, moe_safet_by_offset(h, k));

            if (strlen(t->name) != t->name_len)
                return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: a NUL in its name", s->path,
                    t->name);
            s->bytes += t->end - t->begin;
            s->entries[s->n++] = (struct moe_source_entry){ t, f };
        }
    }
    for (size_t i = 0; s->gguf != NULL && i < n; i++) {
        s->bytes += s->gguf_tensors[i].end - s->gguf_tensors[i].begin;
        s->entries[s->n++] = (struct moe_source_entry){ &s->gguf_tensors[i], 0 };
    }
    for (size_t i = 0; i < n; i++)
        s->by_name[i] = i;
    qsort_r(s->by_name, n, sizeof(*s->by_name), compare_entries, s->entries);
    for (size_t i = 1; i < n; i++) {
        const struct moe_source_entry *a = &s->entries[s->by_name[i - 1]];
        const struct moe_source_entry *b = &s->entries[s->by_name[i]];

        if (strcmp(a->t->name, b->t->name) == 0)
            return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s in both %s and %s", s->path,
                a->t->name, s->files[a->file].name, s->files[b->file].name);
    }
    return 0;
}

int
moe_source_load(struct moe_source *s, bool pipe, struct moe_err *e)
{
    struct stat st;
    int rc;

    if (pipe)
        rc = load_stream(s, e);
    else if (stat(s->path, &st) != 0)
        rc = moe_err_sys(e, errno == ENOENT ? MOE_ENOENT : MOE_EIO, errno, "%s", s->path);
    else
        rc = S_ISDIR(st.st_mode) ? load_dir(s, e) : load_file(s, e);
    return rc != 0 ? rc : collect(s, e);
}

int
moe_source_load_again(const struct moe_source *s, const struct moe_source_file *f,
    struct moe_err *e)
{
    int fd = open_file(s, f, e);
    struct stat st;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) != 0 || st.st_dev != f->dev || st.st_ino != f->ino ||
        (uint64_t)st.st_size != f->size) {
        close(fd);
        return moe_err_set(e, MOE_EFORMAT, "%s/%s: changed while it was in use", s->path, f->name);
    }
    return fd;
}
