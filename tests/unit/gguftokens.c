/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokenizers in GGUF metadata: the real ones of Qwen3 and gpt-oss put into a
 * header as llama.cpp's converter has them, read back, and held against the ids of
 * the tokenizers library; a file of llama.cpp's; and what is refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/gguftokens.h"
#include "common/engine/tokenizer.h"
#include "common/formats/ggufw.h"
#include "tests/golden.h"
#include "tests/tap.h"

/* tokenizer.json of one of the real ones. */
static json_t *
real(const char *name)
{
    char cmd[128];
    json_t *tree = NULL;
    FILE *f;

    (void)snprintf(cmd, sizeof(cmd), "zstd -dcq tests/data/tokenizers/%s/tokenizer.json.zst", name);
    if ((f = popen(cmd, "r")) != NULL) {
        tree = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL);
        (void)pclose(f);
    }
    tap_ok(tree != NULL, "%s unpacks", name);
    return tree;
}

/* Tokens by id, and what kind each is: 5 where no token has the id. */
static void
put_tokens(struct moe_ggufw *w, const json_t *tree)
{
    json_t *vocab = json_object_get(json_object_get(tree, "model"), "vocab"), *id, *t;
    size_t n = json_object_size(vocab) + json_array_size(json_object_get(tree, "added_tokens")),
        i;
    const char **text = calloc(n + 100, sizeof(*text)), *key;
    int32_t *type = calloc(n + 100, sizeof(*type));
    struct moe_buf raw = MOE_BUF_INIT;

    json_object_foreach(vocab, key, id) {
        text[json_integer_value(id)] = key;
        type[json_integer_value(id)] = 1;
    }
    json_array_foreach(json_object_get(tree, "added_tokens"), i, t) {
        size_t at = (size_t)json_integer_value(json_object_get(t, "id"));

        n = at + 1 > n ? at + 1 : n;
        text[at] = json_string_value(json_object_get(t, "content"));
        type[at] = json_is_true(json_object_get(t, "special")) ? 3 : 4;
    }
    for (i = 0; i < n; i++) {
        type[i] = text[i] == NULL ? 5 : type[i];
        text[i] = text[i] == NULL ? "[PAD]" : text[i];
        moe_ggufw_raw_str(&raw, text[i], strlen(text[i]));
    }
    moe_ggufw_array(w, "tokenizer.ggml.tokens", MOE_GGUF_STRING, n, raw.p, raw.len);
    moe_ggufw_array(w, "tokenizer.ggml.token_type", MOE_GGUF_I32, n, type, n * sizeof(*type));
    moe_buf_fini(&raw);
    free(text);
    free(type);
}

/* merges: pairs or "a b". */
static void
put_merges(struct moe_ggufw *w, const json_t *tree)
{
    json_t *list = json_object_get(json_object_get(tree, "model"), "merges"), *m;
    struct moe_buf raw = MOE_BUF_INIT, one = MOE_BUF_INIT;
    size_t i;

    json_array_foreach(list, i, m) {
        moe_buf_clear(&one);
        if (json_is_string(m))
            moe_buf_str(&one, json_string_value(m));
        else
            moe_buf_fmt(&one, "%s %s", json_string_value(json_array_get(m, 0)),
                json_string_value(json_array_get(m, 1)));
        moe_ggufw_raw_str(&raw, one.p, one.len);
    }
    moe_ggufw_array(w, "tokenizer.ggml.merges", MOE_GGUF_STRING, json_array_size(list), raw.p,
        raw.len);
    moe_buf_fini(&raw);
    moe_buf_fini(&one);
}

static struct moe_gguf *
parsed(struct moe_ggufw *w)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_gguf *g = NULL;
    struct moe_err e = { 0, "" };

    tap_ok(moe_ggufw_emit(w, &b, &e) == 0 && moe_gguf_parse(b.p, b.len, b.len, "t", &g, &e) == 0,
        "a header: %s", e.text);
    moe_buf_fini(&b);
    moe_ggufw_free(w);
    return g;
}

