/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of five methods to rules, and every way to get them wrong. */
#include <stdio.h>
#include <string.h>

#include "common/formats/qscheme.h"
#include "tests/golden.h"
#include "tests/tap.h"

static struct moe_qscheme *
scheme(const char *text)
{
    struct moe_err e = { 0, "" };
    struct moe_qscheme *s;
    json_t *j = json_loads(text, 0, NULL);

    if (!tap_ok(j != NULL && moe_qscheme_new(j, "c", &s, &e) == 0, "read: %.60s", text)) {
        tap_diag("%s", e.text);
        s = NULL;
    }
    json_decref(j);
    return s;
}

static struct moe_qrule
rule(const struct moe_qscheme *s, const char *module)
{
    struct moe_qrule r = { .enc = MOE_ENC_N };
    struct moe_err e = { 0, "" };

    if (moe_qscheme_rule(s, module, &r, &e) != 0)
        tap_diag("%s: %s", module, e.text);
    return r;
}

/* Refused, with words of the message. */
static void
refused(int code, const char *text, const char *want)
{
    struct moe_err e = { 0, "" };
    struct moe_qscheme *s;
    json_t *j = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    int rc = j == NULL ? 0 : moe_qscheme_new(j, "c", &s, &e);

    tap_ok(j != NULL && rc == code && s == NULL && strstr(e.text, want) != NULL, "%s", want);
    if (rc != code || strstr(e.text, want) == NULL)
        tap_diag("got %d: %s", rc, e.text);
    json_decref(j);
}

/* Models that the reference library saved: which modules it quantised. */
static void
saved_models(const char *path, const char *gate)
{
    json_t *j = golden_json(path), *tensors = json_object_get(j, "tensors"), *v;
    struct moe_err e = { 0, "" };
    struct moe_qscheme *s;
    const char *name;
    int bad = 0, packed = 0;

    tap_is_int(moe_qscheme_new(json_object_get(json_object_get(j, "config"),
        "quantization_config"), path, &s, &e), 0, "%s: read", path);
    tap_is_str(moe_qscheme_method(s), "compressed-tensors", "%s: its method", path);
    json_object_foreach(tensors, name, v) {
        const char *end = strstr(name, ".weight");
        char module[256];
        struct moe_qrule r;

        (void)snprintf(module, sizeof(module), "%.*s", (int)(end - name), name);
        r = rule(s, module);
        if (strcmp(end, ".weight") == 0) {
            bad += r.enc != MOE_ENC_PLAIN;
        } else {
            bad += r.enc != MOE_ENC_CT_PACK || r.bits != 4 || r.group != 128 || !r.symmetric;
            packed++;
        }
    }
    tap_ok(bad == 0 && packed > 100, "%s: %d tensors of quantised modules, no other", path, packed);
    tap_is_int(rule(s, gate).enc, MOE_ENC_PLAIN, "%s: the router", path);
    moe_qscheme_free(s);
}

#define GROUP(name, targets, weights) \
    "\"" name "\":{\"targets\":[" targets "],\"weights\":{" weights "}}"
#define CT(format, groups) \
    "{\"quant_method\":\"compressed-tensors\",\"format\":\"" format "\",\"config_groups\":{" \
    groups "}}"
#define INT4 "\"num_bits\":4,\"type\":\"int\",\"strategy\":\"group\",\"group_size\":128"

static void
compressed_tensors(void)
{
    struct moe_qscheme *s = scheme(
        "{\"quant_method\":\"compressed-tensors\",\"format\":\"mixed-precision\",\"ignore\":"
        "[\"lm_head\",\"re:.*mlp.gate$\"],\"config_groups\":{"
        "\"a\":{\"format\":\"pack-quantized\",\"targets\":[\"Linear\"],\"weights\":{" INT4 "}},"
        "\"b\":{\"format\":\"pack-quantized\",\"targets\":[\"re:.*shared\"],\"weights\":"
        "{\"num_bits\":8,\"symmetric\":false,\"strategy\":\"channel\",\"group_size\":null}},"
        "\"c\":{\"format\":\"float-quantized\",\"targets\":[\"x.shared.up\",\"x.y\"],\"weights\":"
        "{\"num_bits\":8,\"type\":\"float\",\"strategy\":\"block\",\"block_structure\":[128,64]}},"
        "\"d\":{\"targets\":[\"x.kv\"],\"weights\":null,\"input_activations\":{}}}}");
    struct moe_qrule r;

    if (s == NULL)
        return;
    r = rule(s, "m.mlp.gate_proj");
    tap_ok(r.enc == MOE_ENC_CT_PACK && r.bits == 4 && r.group == 128 && r.symmetric, "the class");
    r = rule(s, "m.mlp.shared.up");
    tap_ok(r.enc == MOE_ENC_CT_PACK && r.bits == 8 && r.group == 0 && !r.symmetric,
        "an expression goes before the class");
    r = rule(s, "x.shared.up");
    tap_ok(r.enc == MOE_ENC_CT_FP8 && r.block_rows == 128 && r.group == 64,
        "a full name goes before an expression");
    tap_is_int(rule(s, "x.y.z").enc, MOE_ENC_CT_PACK, "a full name is the whole name");
    tap_is_int(rule(s, "m.mlp.gate").enc, MOE_ENC_PLAIN, "ignored by an expression");
    tap_is_int(rule(s, "lm_head").enc, MOE_ENC_PLAIN, "ignored by name");
    tap_is_int(rule(s, "m.lm_head").enc, MOE_ENC_CT_PACK, "not by a part of the name");
    tap_is_int(rule(s, "x.kv").enc, MOE_ENC_PLAIN, "a group without weights");
    moe_qscheme_free(s);
}

