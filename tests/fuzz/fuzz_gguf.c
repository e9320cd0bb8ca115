/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GGUF headers: whatever parses can be walked, found by name, and written again
 * so that it reads the same.
 */
/* covers: common/formats/gguf.c common/formats/ggufkv.c */
/* covers: common/formats/ggml.c common/formats/ggufw.c */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/formats/ggufw.h"

#define AFTER ((uint64_t)1 << 20)   /* bytes of data that the file is said to have */

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
must(int yes)
{
    if (!yes)
        abort();
}

static void
walk(const struct moe_gguf *g, struct moe_ggufw *w)
{
    for (size_t i = 0; i < moe_gguf_kvs(g); i++) {
        const struct moe_gguf_kv *kv = moe_gguf_kv(g, i);
        const char *s;
        size_t at = 0, n, count = 0;
        int64_t v;
        double r;
        bool b;

        must(moe_gguf_find_kv(g, kv->key) == kv);
        must(kv->kind < MOE_GGUF_KIND_N && moe_ggufkv_kind_name(kv->kind) != NULL);
        (void)moe_ggufkv_bool(kv, &b);
        (void)moe_ggufkv_real(kv, &r);
        (void)moe_ggufkv_str(kv, &s, &n);
        (void)moe_ggufkv_int_at(kv, kv->n, &v);
        while (moe_ggufkv_str_next(kv, &at, &s, &n))
            count++;
        must(kv->kind != MOE_GGUF_STRING || count == kv->n);
        moe_ggufw_copy(w, kv);
    }
    for (size_t i = 0; i < moe_gguf_n(g); i++) {
        const struct moe_gguf_tensor *t = moe_gguf_at(g, i);

        must(moe_gguf_find(g, t->name) == t && moe_ggml_name(t->type) != NULL);
        must(t->offset <= moe_gguf_data_len(g) && t->bytes <= moe_gguf_data_len(g) - t->offset);
        moe_ggufw_tensor(w, t->name, t->type, t->n_dims, t->ne);
    }
}

static void
again(const struct moe_gguf *g, struct moe_ggufw *w)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_gguf *h;

    must(moe_ggufw_emit(w, &b, NULL) == 0);
    must(moe_ggufw_data(w) == moe_gguf_data_len(g));
    must(moe_gguf_parse(b.p, b.len, b.len + moe_ggufw_data(w), "again", &h, NULL) == 0);
    must(moe_gguf_kvs(h) == moe_gguf_kvs(g) && moe_gguf_n(h) == moe_gguf_n(g));
    must(moe_gguf_alignment(h) == moe_gguf_alignment(g));
    for (size_t i = 0; i < moe_gguf_kvs(g); i++) {
        const struct moe_gguf_kv *x = moe_gguf_kv(g, i), *y = moe_gguf_kv(h, i);

        must(strcmp(x->key, y->key) == 0 && x->kind == y->kind && x->raw_len == y->raw_len);
        must(memcmp(x->raw, y->raw, x->raw_len) == 0);
    }
    moe_gguf_free(h);
    moe_buf_fini(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct moe_err e = { 0, "" };
    struct moe_ggufw *w;
    struct moe_gguf *g;

    if (moe_gguf_parse(p, n, n, "fuzz", &g, &e) == 0)
        moe_gguf_free(g);
    else
        must(g == NULL && e.code < 0 && e.text[0] != '\0');
    if (moe_gguf_parse(p, n, n + AFTER, "fuzz", &g, &e) != 0)
        return 0;
    if ((w = moe_ggufw_new()) != NULL) {
        walk(g, w);
        again(g, w);
    }
    moe_ggufw_free(w);
    moe_gguf_free(g);
    return 0;
}
