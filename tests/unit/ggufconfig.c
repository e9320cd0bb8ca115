/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metadata of GGUF files that llama.cpp made, as the configuration that the same
 * models have beside their safetensors; and what is refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/formats/ggufconfig.h"
#include "common/formats/ggufw.h"
#include "tests/golden.h"
#include "tests/tap.h"

/* A header with the keys of a golden file but `without`, and its first tensors' names. */
static struct moe_gguf *
header(json_t *spec, const char *without, const char *arch)
{
    struct moe_ggufw *w = moe_ggufw_new();
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_gguf *g = NULL;
    struct moe_err e = { 0, "" };
    const char *key;
    json_t *v;
    size_t i;

    json_object_foreach(json_object_get(spec, "keys"), key, v) {
        const char *kind = json_string_value(json_array_get(v, 0));
        json_t *x = json_array_get(v, 1);

        if (strncmp(key, "GGUF.", 5) == 0 || strncmp(kind, "ARRAY", 5) == 0 ||
            strcmp(key, without) == 0)
            continue;
        if (strcmp(key, "general.architecture") == 0 && arch != NULL)
            moe_ggufw_str(w, key, arch, strlen(arch));
        else if (strcmp(kind, "STRING") == 0)
            moe_ggufw_str(w, key, json_string_value(x), json_string_length(x));
        else if (strcmp(kind, "FLOAT32") == 0)
            moe_ggufw_real(w, key, MOE_GGUF_F32, json_number_value(x));
        else if (strcmp(kind, "BOOL") == 0)
            moe_ggufw_bool(w, key, json_is_true(x));
        else
            moe_ggufw_int(w, key, MOE_GGUF_U32, json_integer_value(x));
    }
    json_array_foreach(json_object_get(spec, "tensors"), i, v) {
        uint64_t ne[4] = { 32, 640, 1, 1 };

        if (strcmp(json_string_value(json_array_get(v, 0)), without) != 0)
            moe_ggufw_tensor(w, json_string_value(json_array_get(v, 0)), MOE_GGML_F32, 2, ne);
    }
    if (moe_ggufw_emit(w, &b, &e) != 0 ||
        moe_gguf_parse(b.p, b.len, b.len + moe_ggufw_data(w), "t", &g, &e) != 0)
        tap_ok(false, "a header: %s", e.text);
    moe_buf_fini(&b);
    moe_ggufw_free(w);
    return g;
}

static json_t *
spec_of(const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "quant/gguf_file/%s-bf16.json", name);
    return golden_json(path);
}

/* Whether two numbers, or a missing one and null, are alike as F32. */
static bool
alike(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return (float)json_number_value(a) == (float)json_number_value(b);
    return json_equal(a, b) || (a == NULL && (b == NULL || json_is_null(b)));
}

/* The keys that both have must agree; those named must be there. */
static void
same(const char *name, const char *const *keys)
{
    char path[128];
    struct moe_gguf *g = header(spec_of(name), "", NULL);
    struct moe_config c;
    struct moe_err e = { 0, "" };
    json_t *want, *scaling;

    (void)snprintf(path, sizeof(path), "models/%s/config.json", name);
    want = golden_json(path);
    if (tap_is_int(moe_ggufconfig_read(g, "t", &c, &e), 0, "%s: read %s", name, e.text)) {
        for (size_t i = 0; keys[i] != NULL; i++)
            tap_ok(alike(json_object_get(c.tree, keys[i]), json_object_get(want, keys[i])),
                "%s: %s", name, keys[i]);
        scaling = json_object_get(want, "rope_scaling");
        tap_ok(json_is_object(scaling) == json_is_object(json_object_get(c.tree, "rope_scaling")),
            "%s: scaling of RoPE", name);
        for (void *it = json_object_iter(json_object_get(c.tree, "rope_scaling")); it != NULL;
            it = json_object_iter_next(json_object_get(c.tree, "rope_scaling"), it))
            tap_ok(alike(json_object_iter_value(it), json_object_get(scaling,
                json_object_iter_key(it))), "%s: %s", name, json_object_iter_key(it));
        moe_config_free(&c);
    }
    moe_gguf_free(g);
}

static void
refused(const char *name, const char *without, const char *arch, int code, const char *word)
{
    struct moe_gguf *g = header(spec_of(name), without, arch);
    struct moe_config c;
    struct moe_err e = { 0, "" };

    tap_is_int(moe_ggufconfig_read(g, "t", &c, &e), code, "%s without %s", name, without);
    tap_ok(strstr(e.text, word) != NULL && c.tree == NULL, "it names %s: %s", word, e.text);
    moe_gguf_free(g);
}

int
main(void)
{
#define SHAPE "model_type", "vocab_size", "hidden_size", "num_hidden_layers", \
    "num_attention_heads", "num_key_value_heads", "num_experts_per_tok", "intermediate_size", \
    "max_position_embeddings", "rope_theta", "rms_norm_eps", "tie_word_embeddings"
    static const char *const plain[] = { SHAPE, NULL };
    static const char *const qwen3[] = { SHAPE, "head_dim", "num_experts", "norm_topk_prob",
        "moe_intermediate_size", NULL };
    static const char *const granite[] = { SHAPE, "attention_multiplier", "embedding_multiplier",
        "residual_multiplier", "logits_scaling", NULL };
    static const char *const oss[] = { SHAPE, "head_dim", "sliding_window", NULL };
    static const char *const deepseek[] = { SHAPE, "q_lora_rank", "kv_lora_rank",
        "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "first_k_dense_replace",
        "n_shared_experts", "routed_scaling_factor", "n_group", "topk_group", "norm_topk_prob",
        "moe_intermediate_size", "topk_method", NULL };

    same("mixtral", plain);
    same("olmoe", plain);
    same("qwen3_moe", qwen3);
    same("granitemoe", granite);
    same("gpt_oss", oss);
    same("deepseek_v2", deepseek);
    same("deepseek_v3", deepseek);
    refused("mixtral", "general.architecture", NULL, MOE_EFORMAT, "general.architecture");
    refused("mixtral", "", "falcon", MOE_EUNSUP, "falcon");
    refused("mixtral", "token_embd.weight", NULL, MOE_ENOENT, "token_embd.weight");
    refused("mixtral", "llama.block_count", NULL, MOE_EFORMAT, "num_hidden_layers");
    refused("qwen3_moe", "qwen3moe.expert_count", NULL, MOE_EUNSUP, "0 experts");
    refused("deepseek_v2", "deepseek2.attention.key_length_mla", NULL, MOE_EUNSUP,
        "key_length_mla");
    return tap_done();
}
