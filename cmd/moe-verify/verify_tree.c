/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns `moe-verify tree`: the tensors of a model in one Merkle tree, in order of
 * name, whatever files they are in; and the digests of fs-verity.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/moe-verify/verify_file.h"
#include "cmd/moe-verify/verify_leaf.h"
#include "cmd/moe-verify/verify_tree.h"
#include "common/base/arena.h"
#include "common/base/beneath.h"
#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/formats/source.h"
#include "common/trust/fsverity.h"

enum { FSVERITY = 1, THREADS, QUIET };

static const struct moe_opt rows[] = {
    { FSVERITY, 0, "fsverity", MOE_OPT_NONE, NULL, "of files, as Linux has it (4 KiB blocks)",
        NULL, false, false },
    { THREADS, 'j', "threads", MOE_OPT_WORD, "N", "threads; default: the processors", NULL,
        false, false },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "no progress", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[-q] [-j N] FILE | DIR", "--fsverity FILE ...", NULL };

const struct moe_opt_cmd verify_tree_cmd = {
    "moe-verify tree", usage, "One digest for all tensors of a model, and what proves each.",
    rows, NULL
};

struct args { bool fsverity, quiet; int threads; };

/* A tensor as it is written. */
struct row {
    const char *file, *name, *type, *shape;
    uint64_t bytes;
    moe_merkle_hash root;
};

struct tree {
    const struct args *a;
    struct moe_pool *pool;
    struct row *r;
    size_t n, cap;
    struct moe_arena text;
};

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;
    int64_t n = 0;
    int rc = 0;

    if (id == FSVERITY)
        a->fsverity = true;
    else if (id == QUIET)
        a->quiet = true;
    else {
        rc = moe_num_int(arg, 1, MOE_POOL_MAX, "--threads", &n, e);
        a->threads = (int)n;
    }
    return rc;
}

/* Remember the tensors of a file. */
static int
keep(struct tree *t, const char *file, const struct verify_box *box,
    const moe_merkle_hash *roots, struct moe_err *e)
{
    const char *name = moe_arena_text(&t->text, file, strlen(file));

    if (t->cap - t->n < box->n) {
        size_t cap = 2 * t->cap + box->n;
        struct row *more = reallocarray(t->r, cap, sizeof(*more));
        if (more == NULL)
            return no_memory(e);
        t->r = more;
        t->cap = cap;
    }
    for (size_t i = 0; i < box->n; i++) {
        const struct verify_tensor *x = &box->t[i];
        struct moe_buf shape = MOE_BUF_INIT;
        struct row *r = &t->r[t->n];
        verify_box_shape(&shape, x);
        r->file = name;
        r->name = moe_arena_text(&t->text, x->name, strlen(x->name));
        r->type = moe_arena_text(&t->text, x->type, strlen(x->type));
        r->shape = shape.bad ? NULL : moe_arena_text(&t->text, shape.p, shape.len);
        r->bytes = x->len;
        memcpy(r->root, roots[i], sizeof(r->root));
        moe_buf_fini(&shape);
        if (r->file == NULL || r->name == NULL || r->type == NULL || r->shape == NULL)
            return no_memory(e);
        t->n++;
    }
    return 0;
}

static int
take_file(struct tree *t, int fd, const char *path, const char *file, struct moe_err *e)
{
    struct verify_box box = VERIFY_BOX_INIT;
    struct moe_progress progress;
    moe_merkle_hash *roots = NULL;
    uint64_t total = 0;
    int rc = verify_box_open(&box, fd, path, e);

    if (rc == 0 && (roots = calloc(box.n + 1, sizeof(*roots))) == NULL)
        rc = no_memory(e);
    for (size_t i = 0; i < box.n; i++)
        total += box.t[i].len;
    if (rc == 0) {
        moe_progress_start(&progress, "tree", total, t->a->quiet || isatty(STDOUT_FILENO));
        rc = verify_leaf_roots(t->pool, fd, path, box.t, box.n, roots, &progress, e);
        moe_progress_end(&progress);
    }
    if (rc == 0)
        rc = keep(t, file, &box, (const moe_merkle_hash *)roots, e);
    free(roots);
    verify_box_close(&box);
    return rc;
}

static int
take_model(struct tree *t, const char *path, struct moe_err *e)
{
    struct moe_source *source;
    int dir, rc = moe_source_open(path, &source, e);

    if (rc != 0)
        return rc;
    if ((dir = moe_beneath_dir(path, e)) < 0)
        rc = dir;
    for (size_t f = 0; rc == 0 && f < moe_source_files(source); f++) {
        const char *file = moe_source_file(source, f);
        int fd = moe_beneath_open(dir, path, file, e);
        rc = fd < 0 ? fd : take_file(t, fd, file, file, e);
        if (fd >= 0)
            (void)close(fd);
    }
    if (dir >= 0)
        (void)close(dir);
    moe_source_close(source);
    return rc;
}

static int
by_name(const void *x, const void *y)
{
    return strcmp(((const struct row *)x)->name, ((const struct row *)y)->name);
}

