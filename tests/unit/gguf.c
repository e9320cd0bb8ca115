/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF headers: files of llama.cpp's converter, and every rule broken once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/formats/gguf.h"
#include "tests/golden.h"
#include "tests/tap.h"

/* ---- Golden files -------------------------------------------------------- */

static void
same_keys(const struct moe_gguf *g, json_t *keys, const char *name)
{
    const char *key;
    json_t *v;
    int bad = 0, seen = 0;

    json_object_foreach(keys, key, v) {
        const char *type = json_string_value(json_array_get(v, 0));
        const struct moe_gguf_kv *kv = moe_gguf_find_kv(g, key);
        json_t *want = json_array_get(v, 1);
        const char *s;
        size_t n;
        int64_t i;
        double r;
        bool yes = false;

        if (strncmp(key, "GGUF.", 5) == 0)
            continue;
        seen++;
        if (kv == NULL) {
            tap_diag("%s: no key %s", name, key);
            bad++;
            continue;
        }
        if (strncmp(type, "ARRAY/", 6) == 0)
            yes = kv->array && strcmp(type + 6, moe_ggufkv_kind_name(kv->kind)) == 0 &&
                (json_is_array(want) ? kv->n == json_array_size(want) :
                (json_int_t)kv->n == json_integer_value(json_object_get(want, "length")));
        else if (strcmp(type, moe_ggufkv_kind_name(kv->kind)) != 0 || kv->array)
            yes = false;
        else if (json_is_string(want))
            yes = moe_ggufkv_str(kv, &s, &n) && n == json_string_length(want) &&
                memcmp(s, json_string_value(want), n) == 0;
        else if (json_is_integer(want))
            yes = moe_ggufkv_int(kv, &i) && i == json_integer_value(want);
        else if (json_is_real(want))
            yes = moe_ggufkv_real(kv, &r) && r == json_real_value(want);
        else if (json_is_boolean(want))
            yes = moe_ggufkv_bool(kv, &yes) && yes == json_is_true(want);
        if (!yes) {
            tap_diag("%s: key %s differs", name, key);
            bad++;
        }
    }
    tap_is_int(bad, 0, "%s: the keys", name);
    tap_is_int((long long)moe_gguf_kvs(g), seen, "%s: no other key", name);
}

static void
same_tensors(const struct moe_gguf *g, json_t *tensors, const unsigned char *data,
    const char *name)
{
    int bad = 0;

    tap_is_int((long long)moe_gguf_n(g), (long long)json_array_size(tensors),
        "%s: number of tensors", name);
    for (size_t i = 0; i < moe_gguf_n(g); i++) {
        const struct moe_gguf_tensor *t = moe_gguf_at(g, i);
        json_t *w = json_array_get(tensors, i), *ne = json_array_get(w, 2);
        bool yes = strcmp(t->name, json_string_value(json_array_get(w, 0))) == 0 &&
            strcmp(moe_ggml_name(t->type), json_string_value(json_array_get(w, 1))) == 0 &&
            t->n_dims == (int)json_array_size(ne) &&
            t->offset == (uint64_t)json_integer_value(json_array_get(w, 3)) &&
            t->bytes == (uint64_t)json_integer_value(json_array_get(w, 4)) &&
            moe_gguf_find(g, t->name) == t;

        for (size_t d = 0; d < MOE_GGML_DIMS; d++)
            yes = yes && t->ne[d] == (d < json_array_size(ne) ?
                (uint64_t)json_integer_value(json_array_get(ne, d)) : 1);
        if (yes && data != NULL)
            yes = strcmp(golden_sha256(data + t->offset, t->bytes),
                json_string_value(json_array_get(w, 5))) == 0;
        if (!yes)
            tap_diag("%s: tensor %zu (%s) differs", name, i, t->name);
        bad += !yes;
    }
    tap_is_int(bad, 0, "%s: the tensors", name);
}