static void
encodings(void)
{
    static const struct { const char *text; struct moe_qrule want; } cases[] = {
        { CT("int-quantized", GROUP("g", "\"Linear\"", "\"num_bits\":8,\"strategy\":\"channel\"")),
            { MOE_ENC_CT_INT8, 8, 0, 1, true, false } },
        { CT("naive-quantized", GROUP("g", "\"Linear\"", "\"type\":\"float\",\"strategy\":"
            "\"tensor\"")), { MOE_ENC_CT_FP8, 8, 0, 0, true, false } },
        { CT("float-quantized", GROUP("g", "\"Linear\"", "\"type\":\"float\"")),
            { MOE_ENC_CT_FP8, 8, 0, 0, true, false } },
        { CT("pack-quantized", GROUP("g", "\"Linear\"", "\"num_bits\":3,\"group_size\":64")),
            { MOE_ENC_CT_PACK, 3, 64, 1, true, false } },
        { CT("pack-quantized", GROUP("g", "\"Linear\"", "\"num_bits\":4,\"group_size\":-1")),
            { MOE_ENC_CT_PACK, 4, 0, 1, true, false } },
        { CT("mxfp4-pack-quantized", GROUP("g", "\"Linear\"", "\"num_bits\":4,\"type\":\"float\","
            "\"group_size\":32,\"scale_dtype\":\"torch.uint8\"")),
            { MOE_ENC_CT_MXFP4, 4, 32, 1, true, false } },
        { CT("mxfp8-quantized", GROUP("g", "\"Linear\"", "\"num_bits\":8,\"type\":\"float\","
            "\"group_size\":32")), { MOE_ENC_CT_MXFP8, 8, 32, 1, true, false } },
        { CT("nvfp4-pack-quantized", GROUP("g", "\"Linear\"", "\"num_bits\":4,\"type\":\"float\","
            "\"strategy\":\"tensor_group\",\"group_size\":16")),
            { MOE_ENC_CT_NVFP4, 4, 16, 1, true, false } },
        { "{\"quant_method\":\"gptq\",\"bits\":8,\"group_size\":-1,\"checkpoint_format\":"
            "\"gptq_v2\",\"sym\":false}", { MOE_ENC_GPTQ, 8, 0, 0, false, true } },
        { "{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":64,\"version\":\"gemm\"}",
            { MOE_ENC_AWQ, 4, 64, 0, false, false } },
        { "{\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]}",
            { MOE_ENC_DS_FP8, 8, 128, 128, true, false } },
        { "{\"quant_method\":\"fp8\",\"weight_block_size\":null}",
            { MOE_ENC_DS_FP8, 8, 0, 0, true, false } },
        { "{\"quant_method\":\"mxfp4\"}", { MOE_ENC_OSS_MXFP4, 4, 32, 0, true, false } },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct moe_qscheme *s = scheme(cases[i].text);
        const struct moe_qrule *w = &cases[i].want;
        struct moe_qrule r;

        if (s == NULL)
            continue;
        r = rule(s, "a.b");
        tap_ok(r.enc == w->enc && r.bits == w->bits && r.group == w->group &&
            r.block_rows == w->block_rows && r.symmetric == w->symmetric &&
            r.gptq_v2 == w->gptq_v2, "its rule: %s, %d bits", moe_qmat_enc_name(r.enc), r.bits);
        moe_qscheme_free(s);
    }
}

