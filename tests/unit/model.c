/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening models: types of weights, stacked experts, bytes at odd addresses,
 * and every way a model is refused. The models are made here; what they compute
 * is compared between forms of the same weights.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/session.h"
#include "common/formats/safet.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#define MAX_TENSORS 64
#define HIDDEN 16
#define INTER 24
#define EXPERTS 3
#define VOCAB 10

static const char config[] =
    "{\"model_type\": \"mixtral\", \"hidden_size\": 16, \"intermediate_size\": 24,"
    " \"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"num_key_value_heads\": 1,"
    " \"vocab_size\": 10, \"num_local_experts\": 3, \"num_experts_per_tok\": 2,"
    " \"rms_norm_eps\": 1e-5, \"rope_theta\": 1e4, \"max_position_embeddings\": 64}";

struct tensor {
    char name[96];
    enum moe_dtype dtype;
    uint64_t shape[3];
    int rank;
};

static struct tensor list[MAX_TENSORS];
static size_t n_list;
static struct moe_backend *b;

static void
add(const char *name, enum moe_dtype t, uint64_t x, uint64_t y, uint64_t z)
{
    struct tensor *to = &list[n_list++];

    snprintf(to->name, sizeof(to->name), "%s", name);
    to->dtype = t;
    to->shape[0] = x;
    to->shape[1] = y;
    to->shape[2] = z;
    to->rank = z != 0 ? 3 : y != 0 ? 2 : 1;
}

/* A value by what the weight is, not by where it lies: forms of one model agree. */
static float
value(const char *what, size_t expert, size_t i)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ expert * 977;

    for (; *what != '\0'; what++)
        h = (h ^ (unsigned char)*what) * UINT64_C(0x100000001b3);
    h = (h ^ i) * UINT64_C(0x9E3779B97F4A7C15);
    h = (h ^ h >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
    return (float)(int)(h >> 56) / 256 - 0.25f;      /* exact in F16 and BF16 */
}

static size_t
elements(const struct tensor *t)
{
    size_t n = 1;

    for (int i = 0; i < t->rank; i++)
        n *= t->shape[i];
    return n;
}

/* Element i of tensor t. */
static float
element(const struct tensor *t, size_t i)
{
    const char *x = strstr(t->name, "experts.");
    size_t expert, per = elements(t) / (t->shape[0] == 0 ? 1 : t->shape[0]);

    if (x == NULL)
        return value(t->name, 0, i);
    if (t->rank == 2) {
        expert = (size_t)strtoul(x + 8, NULL, 10);
        return value(strchr(x + 8, 'w'), expert, i);
    }
    expert = i / per;
    i %= per;
    if (strstr(x, "gate_up") == NULL)
        return value("w2.weight", expert, i);
    return i < per / 2 ? value("w1.weight", expert, i)
        : value("w3.weight", expert, i - per / 2);
}

static void
write_element(struct moe_buf *out, enum moe_dtype t, float v)
{
    uint16_t h = t == MOE_F16 ? moe_dtype_f32_f16(v) : moe_dtype_f32_bf16(v);

    if (t == MOE_F32)
        moe_buf_add(out, &v, 4);
    else if (t == MOE_U8)
        moe_buf_byte(out, 0);
    else
        moe_buf_add(out, &h, 2);
}

static void
write_model(const char *text)
{
    struct moe_tensor t[MAX_TENSORS];
    struct moe_buf out = MOE_BUF_INIT;
    uint64_t at = 0;
    struct moe_err e;
    FILE *f;

    for (size_t i = 0; i < n_list; i++) {
        t[i] = (struct moe_tensor){ .name = list[i].name, .dtype = list[i].dtype,
            .rank = list[i].rank, .shape = list[i].shape, .begin = at };
        at += elements(&list[i]) * (moe_dtype_bits(list[i].dtype) / 8);
        t[i].end = at;
    }
    if (moe_safet_write(&out, t, n_list, NULL, 8, &e) != 0)
        abort();
    for (size_t i = 0; i < n_list; i++) {
        for (size_t k = 0; k < elements(&list[i]); k++)
            write_element(&out, list[i].dtype, element(&list[i], k));
    }
    if ((f = fopen("model.safetensors", "wb")) == NULL
        || fwrite(out.p, 1, out.len, f) != out.len || fclose(f) != 0)
        abort();
    moe_buf_fini(&out);
    scratch_put("config.json", text);
}

