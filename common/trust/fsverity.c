/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the tree and the descriptor of fs-verity (Linux,
 * Documentation/filesystems/fsverity.rst). Reads no file.
 */
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/trust/fsverity.h"

#define LEVELS 16           /* 2^64 bytes in blocks of 1024 with digests of 64 need 15 */
#define DESCRIPTOR 256
#define MAX_BLOCK 65536

struct level {
    unsigned char *buf;     /* a block */
    size_t fill;
    uint64_t total;         /* bytes that came */
};

struct moe_fsverity {
    enum moe_fsverity_alg alg;
    const EVP_MD *md;
    EVP_MD_CTX *ctx;
    size_t block, hash;
    unsigned char salt[128];        /* with zeros to the input block of the hash */
    size_t salt_len, padded;        /* padded 0: no salt */
    unsigned char raw[MOE_FSVERITY_SALT];
    struct level l[LEVELS];
    bool bad;
};

int
moe_fsverity_new(enum moe_fsverity_alg alg, size_t block, const void *salt, size_t n,
    struct moe_fsverity **out, struct moe_err *e)
{
    struct moe_fsverity *v;

    if (block < 1024 || block > MAX_BLOCK || (block & (block - 1)) != 0 || n > MOE_FSVERITY_SALT)
        return moe_err_set(e, MOE_EUSAGE, "no block or salt of fs-verity");
    if ((v = calloc(1, sizeof(*v))) == NULL || (v->ctx = EVP_MD_CTX_new()) == NULL) {
        free(v);
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    }
    v->alg = alg;
    v->md = alg == MOE_FSVERITY_SHA256 ? EVP_sha256() : EVP_sha512();
    v->hash = (size_t)EVP_MD_get_size(v->md);
    v->block = block;
    if (n > 0) {
        memcpy(v->salt, salt, n);
        memcpy(v->raw, salt, n);
        v->padded = (size_t)EVP_MD_get_block_size(v->md);
    }
    v->salt_len = n;
    *out = v;
    return 0;
}

static void append(struct moe_fsverity *v, int level, const unsigned char *p, size_t n);

/* Digest the block of a level, filled up with zeros, into the level above. */
static void
flush(struct moe_fsverity *v, int level)
{
    struct level *l = &v->l[level];
    unsigned char sum[EVP_MAX_MD_SIZE];

    memset(l->buf + l->fill, 0, v->block - l->fill);
    l->fill = 0;
    if (EVP_DigestInit_ex(v->ctx, v->md, NULL) != 1 ||
        EVP_DigestUpdate(v->ctx, v->salt, v->padded) != 1 ||
        EVP_DigestUpdate(v->ctx, l->buf, v->block) != 1 ||
        EVP_DigestFinal_ex(v->ctx, sum, NULL) != 1 || level + 1 == LEVELS)
        v->bad = true;
    else
        append(v, level + 1, sum, v->hash);
}

/* Recursion is as deep as the tree, at most LEVELS. */
static void
append(struct moe_fsverity *v, int level, const unsigned char *p, size_t n)
{
    struct level *l = &v->l[level];

    if (l->buf == NULL && (l->buf = malloc(v->block)) == NULL)
        v->bad = true;
    while (n > 0 && !v->bad) {
        size_t k = v->block - l->fill < n ? v->block - l->fill : n;
        memcpy(l->buf + l->fill, p, k);
        l->fill += k;
        l->total += k;
        p += k;
        n -= k;
        if (l->fill == v->block)
            flush(v, level);
    }
}

void
moe_fsverity_add(struct moe_fsverity *v, const void *p, size_t n)
{
    if (n > 0)
        append(v, 0, p, n);
}

static void
put_le64(unsigned char *p, uint64_t x)
{
    for (int i = 0; i < 8; i++)
        p[i] = (unsigned char)(x >> 8 * i);
}

int
moe_fsverity_end(struct moe_fsverity *v, unsigned char digest[static MOE_FSVERITY_MAX],
    unsigned char *root, size_t *len, struct moe_err *e)
{
    unsigned char d[DESCRIPTOR] = { 1 };    /* version */
    int k = 0, shift = 0;

    for (; !v->bad && v->l[0].total > 0 && (k == 0 || v->l[k].total > v->hash); k++)
        if (v->l[k].fill > 0)
            flush(v, k);
    d[1] = (unsigned char)v->alg;
    while (v->block >> shift > 1)
        shift++;
    d[2] = (unsigned char)shift;
    d[3] = (unsigned char)v->salt_len;
    put_le64(d + 8, v->l[0].total);
    if (!v->bad && v->l[0].total > 0)
        memcpy(d + 16, v->l[k].buf, v->hash);
    memcpy(d + 80, v->raw, sizeof(v->raw));
    *len = v->hash;
    if (root != NULL)
        memcpy(root, d + 16, v->hash);
    if (v->bad || EVP_Digest(d, sizeof(d), digest, NULL, v->md, NULL) != 1)
        return moe_err_set(e, MOE_EIO, "fs-verity: OpenSSL failed, or out of memory");
    return 0;
}

void
moe_fsverity_free(struct moe_fsverity *v)
{
    if (v == NULL)
        return;
    for (int i = 0; i < LEVELS; i++)
        free(v->l[i].buf);
    EVP_MD_CTX_free(v->ctx);
    free(v);
}
