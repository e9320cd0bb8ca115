/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the walk through a signed model and its comparison with a statement.
 * Names of a statement are only compared with names that were found: none of
 * them is ever opened.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/moe-verify/verify_file.h"
#include "cmd/moe-verify/verify_model.h"
#include "common/base/beneath.h"
#include "common/base/buf.h"
#include "common/base/utf8.h"
#include "common/trust/blake.h"
#include "common/trust/digestq.h"

struct walk {
    struct verify_model *m;
    const struct moe_statement *s;
    const struct stat *skip;
};

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

/* A line "NAME: WHAT" on standard output. */
static int
tell(const char *name, const char *what, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc = 0;

    moe_buf_show(&b, name, strlen(name));
    moe_buf_fmt(&b, ": %s\n", what);
    if (b.bad)
        rc = no_memory(e);
    else if (fwrite(b.p, 1, b.len, stdout) != b.len)
        rc = moe_err_set(e, MOE_EIO, "standard output");
    moe_buf_fini(&b);
    return rc;
}

static int
add(struct verify_model *m, const char *rel, uint64_t bytes, struct moe_err *e)
{
    char *own = moe_arena_text(&m->text, rel, strlen(rel));

    if (own == NULL)
        return no_memory(e);
    if (m->n == m->cap) {
        size_t cap = m->cap > 0 ? 2 * m->cap : 64;
        struct verify_model_file *more = reallocarray(m->f, cap, sizeof(*more));
        if (more == NULL)
            return no_memory(e);
        m->f = more;
        m->cap = cap;
    }
    m->f[m->n++] = (struct verify_model_file){ own, bytes };
    return 0;
}

static int walk_dir(const struct walk *w, int fd, const char *rel, int depth, struct moe_err *e);

static int
entry(const struct walk *w, int dir, const char *name, const char *rel, int depth,
    struct moe_err *e)
{
    struct stat st;
    bool link = false;
    const char *odd;
    int fd;

