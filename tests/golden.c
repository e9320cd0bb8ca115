/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns reading golden data for the C tests.
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/golden.h"

#define MAX_KEPT 64

/* What tests point into until they end; a reachable block is no leak. */
static const unsigned char *kept_files[MAX_KEPT];
static json_t *kept_trees[MAX_KEPT];
static size_t n_kept_files, n_kept_trees;

static void
die(const char *path, const char *what)
{
    printf("Bail out! tests/data/%s: %s\n", path, what);
    exit(1);
}

unsigned char *
golden_file(const char *path, size_t *n)
{
    char full[512];
    unsigned char *p;
    long len;
    FILE *f;

    (void)snprintf(full, sizeof(full), "tests/data/%s", path);
    if ((f = fopen(full, "rb")) == NULL || fseek(f, 0, SEEK_END) != 0 ||
        (len = ftell(f)) < 0 || fseek(f, 0, SEEK_SET) != 0)
        die(path, "cannot be opened");
    if ((p = malloc((size_t)len + 1)) == NULL || fread(p, 1, (size_t)len, f) != (size_t)len)
        die(path, "cannot be read");
    (void)fclose(f);
    p[len] = '\0';
    *n = (size_t)len;
    return p;
}

static json_t *
keep_tree(json_t *j, const char *path)
{
    if (n_kept_trees == MAX_KEPT)
        die(path, "too many files for one test");
    return kept_trees[n_kept_trees++] = j;
}

json_t *
golden_json(const char *path)
{
    size_t n;
    char *p = (char *)golden_file(path, &n);
    json_t *j = json_loadb(p, n, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, NULL);

    free(p);
    if (j == NULL)
        die(path, "is no JSON");
    return keep_tree(j, path);
}

struct golden_tensors
golden_tensors(const char *path)
{
    struct golden_tensors g;
    size_t n, len = 0;
    unsigned char *p = golden_file(path, &n);

    for (int i = 0; i < 8; i++)
        len |= (size_t)p[i] << (8 * i);
    g.header = json_loadb((char *)p + 8, len, 0, NULL);
    g.data = p + 8 + len;
    if (g.header == NULL)
        die(path, "has a bad header");
    if (n_kept_files == MAX_KEPT)
        die(path, "too many files for one test");
    kept_files[n_kept_files++] = p;
    keep_tree(g.header, path);
    return g;
}

bool
golden_find(const struct golden_tensors *g, const char *name, bool must,
    struct golden_tensor *t)
{
    json_t *o = json_object_get(g->header, name), *s = json_object_get(o, "shape"),
        *at = json_object_get(o, "data_offsets");
    size_t begin = (size_t)json_integer_value(json_array_get(at, 0));

    if (o == NULL) {
        if (must)
            die(name, "no such tensor");
        return false;
    }
    t->dtype = json_string_value(json_object_get(o, "dtype"));
    t->rank = (int)json_array_size(s);
    for (int i = 0; i < t->rank; i++)
        t->shape[i] = (uint64_t)json_integer_value(json_array_get(s, (size_t)i));
    t->p = g->data + begin;
    t->n = (size_t)json_integer_value(json_array_get(at, 1)) - begin;
    return true;
}

const char *
golden_sha256(const void *p, size_t n)
{
    static char hex[65];
    unsigned char md[EVP_MAX_MD_SIZE];
    unsigned int len = 0;

    if (EVP_Digest(p, n, md, &len, EVP_sha256(), NULL) != 1 || len != 32)
        die("SHA-256", "failed");
    for (unsigned int i = 0; i < len; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", md[i]);
    return hex;
}