/* The tensors of the model, experts one by one or stacked. */
static void
tensors(enum moe_dtype t, bool stacked)
{
    static const char *const attention[] = { "q", "k", "v", "o" };
    char name[96];

    n_list = 0;
    add("model.embed_tokens.weight", t, VOCAB, HIDDEN, 0);
    add("model.norm.weight", t, HIDDEN, 0, 0);
    add("lm_head.weight", t, VOCAB, HIDDEN, 0);
    add("model.layers.0.input_layernorm.weight", t, HIDDEN, 0, 0);
    add("model.layers.0.post_attention_layernorm.weight", t, HIDDEN, 0, 0);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "model.layers.0.self_attn.%s_proj.weight", attention[i]);
        add(name, t, i == 1 || i == 2 ? HIDDEN / 2 : HIDDEN, HIDDEN, 0);
    }
    add("model.layers.0.block_sparse_moe.gate.weight", t, EXPERTS, HIDDEN, 0);
    if (stacked) {
        add("model.layers.0.mlp.experts.gate_up_proj", t, EXPERTS, 2 * INTER, HIDDEN);
        add("model.layers.0.mlp.experts.down_proj", t, EXPERTS, HIDDEN, INTER);
        return;
    }
    for (int x = 0; x < EXPERTS; x++) {
        for (int w = 1; w <= 3; w++) {
            snprintf(name, sizeof(name),
                "model.layers.0.block_sparse_moe.experts.%d.w%d.weight", x, w);
            add(name, t, w == 2 ? HIDDEN : INTER, w == 2 ? INTER : HIDDEN, 0);
        }
    }
}

static int
keep(void *ctx, struct moe_session *s, size_t at, const float *logits, struct moe_err *e)
{
    (void)s;
    (void)e;
    memcpy((float *)ctx + at * VOCAB, logits, VOCAB * sizeof(*logits));
    return 0;
}

static void
compute(float out[5 * VOCAB], const char *what)
{
    static const struct moe_sampler_options greedy = MOE_SAMPLER_GREEDY;
    static const uint32_t id[5] = { 3, 9, 0, 3, 1 };
    struct moe_model *m = NULL;
    struct moe_kv *kv = NULL;
    struct moe_forward *f = NULL;
    struct moe_session *s = NULL;
    struct moe_err e = { 0 };
    int rc;

    if ((rc = moe_model_open(".", b, NULL, &m, &e)) == 0
        && (rc = moe_kv_new(b, &m->kv, 0, &kv, &e)) == 0
        && (rc = moe_forward_new(m, 8, MOE_ARITH_F32, &f, &e)) == 0
        && (rc = moe_session_new(m, kv, 8, 0, &greedy, &s, &e)) == 0
        && (rc = moe_session_add(s, id, 5, &e)) == 0)
        rc = moe_session_run(f, s, true, keep, out, &e);
    tap_is_int(rc, 0, "%s runs%s", what, e.text);
    moe_session_free(s);
    moe_forward_free(f);
    moe_kv_free(kv);
    moe_model_close(m);
}

static void
forms(void)
{
    float want[5 * VOCAB] = { 0 }, got[5 * VOCAB] = { 0 };
    static const struct {
        const char *what;
        enum moe_dtype t;
        bool stacked;
    } forms[] = {
        { "BF16", MOE_BF16, false }, { "F16", MOE_F16, false },
        { "BF16, stacked", MOE_BF16, true }, { "F32, stacked", MOE_F32, true },
    };

    tensors(MOE_F32, false);
    write_model(config);
    compute(want, "F32");
    tap_ok(want[0] != want[1] && want[VOCAB] != want[0], "logits differ from each other");
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        tensors(forms[i].t, forms[i].stacked);
        write_model(config);
        compute(got, forms[i].what);
        tap_ok(memcmp(want, got, sizeof(got)) == 0, "%s: the same bits", forms[i].what);
    }
    tensors(MOE_BF16, false);
    memmove(list + 1, list, n_list * sizeof(*list));
    n_list++;
    list[0] = (struct tensor){ "odd", MOE_U8, { 1, 0, 0 }, 1 };
    write_model(config);
    compute(got, "data at odd addresses");
    tap_ok(memcmp(want, got, sizeof(got)) == 0, "data at odd addresses: the same bits");
}

