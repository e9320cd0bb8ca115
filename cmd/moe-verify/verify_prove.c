/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns `moe-verify prove`: cutting the proof of one tensor out of a tree, and
 * holding a tensor's bytes against a proof and a root.
 */
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/moe-verify/verify_file.h"
#include "cmd/moe-verify/verify_leaf.h"
#include "cmd/moe-verify/verify_prove.h"
#include "common/base/beneath.h"
#include "common/base/json.h"
#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/base/read.h"
#include "common/base/tool.h"

#define TREE_MAX ((size_t)1 << 30)      /* bytes of a tree */
#define PROOF_MAX ((size_t)64 << 10)    /* of a proof */

enum { ROOT = 1, THREADS };

static const struct moe_opt rows[] = {
    { ROOT, 0, "root", MOE_OPT_WORD, "HEX", "check a proof against this root", NULL, false,
        false },
    { THREADS, 'j', "threads", MOE_OPT_WORD, "N", "threads; default: the processors", NULL,
        false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "TREE TENSOR", "--root HEX [-j N] PROOF FILE | DIR", NULL };

const struct moe_opt_cmd verify_prove_cmd = {
    "moe-verify prove", usage, "That a tensor is one of a model's, from its bytes alone.", rows,
    NULL
};

struct args { const char *root; int threads; };

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;
    int64_t n = 0;
    int rc = 0;

    if (id == ROOT)
        a->root = arg;
    else {
        rc = moe_num_int(arg, 1, MOE_POOL_MAX, "--threads", &n, e);
        a->threads = (int)n;
    }
    return rc;
}

/* ---- Out of a tree ------------------------------------------------------------------- */

/* A tree read whole; what the proof needs of it. */
struct tree {
    const char *name, *tensor;
    int64_t n;
    moe_merkle_hash root, *leaves;      /* [n] */
    size_t found;                       /* number of the tensor */
    struct moe_buf file;                /* where it is */
};

static int
hash_of(struct moe_json_at at, const char *key, moe_merkle_hash out, struct moe_err *e)
{
    const char *s;
    int rc = moe_json_str(at, key, true, NULL, &s, e);

    if (rc == 0 && !moe_digest_unhex(s, strlen(s), out))
        rc = moe_err_set(e, MOE_EFORMAT, "%s: %s: is no SHA-256 digest", at.name, key);
    return rc;
}

