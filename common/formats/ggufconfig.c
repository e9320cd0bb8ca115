/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the way from GGUF metadata to a configuration. Keys are those of gguf's
 * constants.py, ARCH. left out; what config.json calls them stands beside.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/formats/ggufconfig.h"

#define KEY 128                 /* bytes of a key */
#define ARCH_KEY "general.architecture"

/* A number under one of its names. */
struct row { const char *key, *to; };

static const struct row common[] = {
    { "block_count", "num_hidden_layers" },
    { "context_length", "max_position_embeddings" },
    { "embedding_length", "hidden_size" },
    { "feed_forward_length", "intermediate_size" },
    { "attention.head_count", "num_attention_heads" },
    { "rope.freq_base", "rope_theta" },
    { "attention.layer_norm_rms_epsilon", "rms_norm_eps" },
    { "expert_count", "num_experts" },
    { "expert_used_count", "num_experts_per_tok" },
    { "expert_feed_forward_length", "moe_intermediate_size" },
    { NULL, NULL }
};

/* Attention over heads of keys and values. */
static const struct row heads[] = {
    { "attention.head_count_kv", "num_key_value_heads" },
    { "attention.key_length", "head_dim" },
    { NULL, NULL }
};

static const struct row qwen2moe[] = {
    { "expert_shared_feed_forward_length", "shared_expert_intermediate_size" },
    { NULL, NULL }
};

static const struct row olmoe[] = {
    { "attention.clamp_kqv", "clip_qkv" },
    { NULL, NULL }
};

static const struct row granite[] = {
    { "attention.scale", "attention_multiplier" },
    { "embedding_scale", "embedding_multiplier" },
    { "residual_scale", "residual_multiplier" },
    { "logit_scale", "logits_scaling" },
    { "expert_shared_feed_forward_length", "shared_intermediate_size" },
    { NULL, NULL }
};

static const struct row gpt_oss[] = {
    { "attention.sliding_window", "sliding_window" },
    { NULL, NULL }
};

static const struct row deepseek2[] = {
    { "attention.q_lora_rank", "q_lora_rank" },
    { "attention.kv_lora_rank", "kv_lora_rank" },
    { "rope.dimension_count", "qk_rope_head_dim" },
    { "attention.value_length_mla", "v_head_dim" },
    { "leading_dense_block_count", "first_k_dense_replace" },
    { "expert_shared_count", "n_shared_experts" },
    { "expert_weights_scale", "routed_scaling_factor" },
    { "expert_group_count", "n_group" },
    { "expert_group_used_count", "topk_group" },
    { NULL, NULL }
};

struct source {
    const struct moe_gguf *g;
    const char *name, *arch;
    json_t *to;
    struct moe_err *e;
};

static int deepseek(struct source *s);
static int qwen3(struct source *s);
static int gpt_oss_rope(struct source *s);

static const struct arch {
    const char *name, *dense, *moe, *shared;    /* model_type without experts, with, with shared */
    const struct row *more;
    bool latent;
    int (*rest)(struct source *s);
} archs[] = {
    { "llama", "llama", "mixtral", NULL, NULL, false, NULL },
    { "qwen3", "qwen3", NULL, NULL, NULL, false, NULL },
    { "qwen2moe", NULL, "qwen2_moe", "qwen2_moe", qwen2moe, false, NULL },
    { "qwen3moe", NULL, "qwen3_moe", NULL, NULL, false, qwen3 },
    { "olmoe", NULL, "olmoe", NULL, olmoe, false, NULL },
    { "granitemoe", NULL, "granitemoe", "granitemoeshared", granite, false, NULL },
    { "gpt-oss", NULL, "gpt_oss", NULL, gpt_oss, false, gpt_oss_rope },
    { "deepseek2", NULL, "deepseek_v2", "deepseek_v2", deepseek2, true, deepseek },
};

static int
no_memory(const struct source *s)
{
    return moe_err_set(s->e, MOE_ENOMEM, "%s: out of memory", s->name);
}

/* The key ARCH.key, or NULL. */
static const struct moe_gguf_kv *
find(const struct source *s, const char *key)
{
    char full[KEY];

    if ((size_t)snprintf(full, sizeof(full), "%s.%s", s->arch, key) >= sizeof(full))
        return NULL;
    return moe_gguf_find_kv(s->g, full);
}

static int
put(const struct source *s, json_t *o, const char *key, json_t *v)
{
    return json_object_set_new(o, key, v) == 0 ? 0 : no_memory(s);
}

/* A number under its other name, if it is there. */
static int
move(const struct source *s, json_t *o, const char *key, const char *to)
{
    const struct moe_gguf_kv *kv = find(s, key);
    int64_t i;
    double d;

    if (kv == NULL)
        return 0;
    if (moe_ggufkv_int(kv, &i))
        return put(s, o, to, json_integer(i));
    if (moe_ggufkv_real(kv, &d) && isfinite(d))
        return put(s, o, to, json_real(d));
    return moe_err_set(s->e, MOE_EFORMAT, "%s: %s: not a number", s->name, kv->key);
}