static void
row_line(struct moe_buf *b, const struct row *r)
{
    struct moe_jsonw w = { b, false };
    char hex[MOE_DIGEST_HEX];
    const struct { const char *key, *v; } s[] = { { "file", r->file }, { "tensor", r->name },
        { "dtype", r->type }, { "shape", r->shape } };

    moe_jsonw_open(&w, '{');
    for (size_t i = 0; i < sizeof(s) / sizeof(s[0]); i++) {
        moe_jsonw_key(&w, s[i].key);
        moe_jsonw_str(&w, s[i].v, strlen(s[i].v));
    }
    moe_jsonw_key(&w, "bytes");
    moe_jsonw_uint(&w, r->bytes);
    moe_jsonw_key(&w, "root");
    moe_jsonw_str(&w, moe_digest_hex(r->root, hex), MOE_DIGEST_HEX - 1);
    moe_jsonw_close(&w, '}');
    moe_buf_byte(b, '\n');
}

/* The root first, then the tensors in order of name. */
static int
print(struct tree *t, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_merkle m;
    moe_merkle_hash leaf, root;
    char hex[MOE_DIGEST_HEX];
    int rc = 0;

    qsort(t->r, t->n, sizeof(*t->r), by_name);
    moe_merkle_begin(&m);
    for (size_t i = 0; i < t->n && rc == 0; i++) {
        const struct row *r = &t->r[i];
        if (i > 0 && strcmp(r->name, r[-1].name) == 0)
            rc = moe_err_set(e, MOE_EFORMAT, "%s: is in %s and in %s", r->name, r[-1].file,
                r->file);
        else if ((rc = verify_leaf_digest(r->name, r->type, r->shape, r->bytes, r->root, leaf,
            e)) == 0)
            rc = moe_merkle_add(&m, leaf, e);
    }
    if (rc != 0 || (rc = moe_merkle_root(&m, root, e)) != 0)
        return rc;
    moe_buf_fmt(&b, "{\"moe_tree\":1,\"leaf\":%" PRIu64 ",\"tensors\":%zu,\"root\":\"%s\"}\n",
        VERIFY_LEAF_BYTES, t->n, moe_digest_hex(root, hex));
    for (size_t i = 0; i <= t->n && rc == 0; i++) {
        if (b.bad)
            rc = no_memory(e);
        else if (fwrite(b.p, 1, b.len, stdout) != b.len)
            rc = moe_err_set(e, MOE_EIO, "standard output");
        moe_buf_clear(&b);
        if (i < t->n)
            row_line(&b, &t->r[i]);
    }
    moe_buf_fini(&b);
    return rc;
}

static int
tree(const struct args *a, const char *path, struct moe_err *e)
{
    struct tree t = { .a = a, .text = MOE_ARENA_INIT };
    const char *slash = strrchr(path, '/');
    struct stat st;
    int fd, rc = moe_pool_new(a->threads, &t.pool, e);

    if (rc != 0)
        return rc;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        rc = take_model(&t, path, e);
    } else if ((rc = fd = verify_file_open(path, e)) >= 0) {
        rc = take_file(&t, fd, path, slash != NULL ? slash + 1 : path, e);
        (void)close(fd);
    }
    if (rc == 0 && t.n == 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: no tensor", path);
    if (rc == 0)
        rc = print(&t, e);
    free(t.r);
    moe_arena_fini(&t.text);
    moe_pool_free(t.pool);
    return rc;
}

/* "sha256:HEX NAME", the line of `fsverity digest`. */
static int
fsverity(const char *path, struct moe_err *e)
{
    unsigned char d[MOE_FSVERITY_MAX];
    struct moe_fsverity *v = NULL;
    struct moe_stream *s = NULL;
    char hex[MOE_DIGEST_HEX];
    const void *p;
    size_t n = 1, len;
    int fd = verify_file_open(path, e), rc = fd < 0 ? fd : 0;

    if (rc == 0 && (rc = moe_stream_open(fd, path, false, &s, e)) == 0)
        rc = moe_fsverity_new(MOE_FSVERITY_SHA256, 4096, NULL, 0, &v, e);
    while (rc == 0 && n > 0 && (rc = moe_stream_next(s, &p, &n, e)) == 0)
        moe_fsverity_add(v, p, n);
    if (rc == 0 && (rc = moe_fsverity_end(v, d, NULL, &len, e)) == 0) {
        struct moe_buf b = MOE_BUF_INIT;
        moe_buf_fmt(&b, "sha256:%s ", moe_digest_hex(d, hex));
        moe_buf_show(&b, path, strlen(path));
        moe_buf_byte(&b, '\n');
        if (b.bad || fwrite(b.p, 1, b.len, stdout) != b.len)
            rc = moe_err_set(e, MOE_EIO, "standard output");
        moe_buf_fini(&b);
    }
    moe_fsverity_free(v);
    moe_stream_close(s);
    if (fd >= 0)
        (void)close(fd);
    return rc;
}

int
verify_tree(int argc, char **argv, struct moe_err *e)
{
    struct args a = { .threads = 0 };
    bool helped = false;
    int first, rc = moe_opt_parse(&verify_tree_cmd, argc, argv, option, &a, &first, &helped, e);

    if (rc != 0 || helped)
        return rc;
    if (first == argc || (!a.fsverity && argc - first > 1))
        return moe_err_set(e, MOE_EUSAGE, "a file or a directory?");
    if (!a.fsverity)
        return tree(&a, argv[first], e);
    for (; first < argc && rc == 0; first++)
        rc = fsverity(argv[first], e);
    return rc;
}
