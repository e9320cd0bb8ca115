/* SPDX-License-Identifier: Apache-2.0 */
/* config.json: the golden models, older and newer spellings, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/formats/config.h"
#include "tests/golden.h"
#include "tests/tap.h"

static struct moe_err err;

/* As their files say, by hand. */
static const struct {
    const char *dir, *family;
    int64_t heads, kv_heads, head_dim, inter, experts, top_k, expert_inter, shared_inter;
    double eps, theta;
    bool rope, quant;
} models[] = {
    { "mixtral", "mixtral", 4, 2, 32, 256, 8, 2, 256, 0, 1e-5, 1e6, false, false },
    { "qwen2_moe", "qwen2_moe", 4, 2, 32, 256, 12, 4, 128, 256, 1e-6, 1e4, false, false },
    { "qwen3_moe", "qwen3_moe", 4, 2, 64, 256, 16, 4, 128, 0, 1e-6, 1e6, false, false },
    { "olmoe", "olmoe", 4, 4, 32, 128, 16, 4, 128, 0, 1e-5, 1e4, false, false },
    { "deepseek_v2", "deepseek_v2", 4, 4, 32, 256, 16, 4, 128, 256, 1e-6, 1e4, false, false },
    { "deepseek_v3", "deepseek_v3", 4, 4, 32, 256, 16, 4, 128, 128, 1e-6, 1e4, true, false },
    { "deepseek_v3_fp8", "deepseek_v3", 4, 4, 32, 256, 16, 4, 128, 128, 1e-6, 1e4, true, true },
    { "gpt_oss", "gpt_oss", 4, 2, 32, 128, 8, 4, 128, 0, 1e-6, 1.5e5, true, false },
    { "gpt_oss_mxfp4", "gpt_oss", 4, 2, 32, 128, 8, 4, 128, 0, 1e-6, 1.5e5, true, true },
    { "granitemoe", "granitemoe", 4, 2, 32, 128, 8, 2, 128, 0, 1e-6, 1e4, false, false },
    { "phimoe", "phimoe", 4, 2, 32, 256, 8, 2, 256, 0, 1e-5, 1e4, false, false },
};

static void
check_models(void)
{
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        struct moe_config c;
        char path[128];
        size_t n;
        char *p;

        snprintf(path, sizeof(path), "models/%s/config.json", models[i].dir);
        p = (char *)golden_file(path, &n);
        if (!tap_is_int(moe_config_parse(p, n, path, &c, &err), 0, "%s", path)) {
            free(p);
            continue;
        }
        tap_is_str(c.family, models[i].family, "%s: family", path);
        tap_ok(c.hidden == 128 && c.layers == 3 && c.vocab == 640 && c.max_pos == 512,
            "%s: sizes", path);
        tap_ok(c.heads == models[i].heads && c.kv_heads == models[i].kv_heads &&
            c.head_dim == models[i].head_dim, "%s: heads", path);
        tap_ok(c.inter == models[i].inter && c.experts == models[i].experts &&
            c.top_k == models[i].top_k && c.expert_inter == models[i].expert_inter &&
            c.shared_inter == models[i].shared_inter, "%s: experts", path);
        tap_ok(c.norm_eps == models[i].eps && c.rope_theta == models[i].theta &&
            (c.rope != NULL) == models[i].rope, "%s: norm and rope", path);
        tap_ok((c.quant != NULL) == models[i].quant && !c.tied && c.text == c.tree &&
            strcmp(c.dtype, "bfloat16") == 0, "%s: the rest", path);
        moe_config_free(&c);
        free(p);
    }
}

#define HEAD "\"model_type\":\"m\",\"hidden_size\":64,\"num_hidden_layers\":2," \
    "\"vocab_size\":100,\"num_attention_heads\":4"

static int
parse(const char *text, struct moe_config *c)
{
    return moe_config_parse(text, strlen(text), "config.json", c, &err);
}