static void
exceptions(void)
{
    struct moe_qscheme *s = scheme("{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":128,"
        "\"dynamic\":{\"-:.*\\\\.gate$\":{},\"+:.*\\\\.down\":{\"bits\":8,\"group_size\":32},"
        "\"model.layers.1\":{\"sym\":false}}}");
    struct moe_qrule r;

    if (s != NULL) {
        tap_is_int(rule(s, "model.layers.0.mlp.gate").enc, MOE_ENC_PLAIN, "gptq: left alone");
        r = rule(s, "model.layers.1.mlp.down");
        tap_ok(r.bits == 8 && r.group == 32 && r.symmetric, "gptq: other numbers, the first");
        r = rule(s, "model.layers.1.mlp.up");
        tap_ok(r.bits == 4 && r.group == 128 && !r.symmetric, "gptq: other symmetry");
        tap_is_int(rule(s, "model.layers.0.mlp.up").bits, 4, "gptq: the rest");
        tap_is_str(moe_qscheme_method(s), "gptq", "gptq: the method");
    }
    moe_qscheme_free(s);
    s = scheme("{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":128,"
        "\"modules_to_not_convert\":[\"gate\",\"lm_head\",\"\"]}");
    if (s != NULL) {
        tap_is_int(rule(s, "a.mlp.gate").enc, MOE_ENC_PLAIN, "awq: a component");
        tap_is_int(rule(s, "a.mlp.gate_proj").enc, MOE_ENC_AWQ, "awq: not the start of one");
        tap_is_int(rule(s, "a.mlp.my_gate.gate.x").enc, MOE_ENC_PLAIN, "awq: one in the middle");
        tap_is_int(rule(s, "lm_head").enc, MOE_ENC_PLAIN, "awq: the whole name");
    }
    moe_qscheme_free(s);
    s = scheme("{\"quant_method\":\"mxfp4\",\"modules_to_not_convert\":"
        "[\"model.layers.*.self_attn\",\"lm_head\"]}");
    if (s != NULL) {
        tap_is_int(rule(s, "model.layers.3.self_attn.q_proj").enc, MOE_ENC_PLAIN, "mxfp4: a star");
        tap_is_int(rule(s, "model.layers.3.mlp.experts.down_proj").enc, MOE_ENC_OSS_MXFP4,
            "mxfp4: the rest");
    }
    moe_qscheme_free(s);
}