static void
golden(const char *file, const char *json, bool whole)
{
    struct moe_err e = { 0, "" };
    struct moe_gguf *g;
    json_t *j = golden_json(json);
    size_t n;
    unsigned char *p = golden_file(file, &n);
    uint64_t file_len = (uint64_t)json_integer_value(json_object_get(j, "bytes"));

    if (!tap_is_int(moe_gguf_parse(p, n, file_len, file, &g, &e), 0, "%s: parsed", file)) {
        tap_diag("%s", e.text);
        return;
    }
    tap_is_int((long long)moe_gguf_data_at(g),
        json_integer_value(json_object_get(j, "data_start")), "%s: start of the data", file);
    tap_is_int((long long)(moe_gguf_data_at(g) + moe_gguf_data_len(g)), (long long)file_len,
        "%s: end of the data", file);
    same_keys(g, json_object_get(j, "keys"), file);
    same_tensors(g, json_object_get(j, "tensors"), whole ? p + moe_gguf_data_at(g) : NULL, file);
    moe_gguf_free(g);
    /* Every shorter header must fail, one line each. */
    if (!whole) {
        int bad = 0;

        for (size_t k = 0; k < n; k += k < 200 ? 1 : 97)
            bad += moe_gguf_parse(p, k, file_len, file, &g, &e) == 0 || g != NULL ||
                e.text[0] == '\0';
        tap_is_int(bad, 0, "%s: every cut header fails", file);
        for (size_t k = 0; k < n; k += k < 200 ? 1 : 97)
            bad += moe_gguf_parse(p, k, k, file, &g, &e) != MOE_EFORMAT;
        tap_is_int(bad, 0, "%s: every cut file fails", file);
        tap_is_int(moe_gguf_parse(p, n, file_len - 1, file, &g, &e), MOE_EFORMAT,
            "%s: a byte of the last tensor is missing", file);
    }
    free(p);
}

/* ---- Broken rules --------------------------------------------------------- */

static struct moe_buf b = MOE_BUF_INIT;

static void
u(uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        moe_buf_byte(&b, (char)(v >> (8 * i)));
}

static void
str(const char *s)
{
    u(strlen(s), 8);
    moe_buf_str(&b, s);
}

static void
head(uint64_t tensors, uint64_t kvs)
{
    moe_buf_clear(&b);
    moe_buf_str(&b, "GGUF");
    u(3, 4);
    u(tensors, 8);
    u(kvs, 8);
}

static void
kv_u32(const char *key, uint32_t v)
{
    str(key);
    u(MOE_GGUF_U32, 4);
    u(v, 4);
}

static void
tensor(const char *name, uint32_t type, int dims, const uint64_t *ne, uint64_t offset)
{
    str(name);
    u((uint64_t)dims, 4);
    for (int d = 0; d < dims; d++)
        u(ne[d], 8);
    u(type, 4);
    u(offset, 8);
}

/* Parse what has been built, data_len bytes of data after it. */
static void
verdict(int want, uint64_t data_len, const char *text)
{
    struct moe_err e = { 0, "" };
    struct moe_gguf *g;
    int rc;

    while (data_len > 0 && b.len % 32 != 0)
        moe_buf_byte(&b, 0);
    rc = moe_gguf_parse(b.p, b.len, b.len + data_len, "t.gguf", &g, &e);
    tap_ok(rc == want && (rc == 0) == (g != NULL) &&
        (rc == 0 || strstr(e.text, text) != NULL), "%s", text);
    if (rc != want || (rc != 0 && strstr(e.text, text) == NULL))
        tap_diag("got %d: %s", rc, e.text);
    moe_gguf_free(g);
}

static void
bad_heads(void)
{
    head(0, 0);
    verdict(0, 0, "an empty file");
    b.p[0] = 'X';
    verdict(MOE_EFORMAT, 0, "not a GGUF file");
    head(0, 0);
    b.p[4] = 2;
    verdict(MOE_EUNSUP, 0, "version 2");
    b.p[4] = 0;
    b.p[7] = 3;
    verdict(MOE_EUNSUP, 0, "big-endian");
    head(UINT64_MAX, 0);
    verdict(MOE_EFORMAT, 0, "do not fit");
    head(0, (uint64_t)1 << 62);
    verdict(MOE_EFORMAT, 0, "do not fit");
}

