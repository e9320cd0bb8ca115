/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gguf_dump FILE: the keys and tensors of a GGUF file as JSON Lines. A tensor
 * that can be decoded has the SHA-256 of its values as F32.
 */
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/jsonw.h"
#include "common/base/read.h"
#include "common/formats/gguf.h"
#include "common/formats/qmat.h"

static void
line(struct moe_buf *b)
{
    moe_buf_byte(b, '\n');
    (void)fwrite(b->p, 1, b->len, stdout);
    moe_buf_clear(b);
}

static void
value(struct moe_jsonw *w, const struct moe_gguf_kv *kv, uint64_t i, size_t *at)
{
    const char *s;
    size_t n;
    int64_t v;
    double r;

    if (kv->kind == MOE_GGUF_STRING && moe_ggufkv_str_next(kv, at, &s, &n))
        moe_jsonw_str(w, s, n);
    else if (kv->kind == MOE_GGUF_BOOL)
        moe_jsonw_bool(w, kv->raw[i] != 0);
    else if (moe_ggufkv_int_at(kv, i, &v))
        moe_jsonw_int(w, v);
    else if (moe_ggufkv_real_at(kv, i, &r))
        moe_jsonw_real(w, r);
    else
        moe_jsonw_null(w);      /* an integer of 2^63 and more */
}

static void
key(struct moe_buf *b, const struct moe_gguf_kv *kv)
{
    struct moe_jsonw w = { b, false };
    size_t at = 0;

    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "key");
    moe_jsonw_str(&w, kv->key, strlen(kv->key));
    moe_jsonw_key(&w, "type");
    moe_jsonw_str(&w, moe_ggufkv_kind_name(kv->kind), strlen(moe_ggufkv_kind_name(kv->kind)));
    moe_jsonw_key(&w, "value");
    if (kv->array)
        moe_jsonw_open(&w, '[');
    for (uint64_t i = 0; i < kv->n; i++)
        value(&w, kv, i, &at);
    if (kv->array)
        moe_jsonw_close(&w, ']');
    moe_jsonw_close(&w, '}');
    line(b);
}

/* SHA-256 of the decoded values in hexadecimal; false: the type is not decoded. */
static bool
decoded(const struct moe_gguf_tensor *t, const void *data, char hex[65])
{
    struct moe_qmat m = { .enc = MOE_ENC_GGML, .ggml = t->type, .cols = t->ne[0],
        .rows = t->ne[1] * t->ne[2] * t->ne[3], .data = data, .data_len = t->bytes };
    unsigned char md[EVP_MAX_MD_SIZE];
    struct moe_err e;
    float *f;
    bool yes;

    if (moe_qmat_check(&m, t->name, &e) != 0 ||
        (f = malloc((size_t)(m.rows * m.cols) * sizeof(*f))) == NULL)
        return false;
    moe_qmat_rows(&m, 0, m.rows, f);
    yes = EVP_Digest(f, (size_t)(m.rows * m.cols) * sizeof(*f), md, NULL, EVP_sha256(), NULL) == 1;
    for (int i = 0; i < 32; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", md[i]);
    free(f);
    return yes;
}

static int
tensor(struct moe_buf *b, int fd, const char *path, const struct moe_gguf *g,
    const struct moe_gguf_tensor *t, struct moe_err *e)
{
    struct moe_jsonw w = { b, false };
    void *data = malloc((size_t)t->bytes + 1);
    char hex[65];
    int rc;

    if (data == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    if ((rc = moe_read_at(fd, path, data, (size_t)t->bytes, moe_gguf_data_at(g) + t->offset,
        e)) != 0) {
        free(data);
        return rc;
    }
    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "tensor");
    moe_jsonw_str(&w, t->name, strlen(t->name));
    moe_jsonw_key(&w, "type");
    moe_jsonw_str(&w, moe_ggml_name(t->type), strlen(moe_ggml_name(t->type)));
    moe_jsonw_key(&w, "ne");
    moe_jsonw_open(&w, '[');
    for (int d = 0; d < t->n_dims; d++)
        moe_jsonw_uint(&w, t->ne[d]);
    moe_jsonw_close(&w, ']');
    moe_jsonw_key(&w, "offset");
    moe_jsonw_uint(&w, moe_gguf_data_at(g) + t->offset);
    moe_jsonw_key(&w, "bytes");
    moe_jsonw_uint(&w, t->bytes);
    moe_jsonw_key(&w, "f32_sha256");
    if (decoded(t, data, hex))
        moe_jsonw_str(&w, hex, 64);
    else
        moe_jsonw_null(&w);
    moe_jsonw_close(&w, '}');
    line(b);
    free(data);
    return 0;
}

int
main(int argc, char **argv)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_gguf *g = NULL;
    struct moe_err e = { 0, "" };
    int fd, rc;

    if (argc != 2 || (fd = open(argv[1], O_RDONLY)) < 0) {
        fprintf(stderr, "usage: gguf_dump FILE\n");
        return 2;
    }
    rc = moe_gguf_fd(fd, argv[1], &g, &e);
    for (size_t i = 0; rc == 0 && i < moe_gguf_kvs(g); i++)
        key(&b, moe_gguf_kv(g, i));
    for (size_t i = 0; rc == 0 && i < moe_gguf_n(g); i++)
        rc = tensor(&b, fd, argv[1], g, moe_gguf_at(g, i), &e);
    if (rc != 0)
        fprintf(stderr, "gguf_dump: %s\n", e.text);
    moe_gguf_free(g);
    moe_buf_fini(&b);
    close(fd);
    return rc == 0 && fflush(stdout) == 0 ? 0 : 2;
}