/* ---- Refusals ---- */

static void
refused(int code, const char *words)
{
    struct moe_model *m = NULL;
    struct moe_err e = { 0 };

    tap_is_int(moe_model_open(".", b, NULL, &m, &e), code, "refused: %s", words);
    tap_ok(m == NULL && strstr(e.text, words) != NULL, "says \"%s\"", e.text);
    moe_model_close(m);
}

/* The configuration with one key changed: its old text and its new one. */
static void
with_config(const char *from, const char *to, int code, const char *words)
{
    char text[1024];
    const char *at = strstr(config, from);

    if (!tap_ok(at != NULL, "%s is in the configuration", from))
        return;
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - config), config, to, at + strlen(from));
    tensors(MOE_BF16, false);
    write_model(text);
    refused(code, words);
}

static void
with_tensor(const char *name, struct tensor to, int code, const char *words)
{
    tensors(MOE_BF16, false);
    for (size_t i = 0; i < n_list; i++) {
        if (strcmp(list[i].name, name) == 0)
            list[i] = to;
    }
    write_model(config);
    refused(code, words);
}

static void
refusals(void)
{
    with_config("\"mixtral\"", "\"gpt2\"", MOE_EUNSUP, "model_type: \"gpt2\"");
    with_config("\"hidden_size\": 16", "\"hidden_size\": 32", MOE_EFORMAT,
        "shape [10, 16], not [10, 32]");
    with_config("\"hidden_size\": 16", "\"hidden_size\": 1e9", MOE_EFORMAT, "hidden_size");
    with_config("\"num_key_value_heads\": 1", "\"num_key_value_heads\": 0", MOE_EFORMAT,
        "num_key_value_heads");
    with_config("\"num_attention_heads\": 2", "\"num_attention_heads\": 16", MOE_EFORMAT,
        "rotate");
    with_config("\"num_hidden_layers\": 1", "\"num_hidden_layers\": 2", MOE_ENOENT,
        "model.layers.1.input_layernorm.weight");
    with_config("\"num_hidden_layers\": 1", "\"num_hidden_layers\": 5000", MOE_EFORMAT,
        "num_hidden_layers: 5000");
    with_config("\"num_local_experts\": 3", "\"num_local_experts\": 4", MOE_EFORMAT, "gate");
    with_config("\"num_local_experts\": 3", "\"num_local_experts\": 0", MOE_EFORMAT,
        "no experts");
    with_config("\"rope_theta\": 1e4", "\"hidden_act\": \"gelu\"", MOE_EUNSUP, "\"gelu\"");
    with_config("\"rope_theta\": 1e4", "\"sliding_window\": \"no\"", MOE_EFORMAT,
        "sliding_window");
    with_config("\"rms_norm_eps\": 1e-5", "\"rms_norm_eps\": 3", MOE_EFORMAT, "rms_norm_eps");
    with_tensor("model.norm.weight", (struct tensor){ "x", MOE_BF16, { 16, 0, 0 }, 1 },
        MOE_ENOENT, "model.norm.weight");
    with_tensor("model.norm.weight",
        (struct tensor){ "model.norm.weight", MOE_BF16, { 8, 0, 0 }, 1 }, MOE_EFORMAT,
        "model.norm.weight: shape [8], not [16]");
    with_tensor("model.norm.weight",
        (struct tensor){ "model.norm.weight", MOE_U8, { 16, 0, 0 }, 1 }, MOE_EUNSUP, "U8");
    with_tensor("model.layers.0.block_sparse_moe.experts.2.w3.weight",
        (struct tensor){ "x", MOE_BF16, { 16, 0, 0 }, 1 }, MOE_ENOENT, "experts.2.w3");
    with_tensor("model.layers.0.block_sparse_moe.experts.1.w2.weight",
        (struct tensor){ "model.layers.0.block_sparse_moe.experts.1.w2.weight", MOE_BF16,
            { INTER, HIDDEN, 0 }, 2 }, MOE_EFORMAT, "experts.1.w2");
    remove("config.json");
    refused(MOE_ENOENT, "config.json");
}

int
main(void)
{
    struct moe_err e;

    if (!tap_is_int(moe_backend_cpu_new(NULL, &b, &e), 0, "a device"))
        return tap_done();
    scratch_enter();
    forms();
    refusals();
    scratch_leave();
    b->ops->free(b);
    return tap_done();
}
