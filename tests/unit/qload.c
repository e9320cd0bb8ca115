/* SPDX-License-Identifier: Apache-2.0 */
/* From a module's name to its values: golden models of every method, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/formats/qload.h"
#include "tests/golden.h"
#include "tests/golden_qmat.h"
#include "tests/tap.h"

#define MAX 64

/* Tensors of a golden file, and made-up ones. */
struct store {
    struct moe_tensor t[MAX];
    const void *p[MAX];
    size_t n;
};

static struct store st;

static void
put(const char *name, enum moe_dtype type, int rank, const uint64_t *shape, const void *p)
{
    uint64_t *copy = malloc(8 * sizeof(*copy)), n = moe_dtype_bits(type);

    for (int i = 0; i < rank; i++) {
        copy[i] = shape[i];
        n *= shape[i];
    }
    st.t[st.n] = (struct moe_tensor){ .name = strdup(name), .dtype = type, .rank = rank,
        .shape = copy, .end = n / 8 };
    st.p[st.n++] = p;
}

static void
drop(const char *name)
{
    for (size_t i = 0; i < st.n; i++)
        if (strcmp(st.t[i].name, name) == 0)
            ((char *)st.t[i].name)[0] = '-';
}

static void
clear(void)
{
    for (size_t i = 0; i < st.n; i++) {
        free((char *)st.t[i].name);
        free((uint64_t *)st.t[i].shape);
    }
    st.n = 0;
}

static const struct moe_tensor *
find(void *ctx, const char *name)
{
    (void)ctx;
    for (size_t i = 0; i < st.n; i++)
        if (strcmp(st.t[i].name, name) == 0)
            return &st.t[i];
    return NULL;
}

static int
bytes(void *ctx, const struct moe_tensor *t, uint64_t at, uint64_t len, const void **p,
    struct moe_err *e)
{
    (void)ctx;
    (void)e;
    tap_ok(at + len <= t->end - t->begin, "%s: a part lies within", t->name);
    *p = (const char *)st.p[t - st.t] + at;
    return 0;
}

static const struct moe_qparts_from from = { NULL, "m", find, bytes };

/* All tensors of a file, with `prefix` before their names. */
static void
use(const struct golden_tensors *g, const char *prefix)
{
    const char *name;
    json_t *v;

    clear();
    json_object_foreach(g->header, name, v) {
        struct golden_tensor t;
        enum moe_dtype type = MOE_BOOL;
        char full[128];

        if (strcmp(name, "__metadata__") == 0)
            continue;
        golden_find(g, name, true, &t);
        (void)moe_dtype_find(t.dtype, strlen(t.dtype), &type);
        (void)snprintf(full, sizeof(full), "%s%s", prefix, name);
        put(full, type, t.rank, t.shape, t.p);
    }
}

static struct moe_qscheme *
scheme(const json_t *config)
{
    struct moe_err e = { 0, "" };
    struct moe_qscheme *s = NULL;

    if (moe_qscheme_new(config, "c", &s, &e) != 0)
        tap_ok(false, "%s", e.text);
    return s;
}

static struct moe_qscheme *
scheme_text(const char *text)
{
    json_t *j = json_loads(text, 0, NULL);
    struct moe_qscheme *s = scheme(j);

    json_decref(j);
    return s;
}

static void
same_sha(const struct moe_qscheme *s, const char *module, const char *want, const char *what)
{
    struct moe_err e = { 0, "" };
    struct moe_qmat m;
    const float *f;

    if (!tap_is_int(moe_qload_qmat(s, &from, module, -1, &m, &e), 0, "%s %s: loaded", what,
        module)) {
        tap_diag("%s", e.text);
        return;
    }
    if ((f = golden_qmat_decode(&m, what)) != NULL)
        tap_is_str(golden_sha256(f, (size_t)(m.rows * m.cols) * 4), want, "%s %s: its values",
            what, module);
}

