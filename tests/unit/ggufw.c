/* SPDX-License-Identifier: Apache-2.0 */
/* Writing GGUF: a file of gguf-py rebuilt byte by byte, each kind, each mistake. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/formats/ggufw.h"
#include "tests/golden.h"
#include "tests/tap.h"

static void
rebuild(const char *path, const char *json)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    struct moe_ggufw *w = moe_ggufw_new();
    json_t *j = golden_json(json);
    struct moe_gguf *g;
    size_t n;
    unsigned char *p = golden_file(path, &n);
    int bad = 0;

    tap_is_int(moe_gguf_parse(p, n, (uint64_t)json_integer_value(json_object_get(j, "bytes")),
        path, &g, &e), 0, "%s: read", path);
    for (size_t i = 0; i < moe_gguf_kvs(g); i++)
        moe_ggufw_copy(w, moe_gguf_kv(g, i));
    for (size_t i = 0; i < moe_gguf_n(g); i++) {
        const struct moe_gguf_tensor *t = moe_gguf_at(g, i);

        moe_ggufw_tensor(w, t->name, t->type, t->n_dims, t->ne);
    }
    tap_is_int(moe_ggufw_emit(w, &b, &e), 0, "%s: written", path);
    tap_is_int((long long)b.len, (long long)moe_gguf_data_at(g), "%s: length", path);
    tap_is_mem(b.p, p, b.len, "%s: the same bytes", path);
    for (size_t i = 0; i < moe_gguf_n(g); i++)
        bad += moe_ggufw_offset(w, i) != moe_gguf_at(g, i)->offset;
    tap_ok(bad == 0 && moe_ggufw_data(w) == moe_gguf_data_len(g), "%s: the same offsets", path);
    moe_gguf_free(g);
    moe_ggufw_free(w);
    moe_buf_fini(&b);
    free(p);
}

static void
each_kind(void)
{
    struct moe_buf b = MOE_BUF_INIT, raw = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    struct moe_ggufw *w = moe_ggufw_new();
    struct moe_gguf *g = NULL;
    const char *p = NULL;
    size_t n = 0, at = 0;
    int64_t v = 0;
    double r = 0;
    bool yes = false;

    moe_ggufw_int(w, "general.alignment", MOE_GGUF_U32, 64);
    moe_ggufw_int(w, "u8", MOE_GGUF_U8, 255);
    moe_ggufw_int(w, "i8", MOE_GGUF_I8, -128);
    moe_ggufw_int(w, "i64", MOE_GGUF_I64, INT64_MIN);
    moe_ggufw_real(w, "f32", MOE_GGUF_F32, 1e-6);
    moe_ggufw_real(w, "f64", MOE_GGUF_F64, 1e-6);
    moe_ggufw_bool(w, "bool", true);
    moe_ggufw_str(w, "str", "a\0b", 3);
    moe_ggufw_raw_str(&raw, "one", 3);
    moe_ggufw_raw_str(&raw, "", 0);
    moe_ggufw_array(w, "words", MOE_GGUF_STRING, 2, raw.p, raw.len);
    moe_ggufw_array(w, "none", MOE_GGUF_F32, 0, NULL, 0);
    moe_ggufw_tensor(w, "x", MOE_GGML_Q8_0, 2, (uint64_t[]){ 32, 2 });
    moe_ggufw_tensor(w, "y", MOE_GGML_F32, 1, (uint64_t[]){ 3 });
    tap_is_int(moe_ggufw_emit(w, &b, &e), 0, "all kinds written");
    tap_ok(b.len % 64 == 0 && moe_ggufw_alignment(w) == 64, "aligned");
    tap_ok(moe_ggufw_offset(w, 1) == 128 && moe_ggufw_data(w) == 192, "offsets padded to 64");
    if (tap_is_int(moe_gguf_parse(b.p, b.len, b.len + 192, "w", &g, &e), 0, "read back")) {
        tap_is_int((long long)moe_gguf_kvs(g), 10, "keys");
        tap_ok(moe_ggufkv_int(moe_gguf_find_kv(g, "u8"), &v) && v == 255, "u8");
        tap_ok(moe_ggufkv_int(moe_gguf_find_kv(g, "i8"), &v) && v == -128, "i8");
        tap_ok(moe_ggufkv_int(moe_gguf_find_kv(g, "i64"), &v) && v == INT64_MIN, "i64");
        tap_ok(moe_ggufkv_real(moe_gguf_find_kv(g, "f32"), &r) && r == (double)1e-6f, "f32");
        tap_ok(moe_ggufkv_real(moe_gguf_find_kv(g, "f64"), &r) && r == 1e-6, "f64");
        tap_ok(moe_ggufkv_bool(moe_gguf_find_kv(g, "bool"), &yes) && yes, "bool");
        tap_ok(moe_ggufkv_str(moe_gguf_find_kv(g, "str"), &p, &n) && n == 3, "str");
        tap_ok(moe_ggufkv_str_next(moe_gguf_find_kv(g, "words"), &at, &p, &n) && n == 3 &&
            moe_ggufkv_str_next(moe_gguf_find_kv(g, "words"), &at, &p, &n) && n == 0, "words");
        tap_ok(moe_gguf_find_kv(g, "none")->n == 0 && moe_gguf_alignment(g) == 64, "none");
    }
    moe_gguf_free(g);
    moe_ggufw_free(w);
    moe_buf_fini(&b);
    moe_buf_fini(&raw);
}

static const char long_name[] =
    "0123456789012345678901234567890123456789012345678901234567890123";

/* The i-th mistake, and words of its message. */
static const char *
mistake(struct moe_ggufw *w, int i)
{
    uint64_t ne[5] = { 32, 1, 1, 1, 1 };

    switch (i) {
    case 0: moe_ggufw_int(w, "a", MOE_GGUF_U8, 256); return "256 is no UINT8";
    case 1: moe_ggufw_int(w, "a", MOE_GGUF_U64, -1); return "-1 is no UINT64";
    case 2: moe_ggufw_int(w, "a", MOE_GGUF_F32, 1); return "is no FLOAT32";
    case 3: moe_ggufw_real(w, "a", MOE_GGUF_I32, 1); return "INT32 is no kind of reals";
    case 4: moe_ggufw_str(w, "", "x", 1); return "has 0 bytes";
    case 5: moe_ggufw_bool(w, "a", 1); moe_ggufw_bool(w, "a", 1); return "key a comes twice";
    case 6: moe_ggufw_int(w, "general.alignment", MOE_GGUF_U32, 48); return "no alignment";
    case 7: moe_ggufw_int(w, "general.alignment", MOE_GGUF_I32, 32); return "no alignment";
    case 8: moe_ggufw_array(w, "a", MOE_GGUF_U16, 2, "abc", 3); return "3 bytes are no 2";
    case 9: moe_ggufw_array(w, "a", MOE_GGUF_STRING, 1, "abc", 3); return "3 bytes are no 1";
    case 10: moe_ggufw_array(w, "a", MOE_GGUF_STRING, 1, long_name, 9); return "9 bytes are no 1";
    case 11: moe_ggufw_array(w, "a", MOE_GGUF_STRING, 0, "x", 1); return "1 bytes are no 0";
    case 12: moe_ggufw_array(w, "a", MOE_GGUF_ARRAY, 0, "", 0); return "of ARRAY";
    case 13: moe_ggufw_tensor(w, long_name, 0, 1, ne); return "64 bytes, not 1 to 63";
    case 14: moe_ggufw_tensor(w, "", 0, 1, ne); return "0 bytes, not 1 to 63";
    case 15: moe_ggufw_tensor(w, "t", 0, 5, ne); return "5 dimensions";
    case 16: moe_ggufw_tensor(w, "t", MOE_GGML_Q4_K, 1, ne); return "rows of 32 cannot";
    case 17: moe_ggufw_tensor(w, "t", 99, 1, ne); return "type 99";
    case 18:
        moe_ggufw_tensor(w, "t", 0, 1, ne);
        moe_ggufw_tensor(w, "t", 0, 1, ne);
        return "tensor t comes twice";
    case 19:
        ne[0] = INT64_MAX;
        moe_ggufw_tensor(w, "t", MOE_GGML_I8, 1, ne);
        return "its end overflows";
    default: return NULL;
    }
}

int
main(void)
{
    rebuild("quant/gguf_file/qwen3_moe-cut-q8_0.gguf", "quant/gguf_file/qwen3_moe-cut-q8_0.json");
    rebuild("quant/gguf_file/qwen3_moe-f16.head", "quant/gguf_file/qwen3_moe-f16.json");
    each_kind();
    for (int i = 0;; i++) {
        struct moe_ggufw *w = moe_ggufw_new();
        struct moe_buf b = MOE_BUF_INIT;
        struct moe_err e = { 0, "" };
        const char *want = mistake(w, i);

        if (want == NULL) {
            tap_is_int(moe_ggufw_emit(w, &b, &e), 0, "nothing at all is a file");
            moe_ggufw_free(w);
            moe_buf_fini(&b);
            break;
        }
        tap_ok(moe_ggufw_emit(w, &b, &e) == MOE_EFORMAT && strstr(e.text, want) != NULL &&
            b.len == 0, "mistake %d: %s", i, e.text);
        moe_ggufw_free(w);
        moe_buf_fini(&b);
    }
    return tap_done();
}