static int
move_all(const struct source *s, const struct row *r)
{
    int rc = 0;

    for (; rc == 0 && r != NULL && r->key != NULL; r++)
        rc = move(s, s->to, r->key, r->to);
    return rc;
}

/* An integer that may be missing. */
static int
integer(const struct source *s, const char *key, int64_t fallback, int64_t *v)
{
    const struct moe_gguf_kv *kv = find(s, key);

    *v = fallback;
    if (kv == NULL || moe_ggufkv_int(kv, v))
        return 0;
    return moe_err_set(s->e, MOE_EFORMAT, "%s: %s: not an integer", s->name, kv->key);
}

static bool
is_true(const struct source *s, const char *key)
{
    const struct moe_gguf_kv *kv = find(s, key);
    bool v = false;

    return kv != NULL && moe_ggufkv_bool(kv, &v) && v;
}

/* ---- What an architecture has of its own ------------------------------------------ */

static int
qwen3(struct source *s)
{
    return put(s, s->to, "norm_topk_prob", json_true());
}

static int
gpt_oss_rope(struct source *s)
{
    json_t *rope = json_object_get(s->to, "rope_scaling");

    return rope == NULL ? 0 : put(s, rope, "truncate", json_false());
}

/* V2 and V3 differ in the gate; keys without experts of a group say how it chooses. */
static int
deepseek(struct source *s)
{
    json_t *rope = json_object_get(s->to, "rope_scaling");
    const struct moe_gguf_kv *kv = find(s, "rope.scaling.yarn_log_multiplier");
    bool v3 = moe_gguf_find(s->g, "blk.0.exp_probs_b.bias") != NULL;
    int64_t whole, part, groups, heads_n, first;
    double log = 0;
    char name[KEY];
    int rc;

    if ((rc = integer(s, "attention.key_length_mla", 0, &whole)) != 0 ||
        (rc = integer(s, "rope.dimension_count", 0, &part)) != 0 ||
        (rc = integer(s, "expert_group_count", 1, &groups)) != 0 ||
        (rc = integer(s, "leading_dense_block_count", 0, &first)) != 0 ||
        (rc = integer(s, "attention.head_count", 0, &heads_n)) != 0)
        return rc;
    (void)snprintf(name, sizeof(name), "blk.%" PRId64 ".exp_probs_b.bias", first);
    v3 = v3 || moe_gguf_find(s->g, name) != NULL;
    if (whole <= part || part <= 0)
        return moe_err_set(s->e, MOE_EUNSUP, "%s: deepseek2.attention.key_length_mla: %" PRId64
            " is not over deepseek2.rope.dimension_count", s->name, whole);
    if ((rc = put(s, s->to, "qk_nope_head_dim", json_integer(whole - part))) != 0 ||
        (rc = put(s, s->to, "num_key_value_heads", json_integer(heads_n))) != 0 ||
        (rc = put(s, s->to, "norm_topk_prob", json_boolean(is_true(s, "expert_weights_norm")))) ||
        (rc = put(s, s->to, "model_type", json_string(v3 ? "deepseek_v3" : "deepseek_v2"))) != 0)
        return rc;
    if (!v3 && (rc = put(s, s->to, "topk_method", json_string(groups > 1 ? "group_limited_greedy" :
        "greedy"))) != 0)
        return rc;
    if (rope == NULL || kv == NULL || !moe_ggufkv_real(kv, &log))
        return 0;
    log = round(log * 1e7) / 1e6;       /* a tenth of mscale, as F32 */
    if ((rc = put(s, rope, "mscale", json_real(log))) != 0)
        return rc;
    return put(s, rope, "mscale_all_dim", json_real(log));
}

/* ---- The whole -------------------------------------------------------------------- */