static void
compressed_tensors(void)
{
    static const char *const files[] = {
        "fp8_block", "fp8_channel", "fp8_tensor", "int3_sym_g64", "int4_asym_g128",
        "int4_asym_g64", "int4_sym_channel", "int4_sym_g128", "int4_sym_g128_f16",
        "int4_sym_g32", "int4_sym_g64", "int8_asym_channel_pack", "int8_sym_channel_w8a8",
        "int8_sym_g128_pack", "mxfp4", "mxfp8", "nvfp4",
    };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[128];
        struct golden_tensors g;
        struct moe_qscheme *s;
        const char *name;
        json_t *j, *info;

        (void)snprintf(path, sizeof(path), "quant/ct/%s.safetensors", files[i]);
        g = golden_tensors(path);
        use(&g, "");
        (void)snprintf(path, sizeof(path), "quant/ct/%s.json", files[i]);
        j = golden_json(path);
        if ((s = scheme(json_object_get(j, "quantization_config"))) == NULL)
            continue;
        json_object_foreach(json_object_get(j, "matrices"), name, info)
            same_sha(s, name, json_string_value(json_object_get(info, "dequant_f32_sha256")),
                files[i]);
        moe_qscheme_free(s);
    }
}

static void
others(void)
{
    static const char *const files[] = {
        "awq_gemm_g64", "gptq_v1_act_order_g64", "gptq_v1_asym_g64", "gptq_v1_int8_sym_g64",
        "gptq_v1_sym_g32", "gptq_v2_asym_g64", "gptq_v2_sym_g64",
    };
    struct golden_tensors g = golden_tensors("quant/ds_fp8/fp8_block.safetensors");
    json_t *j = golden_json("quant/ds_fp8/fp8_block.json");
    struct moe_qscheme *s = scheme(json_object_get(j, "quantization_config"));

    use(&g, "");
    same_sha(s, "d", json_string_value(json_object_get(j, "dequant_f32_sha256")), "DeepSeek");
    moe_qscheme_free(s);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct moe_err e = { 0, "" };
        struct golden_tensor codes, want;
        struct moe_qmat m;
        char path[128];
        const float *f;

        (void)snprintf(path, sizeof(path), "quant/gptq_awq/%s.safetensors", files[i]);
        g = golden_tensors(path);
        use(&g, "w.");
        (void)snprintf(path, sizeof(path), "quant/gptq_awq/%s.json", files[i]);
        s = scheme(json_object_get(golden_json(path), "quantization_config"));
        golden_find(&g, "codes", true, &codes);
        if (tap_is_int(moe_qload_qmat(s, &from, "w", -1, &m, &e), 0, "%s: loaded", files[i])) {
            tap_ok(m.rows == codes.shape[0] && m.cols == codes.shape[1], "%s: shape", files[i]);
            f = golden_qmat_decode(&m, files[i]);
            if (golden_find(&g, "dequant", false, &want))
                tap_is_mem(f, want.p, want.n, "%s: values", files[i]);
        } else {
            tap_diag("%s", e.text);
        }
        moe_qscheme_free(s);
    }
}

/* Two experts of 4 rows and 64 columns in gpt-oss's tensors, and two of BF16 in one. */
static void
stacks(void)
{
    static unsigned char codes[2 * 4 * 2 * 16], scales[2 * 4 * 2];
    static const uint64_t bshape[] = { 2, 4, 2, 16 }, sshape[] = { 2, 4, 2 };
    static const uint64_t pshape[] = { 2, 4, 64 };
    static uint16_t plain[2 * 4 * 64];
    struct moe_qscheme *s = scheme_text("{\"quant_method\":\"mxfp4\"}");
    struct moe_err e = { 0, "" };
    struct moe_qmat m;
    float f[4 * 64];

    memset(codes, 0x22, sizeof(codes));         /* 1.0 */
    codes[128 + 16] = 0x27;                     /* expert 1, row 0: columns 32 and 33 are 6, 1 */
    memset(scales, 127, sizeof(scales));
    scales[8 + 1] = 128;
    clear();
    put("x.up_blocks", MOE_U8, 4, bshape, codes);
    put("x.up_scales", MOE_U8, 3, sshape, scales);
    put("x.down.weight", MOE_BF16, 3, pshape, plain);
    put("x.bare", MOE_BF16, 3, pshape, plain);
    plain[4 * 64 + 1] = 0x4040;
    tap_is_int(moe_qload_qmat(s, &from, "x.up", 1, &m, &e), 0, "an expert of a stack");
    tap_ok(m.enc == MOE_ENC_OSS_MXFP4 && m.rows == 4 && m.cols == 64, "its shape");
    moe_qmat_rows(&m, 0, 4, f);
    tap_ok(f[0] == 1 && f[32] == 12 && f[33] == 2 && f[64] == 1, "its values");
    tap_ok(moe_qload_qmat(s, &from, "x.up", 2, &m, &e) == MOE_EFORMAT &&
        strcmp(e.text, "m: x.up_blocks: no expert 2 of 2") == 0, "%s", e.text);
    tap_ok(moe_qload_qmat(s, &from, "x.up", -1, &m, &e) == MOE_EFORMAT &&
        strstr(e.text, "4 dimensions, not 3") != NULL, "%s", e.text);
    tap_is_int(moe_qload_qmat(s, &from, "x.down", 1, &m, &e), 0, "a plain stack");
    moe_qmat_rows(&m, 0, 1, f);
    tap_ok(m.enc == MOE_ENC_PLAIN && f[1] == 3 && f[0] == 0, "its values");
    tap_is_int(moe_qload_qmat(s, &from, "x.bare", 1, &m, &e), 0, "a stack without .weight");
    moe_qscheme_free(s);
}