static void
check_spellings(void)
{
    struct moe_config c;

    tap_is_int(parse("{" HEAD "}", &c), 0, "a dense model");
    tap_ok(c.experts == 0 && c.kv_heads == 4 && c.head_dim == 16 && c.inter == 0 &&
        c.norm_eps == 1e-6 && c.rope_theta == 1e4 && c.dtype[0] == '\0' && c.max_pos == 0,
        "defaults");
    moe_config_free(&c);
    tap_is_int(parse("{" HEAD ",\"head_dim\":null,\"num_experts\":null,\"num_local_experts\":8,"
        "\"num_experts_per_tok\":2,\"intermediate_size\":32,\"torch_dtype\":\"float16\","
        "\"rope_parameters\":{\"rope_theta\":5e5,\"rope_type\":\"default\"},"
        "\"quantization_config\":null,\"tie_word_embeddings\":true}", &c), 0, "version 5");
    tap_ok(c.experts == 8 && c.expert_inter == 32 && c.rope_theta == 5e5 && c.rope == NULL &&
        c.tied && c.quant == NULL && strcmp(c.dtype, "float16") == 0, "its values");
    moe_config_free(&c);
    tap_is_int(parse("{" HEAD ",\"rope_parameters\":{\"rope_theta\":7,\"rope_type\":\"yarn\"},"
        "\"dtype\":\"bfloat16\",\"torch_dtype\":\"float32\"}", &c), 0, "yarn of version 5");
    tap_ok(c.rope != NULL && c.rope_theta == 7 && strcmp(c.dtype, "bfloat16") == 0, "its values");
    moe_config_free(&c);
    tap_is_int(parse("{" HEAD ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}}", &c), 0,
        "the old type");
    tap_ok(c.rope != NULL, "is kept");
    moe_config_free(&c);
    tap_is_int(parse("{\"model_type\":\"qwen3_vl_moe\",\"tie_word_embeddings\":false,"
        "\"vision_config\":{},\"text_config\":{" HEAD ",\"dtype\":\"bfloat16\"}}", &c), 0,
        "text_config");
    tap_ok(c.hidden == 64 && strcmp(c.family, "qwen3_vl_moe") == 0 && c.text != c.tree &&
        strcmp(c.dtype, "bfloat16") == 0, "its values");
    moe_config_free(&c);
}

static void
check_refusals(void)
{
    static const struct { const char *text, *key; } bad[] = {
        { "[]", "object" },
        { "{}", "model_type" },
        { "{" HEAD ",\"hidden_size\":64}", "duplicate" },
        { "{\"model_type\":7}", "model_type" },
        { "{\"model_type\":\"a\\u0000b\"}", "model_type" },
        { "{\"model_type\":\"m\"}", "hidden_size" },
        { "{\"model_type\":\"m\",\"text_config\":[]}", "text_config" },
        { "{\"model_type\":\"0123456789012345678901234567890123456789012345678901234567890123\"}",
            "model_type" },
        { "{" HEAD ",\"num_key_value_heads\":5}", "num_key_value_heads" },
        { "{" HEAD ",\"num_key_value_heads\":0}", "num_key_value_heads" },
        { "{" HEAD ",\"head_dim\":-1}", "head_dim" },
        { "{" HEAD ",\"head_dim\":\"16\"}", "head_dim" },
        { "{" HEAD ",\"intermediate_size\":1e3}", "intermediate_size" },
        { "{" HEAD ",\"num_experts\":8}", "num_experts_per_tok" },
        { "{" HEAD ",\"num_experts\":8,\"num_experts_per_tok\":9}", "num_experts_per_tok" },
        { "{" HEAD ",\"num_experts\":-8}", "num_experts" },
        { "{" HEAD ",\"num_experts\":8,\"num_experts_per_tok\":2}", "moe_intermediate_size" },
        { "{" HEAD ",\"n_routed_experts\":8,\"num_experts_per_tok\":2,"
            "\"moe_intermediate_size\":16777216,\"n_shared_experts\":2}", "n_shared_experts" },
        { "{" HEAD ",\"rms_norm_eps\":0}", "rms_norm_eps" },
        { "{" HEAD ",\"rms_norm_eps\":\"1\"}", "rms_norm_eps" },
        { "{" HEAD ",\"rope_theta\":-1}", "rope_theta" },
        { "{" HEAD ",\"rope_scaling\":[]}", "rope_scaling" },
        { "{" HEAD ",\"rope_scaling\":{\"type\":1}}", "type" },
        { "{" HEAD ",\"tie_word_embeddings\":1}", "tie_word_embeddings" },
        { "{" HEAD ",\"torch_dtype\":\"a type of a long name\"}", "dtype" },
        { "{" HEAD ",\"quantization_config\":[]}", "quantization_config" },
        { "{" HEAD "", "config.json:1:" },
    };
    struct moe_config c;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int rc = parse(bad[i].text, &c);

        tap_ok(rc == MOE_EFORMAT && c.tree == NULL && strstr(err.text, bad[i].key) != NULL &&
            strncmp(err.text, "config.json", 11) == 0, "refused: %s", err.text);
    }
    tap_is_int(moe_config_parse("{}", MOE_CONFIG_MAX_BYTES + 1, "x", &c, &err), MOE_ELIMIT,
        "too long a text");
}

int
main(void)
{
    check_models();
    check_spellings();
    check_refusals();
    return tap_done();
}