static void
real_one(const char *name, const char *pre)
{
    struct moe_ggufw *w = moe_ggufw_new();
    struct moe_buf json = MOE_BUF_INIT;
    struct moe_tokenizer *t = NULL;
    struct moe_err e = { 0, "" };
    json_t *tree = real(name), *list, *o;
    struct moe_gguf *g;
    char path[64];
    size_t i, bad = 0;

    moe_ggufw_str(w, "tokenizer.ggml.model", "gpt2", 4);
    moe_ggufw_str(w, "tokenizer.ggml.pre", pre, strlen(pre));
    put_tokens(w, tree);
    put_merges(w, tree);
    g = parsed(w);
    tap_is_int(moe_gguftokens_json(g, "t", &json, &e), 0, "%s: as tokenizer.json %s", name, e.text);
    tap_is_int(moe_tokenizer_parse(json.p, json.len, "t", &t, &e), 0, "%s: read %s", name, e.text);
    (void)snprintf(path, sizeof(path), "text/strings.%s.json", name);
    list = json_object_get(golden_json(path), "strings");
    json_array_foreach(list, i, o) {
        json_t *text = json_object_get(o, "text"), *ids = json_object_get(o, "ids");
        struct moe_tokens got = MOE_TOKENS_INIT;

        bad += moe_tokenizer_encode(t, json_string_value(text), json_string_length(text),
            MOE_ADDED_ALL, true, &got, &e) != 0 || got.n != json_array_size(ids);
        for (size_t k = 0; k < got.n && k < json_array_size(ids); k++)
            bad += (json_int_t)got.id[k] != json_integer_value(json_array_get(ids, k));
        moe_tokens_fini(&got);
    }
    tap_ok(bad == 0 && json_array_size(list) > 100, "%s: %zu ids differ in %zu strings", name, bad,
        json_array_size(list));
    moe_tokenizer_free(t);
    moe_gguf_free(g);
    moe_buf_fini(&json);
    json_decref(tree);
}

/* A file of llama.cpp's: its template and the tokens that it names. */
static void
config(void)
{
    size_t n;
    unsigned char *p = golden_file("quant/gguf_file/qwen3_moe-cut-q8_0.gguf", &n);
    struct moe_buf json = MOE_BUF_INIT;
    struct moe_gguf *g = NULL;
    struct moe_err e = { 0, "" };
    json_t *o;

    tap_is_int(moe_gguf_parse(p, n, n, "t", &g, &e), 0, "a file of llama.cpp");
    tap_is_int(moe_gguftokens_config(g, "t", &json, &e), 0, "as tokenizer_config.json");
    o = json_loadb(json.p, json.len, 0, NULL);
    tap_is_str(json_string_value(json_object_get(o, "bos_token")), "<|endoftext|>", "bos_token");
    tap_is_str(json_string_value(json_object_get(o, "eos_token")), "<|im_end|>", "eos_token");
    tap_ok(json_string_length(json_object_get(o, "chat_template")) > 100, "chat_template");
    json_decref(o);
    moe_buf_fini(&json);
    moe_gguf_free(g);
    free(p);
}

static void
refused(const char *model, const char *pre, int types, bool bos, int code, const char *word)
{
    static const unsigned char raw[] = { 1, 0, 0, 0, 0, 0, 0, 0, 'a' };
    static const int32_t type[2] = { 1, 1 };
    struct moe_ggufw *w = moe_ggufw_new();
    struct moe_buf json = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    struct moe_gguf *g;

    if (model != NULL)
        moe_ggufw_str(w, "tokenizer.ggml.model", model, strlen(model));
    if (pre != NULL)
        moe_ggufw_str(w, "tokenizer.ggml.pre", pre, strlen(pre));
    moe_ggufw_array(w, "tokenizer.ggml.tokens", MOE_GGUF_STRING, 1, raw, sizeof(raw));
    moe_ggufw_array(w, "tokenizer.ggml.token_type", MOE_GGUF_I32, (uint64_t)types, type,
        (size_t)types * sizeof(*type));
    moe_ggufw_array(w, "tokenizer.ggml.merges", MOE_GGUF_STRING, 0, raw, 0);
    moe_ggufw_bool(w, "tokenizer.ggml.add_bos_token", bos);
    g = parsed(w);
    tap_is_int(moe_gguftokens_json(g, "t", &json, &e), code, "refused for %s", word);
    tap_ok(strstr(e.text, word) != NULL, "it names it: %s", e.text);
    moe_buf_fini(&json);
    moe_gguf_free(g);
}

int
main(void)
{
    real_one("qwen3", "qwen2");
    real_one("gptoss", "gpt-4o");
    config();
    refused(NULL, "qwen2", 1, false, MOE_ENOENT, "tokenizer.ggml.model");
    refused("llama", "qwen2", 1, false, MOE_EUNSUP, "llama");
    refused("gpt2", NULL, 1, false, MOE_ENOENT, "tokenizer.ggml.pre");
    refused("gpt2", "viking", 1, false, MOE_EUNSUP, "viking");
    refused("gpt2", "qwen2", 2, false, MOE_EFORMAT, "2 of 1");
    refused("gpt2", "qwen2", 1, true, MOE_EUNSUP, "add_bos_token");
    return tap_done();
}