static void
refused(const struct moe_qscheme *s, const char *module, int code, const char *want)
{
    struct moe_err e = { 0, "" };
    struct moe_qmat m;
    int rc = moe_qload_qmat(s, &from, module, -1, &m, &e);

    tap_ok(rc == code && strstr(e.text, want) != NULL, "%s", want);
    if (rc != code || strstr(e.text, want) == NULL)
        tap_diag("got %d: %s", rc, e.text);
}

/* A golden INT4 matrix with one thing wrong. */
static void
broken_pack(void)
{
    struct golden_tensors g = golden_tensors("quant/ct/int4_asym_g128.safetensors");
    json_t *j = golden_json("quant/ct/int4_asym_g128.json");
    struct moe_qscheme *s = scheme(json_object_get(j, "quantization_config")), *none;
    static const int64_t shape[] = { 64, 500 };
    static const uint64_t two[] = { 2 }, wide[] = { 64, 5 }, flat[] = { 64 };

    use(&g, "");
    refused(s, "zz", MOE_ENOENT, "m: zz: there is no weight");
    drop("a.weight_scale");
    refused(s, "a", MOE_EFORMAT, "m: a.weight_scale: the tensor is missing");
    put("a.weight_scale", MOE_BF16, 2, wide, "");
    refused(s, "a", MOE_EFORMAT, "64 words a row do not hold 5 groups of 128 codes of 4 bits");
    drop("a.weight_scale");
    put("a.weight_scale", MOE_BF16, 1, flat, "");
    refused(s, "a", MOE_EFORMAT, "1 dimensions, not 2");
    use(&g, "");
    drop("a.weight_zero_point");
    refused(s, "a", MOE_EFORMAT, "a.weight_zero_point: the tensor is missing");
    put("a.weight_zero_point", MOE_I32, 2, wide, "");
    refused(s, "a", MOE_EFORMAT, "64 x 5, not 8 x 4");
    use(&g, "");
    drop("a.weight_shape");
    put("a.weight_shape", MOE_I64, 1, two, shape);
    refused(s, "a", MOE_EFORMAT, "a.weight_shape: 64 x 500 does not go with the codes");
    put("a.weight_g_idx", MOE_I32, 1, flat, "");
    refused(s, "a", MOE_EUNSUP, "order of columns");
    none = scheme(NULL);
    refused(none, "c", MOE_EFORMAT, "weight_packed does not go with quantization_config, where "
        "it is plain");
    moe_qscheme_free(none);
    moe_qscheme_free(s);
}

static void
broken_others(void)
{
    struct moe_qscheme *s = scheme_text("{\"quant_method\":\"fp8\","
        "\"weight_block_size\":[128,128]}");
    static const uint64_t w[] = { 200, 300 }, right[] = { 2, 3 }, turned[] = { 3, 2 };
    static const uint64_t one[] = { 1 };
    static unsigned char codes[200 * 300];
    static const float scales[6] = { 1, 2, 3, 4, 5, 6 };
    struct moe_err e = { 0, "" };
    struct moe_qmat m;
    float f[300];

    clear();
    put("w.weight", MOE_F8_E4M3, 2, w, codes);
    refused(s, "w", MOE_EFORMAT, "w.weight_scale_inv: the tensor is missing");
    put("w.weight_scale_inv", MOE_F32, 2, turned, scales);
    refused(s, "w", MOE_EFORMAT, "3 x 2, not 2 x 3");
    drop("w.weight_scale_inv");
    put("w.scale", MOE_F32, 2, right, scales);
    memset(codes, 0x38, sizeof(codes));
    tap_is_int(moe_qload_qmat(s, &from, "w", -1, &m, &e), 0, "ragged blocks");
    moe_qmat_rows(&m, 199, 1, f);
    tap_ok(f[0] == 4 && f[127] == 4 && f[128] == 5 && f[299] == 6, "their values");
    moe_qscheme_free(s);
    s = scheme_text("{\"quant_method\":\"fp8\"}");
    drop("w.scale");
    put("w.weight_scale", MOE_F32, 1, one, scales + 2);
    tap_is_int(moe_qload_qmat(s, &from, "w", -1, &m, &e), 0, "one scale");
    moe_qmat_rows(&m, 7, 1, f);
    tap_ok(f[0] == 3 && f[299] == 3, "its values");
    drop("w.weight_scale");
    put("w.weight_scale", MOE_F32, 0, one, scales + 1);
    tap_is_int(moe_qload_qmat(s, &from, "w", -1, &m, &e), 0, "one scale, a scalar");
    moe_qscheme_free(s);
    s = scheme(NULL);
    refused(s, "w", MOE_EFORMAT, "F8_E4M3 does not go with quantization_config");
    moe_qscheme_free(s);
    s = scheme_text("{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":64}");
    put("q.qweight", MOE_I32, 2, w, codes);
    refused(s, "q", MOE_EFORMAT, "q: groups of 64 do not divide rows of 200");
    refused(s, "w", MOE_EFORMAT, "where it is awq");
    moe_qscheme_free(s);
}

