/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns finding and opening files. What is in them is the others' concern.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/moe-verify/verify_file.h"
#include "common/base/beneath.h"
#include "common/base/buf.h"
#include "common/base/stop.h"
#include "common/base/tool.h"

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

static int
sys_error(struct moe_err *e, const char *name)
{
    int code = errno == ENOENT || errno == ENOTDIR ? MOE_ENOENT :
        errno == ENOMEM ? MOE_ENOMEM : MOE_EIO;

    return moe_err_sys(e, code, errno, "%s", name);
}

int
verify_file_open(const char *path, struct moe_err *e)
{
    struct stat st;
    int fd;

    if (stat(path, &st) != 0)
        return sys_error(e, path);
    if (S_ISREG(st.st_mode)) {
        /* It may have been exchanged since: O_NONBLOCK, and look again. */
        if ((fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) < 0)
            return sys_error(e, path);
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
            return fd;
        (void)close(fd);
    }
    return moe_err_set(e, MOE_EIO, "%s: %s", path,
        S_ISDIR(st.st_mode) ? "is a directory" : "is not a regular file");
}

/* Room for one more in an array of n; NULL without memory. */
static void *
grow(void *p, size_t n, size_t *cap, size_t size)
{
    size_t want = *cap > 0 ? 2 * *cap : 16;
    void *q;

    if (n < *cap)
        return p;
    if ((q = reallocarray(p, want, size)) != NULL)
        *cap = want;
    return q;
}

static int
add(struct verify_files *w, const char *name, const char *rel, size_t root, uint64_t bytes,
    struct moe_err *e)
{
    void *f = grow(w->f, w->n, &w->cap, sizeof(*w->f));

    if (f == NULL)
        return no_memory(e);
    w->f = f;
    w->f[w->n++] = (struct verify_file){ name, rel, root, bytes };
    return 0;
}

/* One directory on the way down. */
struct place {
    struct verify_files *w;
    size_t root;
    const char *top;            /* the operand, with a slash at its end */
    struct moe_buf rel;         /* path beneath it, empty or with a slash at its end */
};

static int walk(struct place *p, int fd, int depth, struct moe_err *e);

/* A directory that is kept out: what tools keep beside a model, not the model. */
static bool
left_out(const char *name)
{
    return strcmp(name, ".git") == 0 || strcmp(name, ".cache") == 0;
}

static void
trouble(struct place *p, const char *what, int sys)
{
    if (sys != 0)
        moe_tool_warn("%s%s: %s", p->top, p->rel.p, strerror(sys));
    else
        moe_tool_warn("%s%s: %s", p->top, p->rel.p, what);
    p->w->troubles++;
}

static int
take_file(struct place *p, const struct stat *st, struct moe_err *e)
{
    struct moe_buf name = MOE_BUF_INIT;
    const char *rel, *full;

    moe_buf_str(&name, p->top);
    moe_buf_add(&name, p->rel.p, p->rel.len);
    full = name.bad ? NULL : moe_arena_text(&p->w->text, name.p, name.len);
    moe_buf_fini(&name);
    if (full == NULL)
        return no_memory(e);
    rel = full + strlen(p->top);
    return add(p->w, full, rel, p->root, st->st_size > 0 ? (uint64_t)st->st_size : 0, e);
}

/* The entry whose path is in p->rel; name is its last part, in directory fd. */
static int
take(struct place *p, int fd, const char *name, int depth, struct moe_err *e)
{
    struct stat st;
    bool link;
    int sub;

    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        trouble(p, NULL, errno);
        return 0;
    }
    link = S_ISLNK(st.st_mode);
    if (link && fstatat(fd, name, &st, 0) != 0) {
        trouble(p, "a link that leads nowhere", 0);
        return 0;
    }
    if (S_ISREG(st.st_mode))
        return take_file(p, &st, e);
    if (link && S_ISDIR(st.st_mode)) {
        trouble(p, "a link to a directory", 0);
        return 0;
    }
    if (!S_ISDIR(st.st_mode)) {
        moe_tool_warn("%s%s: left out, not a regular file", p->top, p->rel.p);
        return 0;
    }
    if (left_out(name))
        return 0;
    if ((sub = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0) {
        trouble(p, NULL, errno);
        return 0;
    }
    moe_buf_byte(&p->rel, '/');
    return walk(p, sub, depth + 1, e);
}

