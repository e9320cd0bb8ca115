/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns statements about models. It opens no file: comparing with a directory is
 * the program's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/jsonw.h"
#include "common/trust/digest.h"
#include "common/trust/statement.h"

/* The reference writes shard sizes as doubles: whole numbers are exact up to here. */
#define SHARD_MAX ((double)((uint64_t)1 << 53))

static const char type_is[] = "https://in-toto.io/Statement/v1";
static const char predicate_is[] = "https://model_signing/signature/v1.0";
static const char *const always[] = { ".git", ".gitattributes", ".github", ".gitignore" };

static int
bad(const char *name, const char *what, struct moe_err *e)
{
    return moe_err_set(e, MOE_EFORMAT, "%s: statement: %s", name, what);
}

bool
moe_statement_canonical(const char *path)
{
    for (const char *p = path;; p++) {
        size_t n = strcspn(p, "/");
        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        p += n;
        if (*p == '\0')
            return true;
    }
}

static bool
within(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

bool
moe_statement_ignores(const struct moe_statement *s, const char *path)
{
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
        if (within(path, always[i]))
            return true;
    for (size_t i = 0; i < s->n_ignored; i++)
        if (within(path, s->ignored[i]))
            return true;
    return false;
}

/* Digits only, no sign, no blank, no leading zero. */
static bool
number(const char *p, size_t n, uint64_t *v)
{
    *v = 0;
    if (n == 0 || n > 18 || (n > 1 && p[0] == '0'))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        *v = *v * 10 + (uint64_t)(p[i] - '0');
    }
    return true;
}

/* NAME:FROM:TO, cut at the last two colons. */
static bool
cut_shard(struct moe_statement_file *f, char *name)
{
    char *to = strrchr(name, ':'), *from;

    if (to == NULL)
        return false;
    *to++ = '\0';
    if ((from = strrchr(name, ':')) == NULL)
        return false;
    *from++ = '\0';
    return number(from, strlen(from), &f->from) && number(to, strlen(to), &f->to) &&
        f->from < f->to;
}

static bool
unhex(const char *p, size_t n, unsigned char *to)
{
    for (size_t i = 0; i < n; i += MOE_DIGEST_LEN)
        if (!moe_digest_unhex(p + 2 * i, 64, to + i))
            return false;
    return true;
}

static bool
algorithm_fits(const struct moe_statement *s, const char *a)
{
    char sharded[64];

    (void)snprintf(sharded, sizeof(sharded), "sha256-sharded-%ju", (uintmax_t)s->shard);
    if (s->sum_n == 64)
        return strcmp(a, "blake2b") == 0;
    return strcmp(a, "sha256") == 0 || (s->shard > 0 && strcmp(a, sharded) == 0);
}