static void
bad_keys(void)
{
    head(0, 2);
    kv_u32("a.b", 1);
    kv_u32("a.b", 2);
    verdict(MOE_EFORMAT, 0, "key a.b comes twice");
    head(0, 1);
    kv_u32("", 1);
    verdict(MOE_EFORMAT, 32, "has 0 bytes");
    head(0, 1);
    u(UINT64_MAX, 8);
    verdict(MOE_EFORMAT, 32, "a key has 18446744073709551615 bytes");
    head(0, 1);
    u(3, 8);
    moe_buf_add(&b, "a\0b", 3);
    verdict(MOE_EFORMAT, 32, "holds a NUL");
    head(0, 1);
    str("a");
    u(13, 4);
    u(0, 8);
    verdict(MOE_EFORMAT, 0, "value type 13");
    head(0, 1);
    str("a");
    u(MOE_GGUF_BOOL, 4);
    u(2, 1);
    verdict(MOE_EFORMAT, 0, "boolean is 2");
    head(0, 1);
    str("a");
    u(MOE_GGUF_STRING, 4);
    u(UINT64_MAX - 7, 8);
    verdict(MOE_EFORMAT, 0, "ends inside a string");
    head(0, 1);
    str("a");
    u(MOE_GGUF_ARRAY, 4);
    u(MOE_GGUF_ARRAY, 4);
    u(0, 8);
    verdict(MOE_EFORMAT, 0, "array of arrays");
    head(0, 1);
    str("a");
    u(MOE_GGUF_ARRAY, 4);
    u(MOE_GGUF_U64, 4);
    u((uint64_t)1 << 61, 8);
    verdict(MOE_EFORMAT, 0, "ends inside a value");
    head(0, 1);
    str("a");
    u(MOE_GGUF_ARRAY, 4);
    u(MOE_GGUF_STRING, 4);
    u(UINT64_MAX, 8);
    verdict(MOE_EFORMAT, 0, "ends inside a string");
    head(0, 1);
    str("a");
    u(MOE_GGUF_ARRAY, 4);
    u(MOE_GGUF_U8, 4);
    u((uint64_t)2 << 30, 8);
    verdict(MOE_ELIMIT, (uint64_t)3 << 30, "larger than");
}

static void
bad_alignments(void)
{
    static const uint32_t bad[] = { 0, 1, 4, 24, 33, 1u << 21, 1u << 31 };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        head(0, 1);
        kv_u32(MOE_GGUF_ALIGN_KEY, bad[i]);
        verdict(MOE_EFORMAT, 0, "not a power of two");
    }
    head(0, 1);
    str(MOE_GGUF_ALIGN_KEY);
    u(MOE_GGUF_U64, 4);
    u(64, 8);
    verdict(MOE_EFORMAT, 0, "not a UINT32");
    head(2, 1);
    kv_u32(MOE_GGUF_ALIGN_KEY, 128);
    tensor("a", MOE_GGML_F32, 1, (uint64_t[]){ 1 }, 0);
    tensor("b", MOE_GGML_F32, 1, (uint64_t[]){ 1 }, 32);
    verdict(MOE_EFORMAT, 512, "tensor b is at 32, not at 128");
}