/* Experts of a GGUF file's stack: their bytes together are the tensor's. */
static void
from_gguf(void)
{
    const char *path = "tests/data/quant/gguf_file/qwen3_moe-cut-q8_0.gguf";
    json_t *tensors = json_object_get(golden_json("quant/gguf_file/qwen3_moe-cut-q8_0.json"),
        "tensors"), *v;
    struct moe_source *src = NULL;
    struct moe_err e = { 0, "" };
    struct moe_qmat m, x;
    size_t i;

    if (!tap_is_int(moe_source_open(path, &src, &e), 0, "%s: opened", path))
        return;
    json_array_foreach(tensors, i, v) {
        const char *name = json_string_value(json_array_get(v, 0));
        const char *want = json_string_value(json_array_get(v, 5));
        size_t stem = strlen(name) - strlen(".weight");
        bool stack = json_array_size(json_array_get(v, 2)) == 3;
        char module[128];

        (void)snprintf(module, sizeof(module), "%.*s", (int)stem, name);
        tap_is_int(moe_qload_source(NULL, src, module, stack ? 0 : -1, &m, &e), 0, "%s", module);
        if (stack && moe_qload_source(NULL, src, module, 3, &x, &e) == 0) {
            tap_ok((const char *)x.data == (const char *)m.data + 3 * m.data_len,
                "%s: the last expert", module);
            m.data_len *= 4;
        }
        tap_is_str(golden_sha256(m.data, m.data_len), want, "%s: its bytes", module);
    }
    tap_ok(moe_qload_source(NULL, src, "blk.0.ffn_up_exps", 4, &m, &e) == MOE_EFORMAT &&
        strstr(e.text, "128 x 128 x 4 holds no such matrix") != NULL, "%s", e.text);
    tap_ok(moe_qload_source(NULL, src, "blk.0.ffn_up_exps", -1, &m, &e) == MOE_EFORMAT,
        "a stack is no matrix");
    tap_is_int(moe_qload_source(NULL, src, "blk.7.ffn_up_exps", 0, &m, &e), MOE_ENOENT,
        "no such tensor");
    moe_source_close(src);
}

static void
from_safetensors(void)
{
    struct golden_tensors g = golden_tensors("kjv-moe/model.safetensors");
    const char *module = "model.layers.1.mlp.experts.5.up_proj";
    struct moe_qscheme *s = scheme(NULL);
    struct moe_source *src = NULL;
    struct moe_err e = { 0, "" };
    struct golden_tensor t;
    struct moe_qmat m;

    golden_find(&g, "model.layers.1.mlp.experts.5.up_proj.weight", true, &t);
    tap_is_int(moe_source_open("tests/data/kjv-moe", &src, &e), 0, "a model directory");
    if (tap_is_int(moe_qload_source(s, src, module, -1, &m, &e), 0, "%s", module)) {
        tap_ok(m.rows == t.shape[0] && m.cols == t.shape[1] && m.data_len == t.n, "its shape");
        tap_is_mem(m.data, t.p, t.n, "its bytes");
    }
    moe_source_close(src);
    moe_qscheme_free(s);
}

int
main(void)
{
    compressed_tensors();
    others();
    stacks();
    broken_pack();
    broken_others();
    from_gguf();
    from_safetensors();
    clear();
    return tap_done();
}