static int
read_file(struct moe_statement *s, struct moe_json_at at, struct moe_err *e)
{
    struct moe_statement_file *f = &s->f[s->n];
    const char *name, *algorithm, *digest;
    char *own;
    int rc;

    if (!json_is_object(at.o))
        return bad(at.name, "a resource is not an object", e);
    if ((rc = moe_json_str(at, "name", true, NULL, &name, e)) != 0 ||
        (rc = moe_json_str(at, "algorithm", true, NULL, &algorithm, e)) != 0 ||
        (rc = moe_json_str(at, "digest", true, NULL, &digest, e)) != 0)
        return rc;
    if (!algorithm_fits(s, algorithm))
        return bad(at.name, "algorithm: does not go with hash_type", e);
    if (strlen(digest) != 2 * s->sum_n || !unhex(digest, s->sum_n, f->sum))
        return bad(at.name, "digest: is not of its algorithm", e);
    if ((own = moe_arena_text(&s->text, name, strlen(name))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    if (s->shard > 0 && (!cut_shard(f, own) || f->to - f->from > s->shard))
        return moe_err_set(e, MOE_EFORMAT, "%s: statement: %s: is no shard", at.name, name);
    if (strcmp(own, ".") != 0 && !moe_statement_canonical(own))
        return moe_err_set(e, MOE_EFORMAT, "%s: statement: %s: is no canonical name", at.name,
            name);
    f->name = own;
    s->n++;
    return 0;
}

static int
read_ignored(struct moe_statement *s, struct moe_json_at at, struct moe_err *e)
{
    const json_t *list;
    int rc = moe_json_arr(at, "ignore_paths", false, &list, e);

    if (rc != 0 || list == NULL)
        return rc;
    if ((s->ignored = calloc(json_array_size(list) + 1, sizeof(*s->ignored))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *x = json_array_get(list, i);
        const char *p = json_string_value(x);
        if (p == NULL || !moe_statement_canonical(p) || strpbrk(p, "*?[") != NULL)
            return bad(at.name, "ignore_paths: an entry is no canonical path", e);
        if ((s->ignored[i] = moe_arena_text(&s->text, p, strlen(p))) == NULL)
            return moe_err_set(e, MOE_ENOMEM, "out of memory");
        s->n_ignored++;
    }
    return 0;
}

static int
read_serialization(struct moe_statement *s, struct moe_json_at at, struct moe_err *e)
{
    const char *method, *hash;
    double size = 0;
    int rc;

    if ((rc = moe_json_str(at, "method", true, NULL, &method, e)) != 0 ||
        (rc = moe_json_str(at, "hash_type", true, NULL, &hash, e)) != 0 ||
        (rc = moe_json_bool(at, "allow_symlinks", false, false, &s->links, e)) != 0 ||
        (rc = read_ignored(s, at, e)) != 0)
        return rc;
    if (strcmp(method, "shards") == 0) {
        if ((rc = moe_json_real(at, "shard_size", true, 0, &size, e)) != 0)
            return rc;
        if (!(size >= 1 && size <= SHARD_MAX) || size != (double)(uint64_t)size)
            return bad(at.name, "shard_size: is no whole number of bytes", e);
        s->shard = (uint64_t)size;
    } else if (strcmp(method, "files") != 0)
        return bad(at.name, "method: is unknown", e);
    if (strcmp(hash, "blake3") == 0)
        return moe_err_set(e, MOE_EUNSUP, "%s: statement: blake3 is not supported", at.name);
    s->sum_n = strcmp(hash, "blake2b") == 0 ? 64 : 32;
    if (s->sum_n == 32 && strcmp(hash, "sha256") != 0)
        return bad(at.name, "hash_type: is unknown", e);
    if (s->sum_n == 64 && s->shard > 0)
        return moe_err_set(e, MOE_EUNSUP, "%s: statement: shards of blake2b are not supported",
            at.name);
    return 0;
}

static int
compare(const void *x, const void *y)
{
    const struct moe_statement_file *a = x, *b = y;
    int c = strcmp(a->name, b->name);

    return c != 0 ? c : a->from < b->from ? -1 : a->from > b->from;
}

/* The digests in the order of the document, digested. */
static int
root_of(const struct moe_statement *s, unsigned char *sum, struct moe_err *e)
{
    struct moe_digest d = MOE_DIGEST_INIT;
    int rc = moe_digest_begin(&d, e);

    for (size_t i = 0; i < s->n && rc == 0; i++)
        moe_digest_add(&d, s->f[i].sum, s->sum_n);
    if (rc == 0)
        rc = moe_digest_end(&d, sum, e);
    moe_digest_fini(&d);
    return rc;
}

static int
read_predicate(struct moe_statement *s, struct moe_json_at at, const char *root,
    struct moe_err *e)
{
    unsigned char claimed[MOE_DIGEST_LEN], sum[MOE_DIGEST_LEN];
    const json_t *how, *list;
    int rc;

    if ((rc = moe_json_obj(at, "serialization", true, &how, e)) != 0 ||
        (rc = read_serialization(s, (struct moe_json_at){ how, at.name }, e)) != 0 ||
        (rc = moe_json_arr(at, "resources", true, &list, e)) != 0)
        return rc;
    if (json_array_size(list) == 0)
        return bad(at.name, "resources: none", e);
    if ((s->f = calloc(json_array_size(list), sizeof(*s->f))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < json_array_size(list) && rc == 0; i++)
        rc = read_file(s, (struct moe_json_at){ json_array_get(list, i), at.name }, e);
    if (rc != 0 || (rc = root_of(s, sum, e)) != 0)
        return rc;
    if (!moe_digest_unhex(root, strlen(root), claimed) || memcmp(claimed, sum, sizeof(sum)) != 0)
        return bad(at.name, "its root is not that of its resources", e);
    qsort(s->f, s->n, sizeof(*s->f), compare);
    for (size_t i = 1; i < s->n; i++)
        if (compare(&s->f[i - 1], &s->f[i]) == 0)
            return moe_err_set(e, MOE_EFORMAT, "%s: statement: %s: is there twice", at.name,
                s->f[i].name);
    return 0;
}

static int
read_statement(struct moe_statement *s, struct moe_json_at at, struct moe_err *e)
{
    const json_t *subjects, *digest, *predicate;
    const char *type, *root;
    struct moe_json_at one = { NULL, at.name };
    int rc;

    if ((rc = moe_json_str(at, "_type", true, NULL, &type, e)) != 0)
        return rc;
    if (strcmp(type, type_is) != 0)
        return bad(at.name, "_type: is unknown", e);
    if ((rc = moe_json_str(at, "predicateType", true, NULL, &type, e)) != 0)
        return rc;
    if (strcmp(type, predicate_is) != 0)
        return bad(at.name, "predicateType: is unknown", e);
    if ((rc = moe_json_arr(at, "subject", true, &subjects, e)) != 0)
        return rc;
    one.o = json_array_get(subjects, 0);
    if (json_array_size(subjects) != 1 || !json_is_object(one.o))
        return bad(at.name, "subject: is not one", e);
    if ((rc = moe_json_obj(one, "digest", true, &digest, e)) != 0 ||
        (rc = moe_json_str((struct moe_json_at){ digest, at.name }, "sha256", true, NULL, &root,
            e)) != 0 ||
        (rc = moe_json_obj(at, "predicate", true, &predicate, e)) != 0)
        return rc;
    return read_predicate(s, (struct moe_json_at){ predicate, at.name }, root, e);
}

int
moe_statement_read(struct moe_statement *s, const char *p, size_t n, const char *name,
    struct moe_err *e)
{
    json_t *o = NULL;
    int rc = moe_json_parse(p, n, name, &o, e);

    if (rc == 0)
        rc = json_is_object(o) ? read_statement(s, (struct moe_json_at){ o, name }, e) :
            bad(name, "is not an object", e);
    json_decref(o);
    return rc;
}

static void
put(struct moe_jsonw *w, const char *key, const char *text)
{
    moe_jsonw_key(w, key);
    moe_jsonw_str(w, text, strlen(text));
}

static void
write_predicate(const struct moe_statement *s, struct moe_jsonw *w)
{
    char hex[MOE_DIGEST_HEX];

    moe_jsonw_key(w, "predicate");
    moe_jsonw_open(w, '{');
    moe_jsonw_key(w, "resources");
    moe_jsonw_open(w, '[');
    for (size_t i = 0; i < s->n; i++) {
        moe_jsonw_open(w, '{');
        put(w, "name", s->f[i].name);
        put(w, "algorithm", "sha256");
        put(w, "digest", moe_digest_hex(s->f[i].sum, hex));
        moe_jsonw_close(w, '}');
    }
    moe_jsonw_close(w, ']');
    moe_jsonw_key(w, "serialization");
    moe_jsonw_open(w, '{');
    put(w, "method", "files");
    put(w, "hash_type", "sha256");
    moe_jsonw_key(w, "allow_symlinks");
    moe_jsonw_bool(w, s->links);
    moe_jsonw_key(w, "ignore_paths");
    moe_jsonw_open(w, '[');
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
        moe_jsonw_str(w, always[i], strlen(always[i]));
    for (size_t i = 0; i < s->n_ignored; i++)
        moe_jsonw_str(w, s->ignored[i], strlen(s->ignored[i]));
    moe_jsonw_close(w, ']');
    moe_jsonw_close(w, '}');
    moe_jsonw_close(w, '}');
}

int
moe_statement_write(const struct moe_statement *s, const char *model, struct moe_buf *out,
    struct moe_err *e)
{
    struct moe_jsonw w = { out, false };
    unsigned char sum[MOE_DIGEST_LEN];
    char hex[MOE_DIGEST_HEX];
    int rc = root_of(s, sum, e);

    if (rc != 0)
        return rc;
    moe_jsonw_open(&w, '{');
    put(&w, "_type", type_is);
    moe_jsonw_key(&w, "subject");
    moe_jsonw_open(&w, '[');
    moe_jsonw_open(&w, '{');
    put(&w, "name", model);
    moe_jsonw_key(&w, "digest");
    moe_jsonw_open(&w, '{');
    put(&w, "sha256", moe_digest_hex(sum, hex));
    moe_jsonw_close(&w, '}');
    moe_jsonw_close(&w, '}');
    moe_jsonw_close(&w, ']');
    put(&w, "predicateType", predicate_is);
    write_predicate(s, &w);
    moe_jsonw_close(&w, '}');
    return out->bad ? moe_err_set(e, MOE_ENOMEM, "out of memory") : 0;
}

void
moe_statement_fini(struct moe_statement *s)
{
    free(s->f);
    free(s->ignored);
    moe_arena_fini(&s->text);
}