static int
by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int
no_dots(const struct dirent *d)
{
    return strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
}

/* All entries of fd, which is closed, in order of name. */
static int
walk(struct place *p, int fd, int depth, struct moe_err *e)
{
    struct dirent **list = NULL;
    size_t len = p->rel.len;
    int n, rc = 0;

    if (depth > VERIFY_FILE_MAX_DEPTH)
        rc = moe_err_set(e, MOE_ELIMIT, "%s%s: more than %d directories deep", p->top, p->rel.p,
            VERIFY_FILE_MAX_DEPTH);
    n = rc == 0 ? scandirat(fd, ".", &list, no_dots, by_name) : 0;
    if (n < 0)
        trouble(p, NULL, errno);
    for (int i = 0; i < n; i++) {
        if (rc == 0)
            rc = moe_stop_check(e);
        if (rc == 0) {
            moe_buf_str(&p->rel, list[i]->d_name);
            rc = p->rel.bad ? no_memory(e) : take(p, fd, list[i]->d_name, depth, e);
            if (!p->rel.bad) {
                p->rel.len = len;
                p->rel.p[len] = '\0';
            }
        }
        free(list[i]);
    }
    free(list);
    (void)close(fd);
    return rc;
}

static int
add_directory(struct verify_files *w, const char *path, struct moe_err *e)
{
    size_t len = strlen(path), before = w->n, troubles = w->troubles;
    struct place p = { .w = w, .root = w->n_roots };
    void *roots = grow(w->roots, w->n_roots, &w->cap_roots, sizeof(*w->roots));
    char *top, *name;
    int fd, rc;

    if (roots == NULL)
        return no_memory(e);
    w->roots = roots;
    while (len > 1 && path[len - 1] == '/')
        len--;
    if ((name = moe_arena_text(&w->text, path, len)) == NULL ||
        (top = moe_arena_text(&w->text, path, len + 1)) == NULL)
        return no_memory(e);
    top[len] = path[len - 1] == '/' ? '\0' : '/';
    top[len + 1] = '\0';
    if ((fd = moe_beneath_dir(path, e)) < 0)
        return fd;
    w->roots[w->n_roots++] = (struct verify_root){ fd, name };
    p.top = top;
    moe_buf_str(&p.rel, "");
    if ((fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0)
        return sys_error(e, path);
    rc = p.rel.bad ? no_memory(e) : walk(&p, fd, 0, e);
    moe_buf_fini(&p.rel);
    if (rc == 0 && w->n == before && w->troubles == troubles)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: no regular file beneath", path);
    return rc;
}

int
verify_file_add(struct verify_files *w, const char *operand, struct moe_err *e)
{
    struct stat st;

    if (strcmp(operand, "-") == 0)
        return add(w, operand, NULL, 0, 0, e);
    if (stat(operand, &st) != 0)
        return sys_error(e, operand);
    if (S_ISDIR(st.st_mode))
        return add_directory(w, operand, e);
    return add(w, operand, NULL, 0, st.st_size > 0 ? (uint64_t)st.st_size : 0, e);
}

int
verify_file_at(const struct verify_files *w, size_t i, struct moe_err *e)
{
    const struct verify_file *f = &w->f[i];

    if (f->rel == NULL)
        return verify_file_open(f->name, e);
    return moe_beneath_open(w->roots[f->root].fd, w->roots[f->root].name, f->rel, e);
}

void
verify_file_fini(struct verify_files *w)
{
    for (size_t i = 0; i < w->n_roots; i++)
        (void)close(w->roots[i].fd);
    free(w->roots);
    free(w->f);
    moe_arena_fini(&w->text);
    *w = (struct verify_files)VERIFY_FILES_INIT;
}