static void
bad_tensors(void)
{
    static const uint64_t row[] = { 32, 2 };

    head(2, 0);
    tensor("a", MOE_GGML_Q8_0, 2, row, 0);
    tensor("a", MOE_GGML_Q8_0, 2, row, 96);
    verdict(MOE_EFORMAT, 192, "tensor a comes twice");
    head(1, 0);
    tensor("a", 4, 2, row, 0);
    verdict(MOE_EUNSUP, 192, "type 4");
    head(1, 0);
    tensor("a", MOE_GGML_Q4_K, 2, row, 0);
    verdict(MOE_EFORMAT, 192, "not whole blocks of 256");
    head(1, 0);
    tensor("a", MOE_GGML_F32, 2, row, 32);
    verdict(MOE_EFORMAT, 512, "is at 32, not at 0");
    head(1, 0);
    tensor("a", MOE_GGML_F32, 2, row, 0);
    verdict(MOE_EFORMAT, 255, "has no 256 bytes");
    head(1, 0);
    tensor("a", MOE_GGML_F32, 2, row, 0);
    verdict(0, 256, "enough data");
    head(1, 0);
    tensor("0123456789012345678901234567890123456789012345678901234567890123", MOE_GGML_F32,
        2, row, 0);
    verdict(MOE_EFORMAT, 256, "has 64 bytes, not 1 to 63");
    head(1, 0);
    tensor("a", MOE_GGML_F32, 5, (uint64_t[]){ 1, 1, 1, 1, 1 }, 0);
    verdict(MOE_EFORMAT, 256, "5 dimensions");
    head(1, 0);
    tensor("a", MOE_GGML_F32, 2, (uint64_t[]){ (uint64_t)1 << 32, (uint64_t)1 << 32 }, 0);
    verdict(MOE_EFORMAT, 256, "overflows");
    head(1, 0);
    tensor("a", MOE_GGML_F32, 3, (uint64_t[]){ (uint64_t)1 << 40, 0, (uint64_t)1 << 40 }, 0);
    verdict(MOE_EFORMAT, 256, "overflows");
    head(1, 0);
    tensor("a", MOE_GGML_F64, 1, (uint64_t[]){ (uint64_t)1 << 60 }, 0);
    verdict(MOE_EFORMAT, 256, "overflows");
    head(1, 0);
    tensor("a", MOE_GGML_I8, 1, (uint64_t[]){ INT64_MAX }, 0);
    verdict(MOE_EFORMAT, 256, "has no 9223372036854775807 bytes");
    head(2, 0);
    tensor("a", MOE_GGML_F32, 2, (uint64_t[]){ 0, 7 }, 0);
    tensor("b", MOE_GGML_F32, 0, NULL, 0);
    verdict(0, 4, "an empty tensor and a scalar");
}

static void
from_fd(void)
{
    const char *path = "tests/data/quant/gguf_file/qwen3_moe-cut-q8_0.gguf";
    struct moe_err e = { 0, "" };
    struct moe_gguf *g;
    FILE *f = fopen(path, "rb"), *t = tmpfile();

    tap_is_int(moe_gguf_fd(fileno(f), path, &g, &e), 0, "from a descriptor");
    tap_is_int((long long)moe_gguf_n(g), 15, "its tensors");
    moe_gguf_free(g);
    fclose(f);
    /* A header longer than the first read. */
    head(1, 2);
    str("long");
    u(MOE_GGUF_ARRAY, 4);
    u(MOE_GGUF_U8, 4);
    u(3000000, 8);
    for (int i = 0; i < 3000000; i++)
        moe_buf_byte(&b, (char)i);
    kv_u32("after", 7);
    tensor("t", MOE_GGML_F32, 1, (uint64_t[]){ 8 }, 0);
    while (b.len % 32 != 0)
        moe_buf_byte(&b, 0);
    for (int i = 0; i < 32; i++)
        moe_buf_byte(&b, 1);
    tap_ok(fwrite(b.p, 1, b.len, t) == b.len && fflush(t) == 0, "a long header written");
    tap_is_int(moe_gguf_fd(fileno(t), "long.gguf", &g, &e), 0, "a long header read");
    if (g != NULL) {
        const struct moe_gguf_kv *kv = moe_gguf_find_kv(g, "long");
        int64_t v = 0;

        tap_ok(kv->n == 3000000 && moe_ggufkv_int_at(kv, 2999999, &v), "its array");
        tap_is_int(v, 2999999 & 255, "its last element");
        tap_is_int((long long)moe_gguf_data_at(g) + 32, (long long)b.len, "its data");
        tap_ok(moe_gguf_find_kv(g, "longer") == NULL && moe_gguf_find(g, "after") == NULL,
            "a name that is not there");
    }
    moe_gguf_free(g);
    fclose(t);
}

int
main(void)
{
    golden("quant/gguf_file/qwen3_moe-cut-q8_0.gguf", "quant/gguf_file/qwen3_moe-cut-q8_0.json",
        true);
    golden("quant/gguf_file/qwen3_moe-f16.head", "quant/gguf_file/qwen3_moe-f16.json", false);
    bad_heads();
    bad_keys();
    bad_alignments();
    bad_tensors();
    from_fd();
    moe_buf_fini(&b);
    return tap_done();
}