static int
head_line(struct tree *t, struct moe_json_at at, size_t bytes, struct moe_err *e)
{
    static const char *const keys[] = { "moe_tree", "leaf", "tensors", "root", NULL };
    int64_t v;
    int rc = moe_json_only(at, keys, e);

    if (rc == 0 && (rc = moe_json_int(at, "moe_tree", true, 0, 1, 1, &v, e)) == 0 &&
        (rc = moe_json_int(at, "leaf", true, 0, VERIFY_LEAF_BYTES, VERIFY_LEAF_BYTES, &v,
        e)) == 0 && (rc = moe_json_int(at, "tensors", true, 0, 1, (int64_t)bytes, &t->n, e)) == 0)
        rc = hash_of(at, "root", t->root, e);
    if (rc == 0 && (t->leaves = calloc((size_t)t->n, sizeof(*t->leaves))) == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    return rc;
}

static int
row_line(struct tree *t, struct moe_json_at at, size_t i, struct moe_err *e)
{
    static const char *const keys[] = { "file", "tensor", "dtype", "shape", "bytes", "root",
        NULL };
    const char *file, *tensor, *type, *shape;
    moe_merkle_hash root;
    int64_t bytes;
    int rc = moe_json_only(at, keys, e);

    if (rc != 0 || (rc = moe_json_str(at, "file", true, NULL, &file, e)) != 0 ||
        (rc = moe_json_str(at, "tensor", true, NULL, &tensor, e)) != 0 ||
        (rc = moe_json_str(at, "dtype", true, NULL, &type, e)) != 0 ||
        (rc = moe_json_str(at, "shape", true, NULL, &shape, e)) != 0 ||
        (rc = moe_json_int(at, "bytes", true, 0, 0, INT64_MAX, &bytes, e)) != 0 ||
        (rc = hash_of(at, "root", root, e)) != 0)
        return rc;
    if (strcmp(tensor, t->tensor) == 0) {
        t->found = i;
        moe_buf_clear(&t->file);
        moe_buf_str(&t->file, file);
    }
    return verify_leaf_digest(tensor, type, shape, (uint64_t)bytes, root, t->leaves[i], e);
}

static int
read_tree(struct tree *t, const struct moe_buf *b, struct moe_err *e)
{
    const char *p = b->p, *end = b->p + b->len;
    struct moe_merkle m;
    moe_merkle_hash root;
    size_t i = 0;
    int rc = 0;

    moe_merkle_begin(&m);
    for (; p < end && rc == 0; i++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        json_t *o = NULL;
        struct moe_json_at at = { NULL, t->name };
        if (stop == NULL)
            return moe_err_set(e, MOE_EFORMAT, "%s: ends within a line", t->name);
        if (i > 0 && i > (size_t)t->n)
            return moe_err_set(e, MOE_EFORMAT, "%s: more lines than tensors", t->name);
        rc = moe_json_parse(p, (size_t)(stop - p), t->name, &o, e);
        at.o = o;
        if (rc == 0 && !json_is_object(o))
            rc = moe_err_set(e, MOE_EFORMAT, "%s: is no tree", t->name);
        if (rc == 0)
            rc = i == 0 ? head_line(t, at, b->len, e) : row_line(t, at, i - 1, e);
        if (rc == 0 && i > 0)
            rc = moe_merkle_add(&m, t->leaves[i - 1], e);
        json_decref(o);
        p = stop + 1;
    }
    if (rc == 0 && (i == 0 || i - 1 != (size_t)t->n))
        rc = moe_err_set(e, MOE_EFORMAT, "%s: fewer lines than tensors", t->name);
    if (rc == 0 && (rc = moe_merkle_root(&m, root, e)) == 0 &&
        memcmp(root, t->root, sizeof(root)) != 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: its root is not that of its lines", t->name);
    return rc;
}

static int
print_proof(const struct tree *t, struct moe_err *e)
{
    moe_merkle_hash path[MOE_MERKLE_DEPTH];
    unsigned char text[4 * (sizeof(path) / 3 + 1) + 1];
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_jsonw w = { &b, false };
    size_t count;
    int rc = moe_merkle_path((const moe_merkle_hash *)t->leaves, (size_t)t->n, t->found, path,
        &count, e);

    if (rc != 0)
        return rc;
    (void)EVP_EncodeBlock(text, path[0], (int)(count * sizeof(path[0])));
    moe_buf_fmt(&b, "{\"moe_proof\":1,\"index\":%zu,\"tensors\":%" PRId64 ",\"file\":", t->found,
        t->n);
    moe_jsonw_str(&w, t->file.p, t->file.len);
    moe_buf_str(&b, ",\"tensor\":");
    w.comma = false;
    moe_jsonw_str(&w, t->tensor, strlen(t->tensor));
    moe_buf_fmt(&b, ",\"path\":\"%s\"}\n", count > 0 ? (const char *)text : "");
    if (b.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    else if (fwrite(b.p, 1, b.len, stdout) != b.len)
        rc = moe_err_set(e, MOE_EIO, "standard output");
    moe_buf_fini(&b);
    return rc;
}

static int
make_proof(const char *path, const char *tensor, struct moe_err *e)
{
    struct tree t = { .name = path, .tensor = tensor, .found = SIZE_MAX, .file = MOE_BUF_INIT };
    struct moe_buf b = MOE_BUF_INIT;
    int rc = moe_read_file(path, TREE_MAX, &b, e);

    if (rc == 0)
        rc = read_tree(&t, &b, e);
    if (rc == 0 && t.found == SIZE_MAX)
        rc = moe_err_set(e, MOE_ENOENT, "%s: %s: no such tensor", path, tensor);
    if (rc == 0 && t.file.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    if (rc == 0)
        rc = print_proof(&t, e);
    free(t.leaves);
    moe_buf_fini(&t.file);
    moe_buf_fini(&b);
    return rc;
}

/* ---- Against a root ------------------------------------------------------------------ */

struct proof {
    json_t *o;                          /* owns the texts */
    const char *file, *tensor;
    int64_t n, index;
    moe_merkle_hash path[MOE_MERKLE_DEPTH + 1];
    size_t count;
};

static int
read_path(struct proof *p, const char *name, const char *text, struct moe_err *e)
{
    size_t n = strlen(text), pad = n > 1 ? (text[n - 1] == '=') + (text[n - 2] == '=') : 0;
    unsigned char raw[3 * ((size_t)MOE_MERKLE_DEPTH * MOE_DIGEST_LEN / 3 + 1)];
    size_t len = n / 4 * 3 - pad;

    if (n == 0)
        return 0;
    if (n % 4 != 0 || n / 4 * 3 > sizeof(raw) || len % MOE_DIGEST_LEN != 0 ||
        strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") !=
        n - pad || EVP_DecodeBlock(raw, (const unsigned char *)text, (int)n) < 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: path: is no Base64 of digests", name);
    p->count = len / MOE_DIGEST_LEN;
    memcpy(p->path, raw, len);
    return 0;
}

static int
read_proof(struct proof *p, const char *name, struct moe_err *e)
{
    static const char *const keys[] = { "moe_proof", "index", "tensors", "file", "tensor", "path",
        NULL };
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_json_at at = { NULL, name };
    const char *path;
    int64_t v;
    int rc = moe_read_file(name, PROOF_MAX, &b, e);

    if (rc == 0)
        rc = moe_json_parse(b.p, b.len, name, &p->o, e);
    at.o = p->o;
    if (rc == 0 && !json_is_object(p->o))
        rc = moe_err_set(e, MOE_EFORMAT, "%s: is no proof", name);
    if (rc == 0 && (rc = moe_json_only(at, keys, e)) == 0 &&
        (rc = moe_json_int(at, "moe_proof", true, 0, 1, 1, &v, e)) == 0 &&
        (rc = moe_json_int(at, "tensors", true, 0, 1, INT64_MAX, &p->n, e)) == 0 &&
        (rc = moe_json_int(at, "index", true, 0, 0, p->n - 1, &p->index, e)) == 0 &&
        (rc = moe_json_str(at, "file", true, NULL, &p->file, e)) == 0 &&
        (rc = moe_json_str(at, "tensor", true, NULL, &p->tensor, e)) == 0 &&
        (rc = moe_json_str(at, "path", true, NULL, &path, e)) == 0)
        rc = read_path(p, name, path, e);
    moe_buf_fini(&b);
    return rc;
}

/* 1 if the tensor's bytes make a leaf of the root. */
static int
holds(const struct args *a, const struct proof *p, int fd, const char *name,
    const moe_merkle_hash want, struct moe_err *e)
{
    struct verify_box box = VERIFY_BOX_INIT;
    struct moe_buf shape = MOE_BUF_INIT;
    const struct verify_tensor *t;
    struct moe_pool *pool = NULL;
    moe_merkle_hash root, leaf;
    int rc = verify_box_open(&box, fd, name, e);

    if (rc != 0)
        goto out;
    if ((t = verify_box_find(&box, p->tensor)) == NULL) {
        moe_tool_warn("%s: %s: no such tensor", name, p->tensor);
        goto out;
    }
    verify_box_shape(&shape, t);
    if (shape.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    else if ((rc = moe_pool_new(a->threads, &pool, e)) == 0 &&
        (rc = verify_leaf_roots(pool, fd, name, t, 1, &root, NULL, e)) == 0 &&
        (rc = verify_leaf_digest(t->name, t->type, shape.p, t->len, root, leaf, e)) == 0)
        rc = moe_merkle_check((uint64_t)p->n, (uint64_t)p->index, leaf,
            (const moe_merkle_hash *)p->path, p->count, want, e);
out:
    moe_pool_free(pool);
    moe_buf_fini(&shape);
    verify_box_close(&box);
    return rc;
}

/* The file of the proof: path itself, or beneath it. */
static int
open_model(const char *path, const char *file, struct moe_err *e)
{
    struct stat st;
    int dir, fd;

    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return verify_file_open(path, e);
    if ((dir = moe_beneath_dir(path, e)) < 0)
        return dir;
    fd = moe_beneath_open(dir, path, file, e);
    (void)close(dir);
    return fd;
}

static int
check_proof(const struct args *a, const char *name, const char *path, struct moe_err *e)
{
    struct proof p = { .o = NULL };
    struct moe_buf b = MOE_BUF_INIT;
    moe_merkle_hash root;
    int fd = -1, rc;

    if (!moe_digest_unhex(a->root, strlen(a->root), root))
        return moe_err_set(e, MOE_EUSAGE, "--root: %s: is no SHA-256 digest", a->root);
    rc = read_proof(&p, name, e);
    if (rc == 0 && (rc = fd = open_model(path, p.file, e)) >= 0)
        rc = holds(a, &p, fd, path, root, e);
    if (rc >= 0 && p.tensor != NULL) {
        moe_buf_show(&b, p.tensor, strlen(p.tensor));
        moe_buf_str(&b, rc == 1 ? ": OK\n" : ": FAILED\n");
        rc = rc == 1 ? MOE_EXIT_YES : MOE_EXIT_NO;
        if (b.bad || fwrite(b.p, 1, b.len, stdout) != b.len)
            rc = moe_err_set(e, MOE_EIO, "standard output");
    }
    if (fd >= 0)
        (void)close(fd);
    json_decref(p.o);
    moe_buf_fini(&b);
    return rc;
}

int
verify_prove(int argc, char **argv, struct moe_err *e)
{
    struct args a = { .threads = 0 };
    bool helped = false;
    int first, rc = moe_opt_parse(&verify_prove_cmd, argc, argv, option, &a, &first, &helped, e);

    if (rc != 0 || helped)
        return rc;
    if (argc - first != 2)
        return moe_err_set(e, MOE_EUSAGE, a.root != NULL ? "which proof, of which model?" :
            "which tree, which tensor?");
    return a.root != NULL ? check_proof(&a, argv[first], argv[first + 1], e) :
        make_proof(argv[first], argv[first + 1], e);
}