static int
read_rope(struct source *s)
{
    static const struct row rows[] = {
        { "rope.scaling.factor", "factor" },
        { "rope.scaling.original_context_length", "original_max_position_embeddings" },
        { "rope.scaling.yarn_beta_fast", "beta_fast" },
        { "rope.scaling.yarn_beta_slow", "beta_slow" },
    };
    const struct moe_gguf_kv *kv = find(s, "rope.scaling.type");
    const char *type;
    size_t n;
    json_t *o;
    int rc;

    if (moe_gguf_find(s->g, "rope_freqs.weight") != NULL)
        return moe_err_set(s->e, MOE_EUNSUP, "%s: rope_freqs.weight: frequencies of RoPE in a"
            " tensor are not read", s->name);
    if (kv == NULL)
        return 0;
    if (!moe_ggufkv_str(kv, &type, &n))
        return moe_err_set(s->e, MOE_EFORMAT, "%s: %s: not a string", s->name, kv->key);
    if (n == 4 && memcmp(type, "none", 4) == 0)
        return 0;
    if (!(n == 4 && memcmp(type, "yarn", 4) == 0) && !(n == 6 && memcmp(type, "linear", 6) == 0))
        return moe_err_set(s->e, MOE_EUNSUP, "%s: %s: %.*s is not read", s->name, kv->key, (int)n,
            type);
    if ((o = json_object()) == NULL || json_object_set_new(s->to, "rope_scaling", o) != 0)
        return no_memory(s);
    rc = put(s, o, "rope_type", json_stringn(type, n));
    for (size_t i = 0; rc == 0 && i < sizeof(rows) / sizeof(rows[0]); i++)
        rc = move(s, o, rows[i].key, rows[i].to);
    return rc;
}

/* Where a text ends. */
static int
read_end(const struct source *s)
{
    const struct moe_gguf_kv *kv = moe_gguf_find_kv(s->g, "tokenizer.ggml.eos_token_id");
    int64_t v;

    if (kv == NULL)
        return 0;
    if (!moe_ggufkv_int(kv, &v))
        return moe_err_set(s->e, MOE_EFORMAT, "%s: %s: not an integer", s->name, kv->key);
    return put(s, s->to, "eos_token_id", json_integer(v));
}

/* The model_type, and what hangs on tensors. */
static int
read_type(struct source *s, const struct arch *a)
{
    const struct moe_gguf_tensor *embed = moe_gguf_find(s->g, "token_embd.weight");
    bool tied = moe_gguf_find(s->g, "output.weight") == NULL;
    const char *type;
    int64_t experts;
    int rc = integer(s, "expert_count", 0, &experts);

    if (rc != 0)
        return rc;
    type = experts == 0 ? a->dense : a->moe;
    if (experts > 0 && a->shared != NULL && find(s, "expert_shared_feed_forward_length") != NULL)
        type = a->shared;
    if (type == NULL)
        return moe_err_set(s->e, MOE_EUNSUP, "%s: " ARCH_KEY ": %s with %" PRId64 " experts is not"
            " read", s->name, a->name, experts);
    if (embed == NULL)
        return moe_err_set(s->e, MOE_ENOENT, "%s: token_embd.weight: the tensor is missing",
            s->name);
    if (embed->ne[1] > INT32_MAX)
        return moe_err_set(s->e, MOE_EFORMAT, "%s: token_embd.weight: %" PRIu64 " rows", s->name,
            embed->ne[1]);
    if ((rc = put(s, s->to, "model_type", json_string(type))) != 0 ||
        (rc = put(s, s->to, "vocab_size", json_integer((json_int_t)embed->ne[1]))) != 0)
        return rc;
    return put(s, s->to, "tie_word_embeddings", json_boolean(tied));
}

static const struct arch *
find_arch(const struct moe_gguf *g, const char *name, struct moe_err *e)
{
    const struct moe_gguf_kv *kv = moe_gguf_find_kv(g, ARCH_KEY);
    const char *text;
    size_t n;

    if (kv == NULL || !moe_ggufkv_str(kv, &text, &n)) {
        moe_err_set(e, MOE_EFORMAT, "%s: " ARCH_KEY ": there is none", name);
        return NULL;
    }
    for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++)
        if (strlen(archs[i].name) == n && memcmp(archs[i].name, text, n) == 0)
            return &archs[i];
    moe_err_set(e, MOE_EUNSUP, "%s: " ARCH_KEY ": %.*s is not read", name, (int)n, text);
    return NULL;
}

int
moe_ggufconfig_read(const struct moe_gguf *g, const char *name, struct moe_config *out,
    struct moe_err *e)
{
    const struct arch *a = find_arch(g, name, e);
    struct moe_err local;
    struct source s = { g, name, a == NULL ? NULL : a->name, NULL, e == NULL ? &local : e };
    int rc;

    *out = (struct moe_config){ .tree = NULL };
    if (a == NULL)
        return e == NULL ? MOE_EUNSUP : e->code;
    if ((s.to = json_object()) == NULL)
        return no_memory(&s);
    if ((rc = read_type(&s, a)) == 0 && (rc = move_all(&s, common)) == 0 &&
        (rc = a->latent ? 0 : move_all(&s, heads)) == 0 && (rc = move_all(&s, a->more)) == 0 &&
        (rc = read_rope(&s)) == 0 && (rc = read_end(&s)) == 0)
        rc = a->rest == NULL ? 0 : a->rest(&s);
    if (rc != 0) {
        json_decref(s.to);
        return rc;
    }
    return moe_config_from(s.to, name, out, e);
}