static void
wrong(void)
{
    refused(MOE_EFORMAT, "[]", "c: quantization_config: not an object");
    refused(MOE_EFORMAT, "{}", "quant_method");
    refused(MOE_EFORMAT, "{\"quant_method\":3}", "quant_method");
    refused(MOE_EUNSUP, "{\"quant_method\":\"bitsandbytes\"}",
        "c: quantization_config.quant_method: bitsandbytes is not read");
    refused(MOE_EFORMAT, CT("pack-quantized", GROUP("g", "\"Linear\"", "\"num_bits\":\"4\"")),
        "config_groups.g.weights: num_bits");
    refused(MOE_EFORMAT, CT("pack-quantized", GROUP("g", "\"Linear\"", INT4 ",\"extra\":1")),
        "extra");
    refused(MOE_EFORMAT, CT("pack-quantized", GROUP("g", "7", INT4)),
        "config_groups.g: targets: not a list of strings");
    refused(MOE_EFORMAT, CT("pack-quantized", "\"g\":4"), "config_groups.g: not an object");
    refused(MOE_EFORMAT, CT("pack-quantized", GROUP("g", "\"re:(\"", INT4)), "expression (");
    refused(MOE_EFORMAT, CT("pack-quantized", GROUP("g", "\"a\\u0000b\"", INT4)), "NUL");
    refused(MOE_EUNSUP, CT("marlin-24", GROUP("g", "\"Linear\"", INT4)),
        "config_groups.g.weights: marlin-24 with 4 bits of type int is not read");
    refused(MOE_EUNSUP, CT("int-quantized", GROUP("g", "\"Linear\"", INT4)), "int-quantized with");
    refused(MOE_EFORMAT, CT("mixed-precision", GROUP("g", "\"Linear\"", INT4)),
        "format: is missing");
    refused(MOE_EUNSUP, CT("pack-quantized", GROUP("g", "\"Linear\"", INT4 ",\"dynamic\":true")),
        "dynamic: true is not read");
    refused(MOE_EUNSUP, CT("pack-quantized", GROUP("g", "\"Linear\"", INT4
        ",\"actorder\":\"group\"")), "actorder: group is not read");
    refused(MOE_EUNSUP, CT("pack-quantized", GROUP("g", "\"Linear\"", "\"num_bits\":4,"
        "\"strategy\":\"tensor\"")), "strategy: tensor");
    refused(MOE_EUNSUP, CT("pack-quantized", GROUP("g", "\"Linear\"", "\"num_bits\":4,"
        "\"strategy\":\"block\"")), "strategy: block");
    refused(MOE_EUNSUP, CT("pack-quantized", GROUP("g", "\"Linear\"", "\"num_bits\":4,"
        "\"strategy\":\"token\"")), "strategy: token");
    refused(MOE_EFORMAT, CT("pack-quantized", GROUP("g", "\"Linear\"", "\"num_bits\":4,"
        "\"strategy\":\"group\"")), "group_size");
    refused(MOE_EFORMAT, CT("pack-quantized", GROUP("g", "\"Linear\"", "\"num_bits\":4,"
        "\"strategy\":\"group\",\"group_size\":-1")), "no size for groups");
    refused(MOE_EFORMAT, CT("float-quantized", GROUP("g", "\"Linear\"", "\"type\":\"float\","
        "\"strategy\":\"block\"")), "block_structure: is missing");
    refused(MOE_EFORMAT, CT("float-quantized", GROUP("g", "\"Linear\"", "\"type\":\"float\","
        "\"strategy\":\"block\",\"block_structure\":[128,0]")), "not two sizes");
    refused(MOE_EUNSUP, CT("float-quantized", GROUP("g", "\"Linear\"", "\"type\":\"float\","
        "\"symmetric\":false")), "symmetric: false");
    refused(MOE_EUNSUP, "{\"quant_method\":\"compressed-tensors\",\"config_groups\":{},"
        "\"sparsity_config\":{\"format\":\"sparse-24-bitmask\"}}", "sparsity_config.format");
    refused(MOE_EUNSUP, "{\"quant_method\":\"compressed-tensors\",\"config_groups\":{},"
        "\"transform_config\":{\"config_groups\":{\"u\":{}}}}", "transform_config");
    refused(MOE_EFORMAT, "{\"quant_method\":\"compressed-tensors\"}", "config_groups");
    refused(MOE_EUNSUP, "{\"quant_method\":\"gptq\",\"bits\":3,\"group_size\":128}", "bits: 3");
    refused(MOE_EFORMAT, "{\"quant_method\":\"gptq\",\"bits\":4}", "group_size");
    refused(MOE_EFORMAT, "{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":0}", "groups of 0");
    refused(MOE_EUNSUP, "{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":8,"
        "\"checkpoint_format\":\"marlin\"}", "checkpoint_format: marlin");
    refused(MOE_EFORMAT, "{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":8,"
        "\"dynamic\":{\"x\":1}}", "dynamic: x: not an object");
    refused(MOE_EUNSUP, "{\"quant_method\":\"awq\",\"bits\":8,\"group_size\":8}", "bits: 8");
    refused(MOE_EUNSUP, "{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":8,\"version\":"
        "\"gemv\"}", "version: gemv");
    refused(MOE_EUNSUP, "{\"quant_method\":\"fp8\",\"fmt\":\"e5m2\"}", "fmt: e5m2");
    refused(MOE_EFORMAT, "{\"quant_method\":\"fp8\",\"weight_block_size\":[128]}", "not two sizes");
}

static void
limits(void)
{
    struct moe_err e = { 0, "" };
    struct moe_qscheme *s;
    struct moe_qrule r;
    char text[8192], module[64];
    size_t at = (size_t)snprintf(text, sizeof(text),
        "{\"quant_method\":\"compressed-tensors\",\"config_groups\":{},\"ignore\":[\"re:");

    /* An expression whose steps explode is stopped. */
    s = scheme("{\"quant_method\":\"compressed-tensors\",\"config_groups\":{},\"ignore\":"
        "[\"re:(a+)+$\"]}");
    (void)snprintf(module, sizeof(module), "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab");
    if (s != NULL)
        tap_ok(moe_qscheme_rule(s, module, &r, &e) == MOE_ELIMIT &&
            strstr(e.text, "takes too long") != NULL, "an expression that explodes");
    moe_qscheme_free(s);
    memset(text + at, 'a', MOE_QSCHEME_MAX_REGEX + 1);
    at += MOE_QSCHEME_MAX_REGEX + 1;
    (void)snprintf(text + at, sizeof(text) - at, "\"]}");
    refused(MOE_ELIMIT, text, "more than 4096 bytes");
    tap_is_int(moe_qscheme_new(NULL, "c", &s, &e), 0, "no configuration");
    tap_is_int(rule(s, "a").enc, MOE_ENC_PLAIN, "then all is plain");
    tap_is_str(moe_qscheme_method(s), "none", "and the method none");
    moe_qscheme_free(s);
    moe_qscheme_free(NULL);
}

int
main(void)
{
    saved_models("quant/e2e/mixtral.json", "model.layers.0.block_sparse_moe.gate");
    saved_models("quant/e2e/qwen3_moe.json", "model.layers.0.mlp.gate");
    compressed_tensors();
    encodings();
    exceptions();
    wrong();
    limits();
    return tap_done();
}