    if (moe_statement_ignores(w->s, rel))
        return 0;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return moe_err_sys(e, MOE_EIO, errno, "%s/%s", w->m->path, rel);
    if (S_ISLNK(st.st_mode) && w->s->links) {
        link = true;
        if (fstatat(dir, name, &st, 0) != 0)
            return moe_err_sys(e, MOE_EIO, errno, "%s/%s", w->m->path, rel);
    }
    if (w->skip != NULL && st.st_dev == w->skip->st_dev && st.st_ino == w->skip->st_ino &&
        S_ISREG(st.st_mode) && !link)
        return 0;
    if (S_ISREG(st.st_mode))
        return add(w->m, rel, (uint64_t)st.st_size, e);
    if (S_ISDIR(st.st_mode) && !link) {
        if ((fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
            return moe_err_sys(e, MOE_EIO, errno, "%s/%s", w->m->path, rel);
        return walk_dir(w, fd, rel, depth + 1, e);
    }
    odd = S_ISLNK(st.st_mode) ? "is a symbolic link" :
        link ? "is a link to what is no file" : "is no regular file";
    w->m->odd++;
    return tell(rel, odd, e);
}

/* Takes fd over. */
static int
walk_dir(const struct walk *w, int fd, const char *rel, int depth, struct moe_err *e)
{
    DIR *d = depth < VERIFY_MODEL_MAX_DEPTH ? fdopendir(fd) : NULL;
    struct moe_buf path = MOE_BUF_INIT;
    const struct dirent *x;
    int rc = 0;

    if (d == NULL) {
        (void)close(fd);
        return depth < VERIFY_MODEL_MAX_DEPTH ? no_memory(e) :
            moe_err_set(e, MOE_ELIMIT, "%s/%s: is too deep", w->m->path, rel);
    }
    while (rc == 0 && (errno = 0, x = readdir(d)) != NULL) {
        if (strcmp(x->d_name, ".") == 0 || strcmp(x->d_name, "..") == 0)
            continue;
        moe_buf_clear(&path);
        moe_buf_fmt(&path, "%s%s%s", rel, rel[0] != '\0' ? "/" : "", x->d_name);
        rc = path.bad ? no_memory(e) : entry(w, dirfd(d), x->d_name, path.p, depth, e);
    }
    if (rc == 0 && errno != 0)
        rc = moe_err_sys(e, MOE_EIO, errno, "%s/%s", w->m->path, rel);
    moe_buf_fini(&path);
    (void)closedir(d);
    return rc;
}

static int
by_name(const void *x, const void *y)
{
    const struct verify_model_file *a = x, *b = y;

    return strcmp(a->rel, b->rel);
}

int
verify_model_open(struct verify_model *m, const char *path, const struct moe_statement *s,
    const struct stat *skip, struct moe_err *e)
{
    struct walk w = { m, s, skip };
    const char *slash = strrchr(path, '/');
    struct stat st;
    int fd, rc;

    m->path = path;
    if (stat(path, &st) != 0)
        return moe_err_sys(e, errno == ENOENT ? MOE_ENOENT : MOE_EIO, errno, "%s", path);
    if (!S_ISDIR(st.st_mode)) {
        m->single = true;
        if ((m->fd = verify_file_open(path, e)) < 0)
            return m->fd;
        return add(m, slash != NULL ? slash + 1 : path, (uint64_t)st.st_size, e);
    }
    if ((m->fd = moe_beneath_dir(path, e)) < 0)
        return m->fd;
    if ((fd = openat(m->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return moe_err_sys(e, MOE_EIO, errno, "%s", path);
    if ((rc = walk_dir(&w, fd, "", 0, e)) == 0 && m->n > 0)
        qsort(m->f, m->n, sizeof(*m->f), by_name);
    return rc;
}

/* ---- Digests ------------------------------------------------------------------------- */

/* Parts of the model's files that are digested, each with the digest it should have. */
struct parts {
    const struct verify_model *m;
    struct moe_statement *s;
    size_t *file;               /* [n] of the model */
    size_t *want;               /* [n] of the statement */
    struct moe_digestq_job *jobs;
    size_t n, differ;
    bool make;                  /* fill the statement in; else compare */
};

static int
open_part(void *ctx, size_t i, struct moe_err *e)
{
    const struct parts *p = ctx;
    int fd;

    if (!p->m->single)
        return moe_beneath_open(p->m->fd, p->m->path, p->m->f[p->file[i]].rel, e);
    fd = fcntl(p->m->fd, F_DUPFD_CLOEXEC, 3);
    return fd >= 0 ? fd : moe_err_sys(e, MOE_EIO, errno, "%s", p->m->path);
}

static int
judge(struct parts *p, size_t i, const unsigned char *sum, struct moe_err *e)
{
    struct moe_statement_file *f = &p->s->f[p->want[i]];

    if (p->make)
        memcpy(f->sum, sum, p->s->sum_n);
    else if (memcmp(f->sum, sum, p->s->sum_n) != 0) {
        p->differ++;
        return tell(p->m->f[p->file[i]].rel, "differs", e);
    }
    return 0;
}

static int
done(void *ctx, size_t i, struct moe_err *e)
{
    struct parts *p = ctx;

    return p->jobs[i].rc != 0 ? p->jobs[i].rc : judge(p, i, p->jobs[i].sum, e);
}

static int
digest_blake(struct parts *p, struct moe_err *e)
{
    unsigned char sum[MOE_BLAKE_LEN];
    int rc = 0;

    for (size_t i = 0; i < p->n && rc == 0; i++) {
        int fd = open_part(p, i, e);
        if (fd < 0)
            return fd;
        if ((rc = moe_blake_fd(fd, p->m->f[p->file[i]].rel, sum, e)) == 0)
            rc = judge(p, i, sum, e);
        (void)close(fd);
    }
    return rc;
}

static int
digest(struct parts *p, struct moe_err *e)
{
    struct moe_digestq q = { NULL, p->n, open_part, done, p, NULL };
    struct moe_pool *pool = NULL;
    int rc;

    if (p->n == 0)
        return 0;
    if (p->s->sum_n == MOE_BLAKE_LEN)
        return digest_blake(p, e);
    if ((p->jobs = calloc(p->n, sizeof(*p->jobs))) == NULL)
        return no_memory(e);
    for (size_t i = 0; i < p->n; i++) {
        const struct moe_statement_file *f = &p->s->f[p->want[i]];
        p->jobs[i] = (struct moe_digestq_job){ .name = p->m->f[p->file[i]].rel, .fd = -1,
            .at = f->from, .len = f->to > 0 ? f->to - f->from : MOE_DIGESTQ_REST };
    }
    q.jobs = p->jobs;
    if ((rc = moe_pool_new(0, &pool, e)) == 0)
        rc = moe_digestq_run(&q, pool, e);
    moe_pool_free(pool);
    free(p->jobs);
    return rc;
}

static int
parts_init(struct parts *p, size_t n, struct moe_err *e)
{
    p->file = calloc(n + 1, sizeof(*p->file));
    p->want = calloc(n + 1, sizeof(*p->want));
    return p->file == NULL || p->want == NULL ? no_memory(e) : 0;
}

static void
parts_fini(struct parts *p)
{
    free(p->file);
    free(p->want);
}

/* Whether the shards [from, to) of the statement tile a file of so many bytes. */
static bool
tiles(const struct moe_statement *s, size_t from, size_t to, uint64_t bytes)
{
    uint64_t at = 0;

    for (size_t i = from; i < to; at = s->f[i++].to)
        if (s->f[i].from != at || (i + 1 < to && s->f[i].to - at != s->shard))
            return false;
    return at == bytes;
}

/* Pair names that are in both; tell of the others. */
static int
pair(struct parts *p, struct moe_err *e)
{
    const struct verify_model *m = p->m;
    struct moe_statement *s = p->s;
    size_t i = 0, j = 0, end;
    int rc = 0;

    while (rc == 0 && (i < s->n || j < m->n)) {
        int c = i == s->n ? 1 : j == m->n ? -1 : strcmp(s->f[i].name, m->f[j].rel);
        for (end = i; end < s->n && (end == i || strcmp(s->f[end].name, s->f[i].name) == 0);)
            end++;
        if (c > 0) {
            /* Shards of an empty file are none: such a file cannot be told from no file. */
            if (s->shard == 0 || m->f[j].bytes > 0) {
                p->differ++;
                rc = tell(m->f[j].rel, "is not signed", e);
            }
            j++;
            continue;
        }
        if (c < 0) {
            p->differ++;
            rc = tell(s->f[i].name, "missing", e);
        } else if (s->shard > 0 && !tiles(s, i, end, m->f[j].bytes)) {
            p->differ++;
            rc = tell(s->f[i].name, "its shards are not all of it", e);
        } else
            for (size_t k = i; k < end; k++) {
                p->file[p->n] = j;
                p->want[p->n++] = k;
            }
        j += c == 0;
        i = end;
    }
    return rc;
}

int
verify_model_compare(const struct verify_model *m, struct moe_statement *s, struct moe_err *e)
{
    struct parts p = { .m = m, .s = s };
    int rc = parts_init(&p, s->n, e);

    if (m->single)
        for (size_t i = 0; i < s->n; i++)
            if (strcmp(s->f[i].name, ".") == 0)
                s->f[i].name = m->f[0].rel;
    if (rc == 0 && (rc = pair(&p, e)) == 0 && (rc = digest(&p, e)) == 0)
        rc = p.differ > 0 || m->odd > 0;
    parts_fini(&p);
    return rc;
}

int
verify_model_state(const struct verify_model *m, struct moe_statement *s, struct moe_err *e)
{
    struct parts p = { .m = m, .s = s, .make = true };
    int rc = parts_init(&p, m->n, e);

    if (rc == 0 && m->n == 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: holds nothing to sign", m->path);
    if (rc == 0 && (s->f = calloc(m->n, sizeof(*s->f))) == NULL)
        rc = no_memory(e);
    for (size_t i = 0; i < m->n && rc == 0; i++) {
        s->f[i].name = m->single ? "." : m->f[i].rel;
        if (!moe_utf8_valid(s->f[i].name, strlen(s->f[i].name)))
            rc = moe_err_set(e, MOE_EFORMAT, "%s/%s: its name is not UTF-8", m->path, m->f[i].rel);
        p.file[i] = p.want[i] = i;
    }
    s->n = p.n = m->n;
    s->sum_n = MOE_DIGEST_LEN;
    if (rc == 0)
        rc = digest(&p, e);
    parts_fini(&p);
    return rc;
}

void
verify_model_close(struct verify_model *m)
{
    if (m->fd >= 0)
        (void)close(m->fd);
    free(m->f);
    moe_arena_fini(&m->text);
}
