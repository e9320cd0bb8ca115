/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the meaning of tensor names: three tables (families, suffixes, names)
 * and one matcher. Looks at no shapes and no data.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/formats/naming.h"

/*
 * Families, and how a family lays out the stack experts.gate_up_proj. What
 * transformers 5 dumps of the others is halves, [E, 2I, H].
 */
enum { HALVES = 0, INTERLEAVED = 1, TRANSPOSED = 2 };

static const struct {
    const char *name;
    int layout;
} families[] = {
    { "mixtral", HALVES },
    { "qwen2_moe", HALVES },
    { "qwen3_moe", HALVES },
    { "olmoe", HALVES },
    { "deepseek_v2", HALVES },
    { "deepseek_v3", HALVES },
    { "gpt_oss", INTERLEAVED | TRANSPOSED },
    { "granitemoe", HALVES },
    { "granitemoeshared", HALVES },
    { "phimoe", HALVES },
    { "llama4", TRANSPOSED },
    { "llama4_text", TRANSPOSED },
    { "gemma4", HALVES },
    { "gemma4_text", HALVES },
    { "qwen3_5_moe", HALVES },
    { "qwen3_5_moe_text", HALVES },
    { "qwen3_vl_moe", TRANSPOSED },
    { "qwen3_vl_moe_text", TRANSPOSED },
};

/* Suffixes of one matrix's parts; a longer one stands before its own ending. */
static const struct {
    const char *text;
    enum moe_part part;
    bool stack;                 /* only on the stacks of gpt-oss */
} suffixes[] = {
    { ".weight", MOE_PART_WEIGHT, false },
    { ".bias", MOE_PART_BIAS, false },
    { ".e_score_correction_bias", MOE_PART_BIAS, false },
    { ".weight_packed", MOE_PART_PACKED, false },
    { ".weight_scale", MOE_PART_SCALE, false },
    { ".weight_scale_inv", MOE_PART_SCALE, false },
    { ".weight_scale_2", MOE_PART_GLOBAL, false },
    { ".weight_global_scale", MOE_PART_GLOBAL, false },
    { ".weight_zero_point", MOE_PART_ZERO, false },
    { ".weight_shape", MOE_PART_SHAPE, false },
    { ".weight_g_idx", MOE_PART_G_IDX, false },
    { ".input_scale", MOE_PART_INPUT_SCALE, false },
    { ".input_global_scale", MOE_PART_INPUT_SCALE, false },
    { ".qweight", MOE_PART_PACKED, false },
    { ".qzeros", MOE_PART_ZERO, false },
    { ".scales", MOE_PART_SCALE, false },
    { ".g_idx", MOE_PART_G_IDX, false },
    { "_blocks", MOE_PART_PACKED, true },
    { "_scales", MOE_PART_SCALE, true },
    { "_bias", MOE_PART_BIAS, true },
};

/*
 * Names without prefix, layer and suffix. '#' is a number (the expert), a '*'
 * at the end anything. STACK: all experts in one tensor; BY_FAMILY: of the
 * layout of the family. BARE: a parameter of its own, without ".weight".
 */
enum { STACK = 1, BY_FAMILY = 2, BARE = 4 };

struct row {
    const char *pattern;
    enum moe_role role;
    enum moe_proj proj;
    int flags;
};

/* Outside the layers. */
static const struct row top[] = {
    { "embed_tokens", MOE_ROLE_EMBED, MOE_PROJ_NONE, 0 },
    { "embed_tokens_per_layer", MOE_ROLE_EMBED, MOE_PROJ_NONE, 0 },
    { "per_layer_model_projection", MOE_ROLE_EMBED, MOE_PROJ_NONE, 0 },
    { "per_layer_projection_norm", MOE_ROLE_NORM, MOE_PROJ_NONE, 0 },
    { "norm", MOE_ROLE_NORM, MOE_PROJ_NONE, 0 },
    { "lm_head", MOE_ROLE_HEAD, MOE_PROJ_NONE, 0 },
    { "mtp.layers.#.mlp.experts.#.gate_proj", MOE_ROLE_MTP, MOE_PROJ_GATE, 0 },
    { "mtp.layers.#.mlp.experts.#.up_proj", MOE_ROLE_MTP, MOE_PROJ_UP, 0 },
    { "mtp.layers.#.mlp.experts.#.down_proj", MOE_ROLE_MTP, MOE_PROJ_DOWN, 0 },
    { "mtp.*", MOE_ROLE_MTP, MOE_PROJ_NONE, BARE },
    { "visual.*", MOE_ROLE_OTHER_TOWER, MOE_PROJ_NONE, BARE },
    { "vision_model.*", MOE_ROLE_OTHER_TOWER, MOE_PROJ_NONE, BARE },
    { "vision_tower.*", MOE_ROLE_OTHER_TOWER, MOE_PROJ_NONE, BARE },
    { "audio_tower.*", MOE_ROLE_OTHER_TOWER, MOE_PROJ_NONE, BARE },
    { "embed_vision.*", MOE_ROLE_OTHER_TOWER, MOE_PROJ_NONE, BARE },
    { "embed_audio.*", MOE_ROLE_OTHER_TOWER, MOE_PROJ_NONE, BARE },
    { "multi_modal_projector.*", MOE_ROLE_OTHER_TOWER, MOE_PROJ_NONE, BARE },
    { NULL, MOE_ROLE_UNKNOWN, MOE_PROJ_NONE, 0 }
};

/* Behind layers.N. */
static const struct row layer[] = {
    { "self_attn.q_proj", MOE_ROLE_ATTN, MOE_PROJ_Q, 0 },
    { "self_attn.k_proj", MOE_ROLE_ATTN, MOE_PROJ_K, 0 },
    { "self_attn.v_proj", MOE_ROLE_ATTN, MOE_PROJ_V, 0 },
    { "self_attn.o_proj", MOE_ROLE_ATTN, MOE_PROJ_O, 0 },
    { "self_attn.qkv_proj", MOE_ROLE_ATTN, MOE_PROJ_QKV, 0 },
    { "self_attn.q_a_proj", MOE_ROLE_ATTN, MOE_PROJ_Q_A, 0 },
    { "self_attn.q_b_proj", MOE_ROLE_ATTN, MOE_PROJ_Q_B, 0 },
    { "self_attn.kv_a_proj_with_mqa", MOE_ROLE_ATTN, MOE_PROJ_KV_A, 0 },
    { "self_attn.kv_b_proj", MOE_ROLE_ATTN, MOE_PROJ_KV_B, 0 },
    { "self_attn.q_norm", MOE_ROLE_NORM, MOE_PROJ_Q, 0 },
    { "self_attn.k_norm", MOE_ROLE_NORM, MOE_PROJ_K, 0 },
    { "self_attn.q_a_layernorm", MOE_ROLE_NORM, MOE_PROJ_Q_A, 0 },
    { "self_attn.kv_a_layernorm", MOE_ROLE_NORM, MOE_PROJ_KV_A, 0 },
    { "self_attn.sinks", MOE_ROLE_SINK, MOE_PROJ_NONE, BARE },
    { "self_attn.k_scale", MOE_ROLE_ATTN, MOE_PROJ_K, BARE },
    { "self_attn.v_scale", MOE_ROLE_ATTN, MOE_PROJ_V, BARE },
    { "self_attn.rotary_emb.inv_freq", MOE_ROLE_ATTN, MOE_PROJ_NONE, BARE },
    { "self_attn.indexer.*", MOE_ROLE_ATTN, MOE_PROJ_NONE, BARE },
    { "linear_attn.norm", MOE_ROLE_NORM, MOE_PROJ_NONE, 0 },
    { "linear_attn.*", MOE_ROLE_ATTN, MOE_PROJ_NONE, BARE },

    { "input_layernorm", MOE_ROLE_NORM, MOE_PROJ_NONE, 0 },
    { "post_attention_layernorm", MOE_ROLE_NORM, MOE_PROJ_NONE, 0 },
    { "pre_feedforward_layernorm", MOE_ROLE_NORM, MOE_PROJ_NONE, 0 },
    { "pre_feedforward_layernorm_2", MOE_ROLE_NORM, MOE_PROJ_NONE, 0 },
    { "post_feedforward_layernorm", MOE_ROLE_NORM, MOE_PROJ_NONE, 0 },
    { "post_feedforward_layernorm_1", MOE_ROLE_NORM, MOE_PROJ_NONE, 0 },
    { "post_feedforward_layernorm_2", MOE_ROLE_NORM, MOE_PROJ_NONE, 0 },
    { "post_per_layer_input_norm", MOE_ROLE_NORM, MOE_PROJ_NONE, 0 },
    { "layer_scalar", MOE_ROLE_NORM, MOE_PROJ_NONE, BARE },

    { "block_sparse_moe.gate", MOE_ROLE_ROUTER, MOE_PROJ_NONE, 0 },
    { "block_sparse_moe.router.layer", MOE_ROLE_ROUTER, MOE_PROJ_NONE, 0 },
    { "mlp.gate", MOE_ROLE_ROUTER, MOE_PROJ_NONE, 0 },
    { "mlp.router", MOE_ROLE_ROUTER, MOE_PROJ_NONE, 0 },
    { "feed_forward.router", MOE_ROLE_ROUTER, MOE_PROJ_NONE, 0 },
    { "router.proj", MOE_ROLE_ROUTER, MOE_PROJ_NONE, 0 },
    { "router.scale", MOE_ROLE_ROUTER, MOE_PROJ_NONE, BARE },
    { "router.per_expert_scale", MOE_ROLE_ROUTER, MOE_PROJ_NONE, BARE },

    { "block_sparse_moe.experts.#.w1", MOE_ROLE_EXPERT, MOE_PROJ_GATE, 0 },
    { "block_sparse_moe.experts.#.w2", MOE_ROLE_EXPERT, MOE_PROJ_DOWN, 0 },
    { "block_sparse_moe.experts.#.w3", MOE_ROLE_EXPERT, MOE_PROJ_UP, 0 },
    { "mlp.experts.#.w1", MOE_ROLE_EXPERT, MOE_PROJ_GATE, 0 },
    { "mlp.experts.#.w2", MOE_ROLE_EXPERT, MOE_PROJ_DOWN, 0 },
    { "mlp.experts.#.w3", MOE_ROLE_EXPERT, MOE_PROJ_UP, 0 },
    { "block_sparse_moe.experts.#.gate_proj", MOE_ROLE_EXPERT, MOE_PROJ_GATE, 0 },
    { "block_sparse_moe.experts.#.up_proj", MOE_ROLE_EXPERT, MOE_PROJ_UP, 0 },
    { "block_sparse_moe.experts.#.down_proj", MOE_ROLE_EXPERT, MOE_PROJ_DOWN, 0 },
    { "mlp.experts.#.gate_proj", MOE_ROLE_EXPERT, MOE_PROJ_GATE, 0 },
    { "mlp.experts.#.up_proj", MOE_ROLE_EXPERT, MOE_PROJ_UP, 0 },
    { "mlp.experts.#.down_proj", MOE_ROLE_EXPERT, MOE_PROJ_DOWN, 0 },
    { "mlp.experts.#.gate_up_proj", MOE_ROLE_EXPERT, MOE_PROJ_GATE_UP, 0 },
    { "feed_forward.experts.#.gate_proj", MOE_ROLE_EXPERT, MOE_PROJ_GATE, 0 },
    { "feed_forward.experts.#.up_proj", MOE_ROLE_EXPERT, MOE_PROJ_UP, 0 },
    { "feed_forward.experts.#.down_proj", MOE_ROLE_EXPERT, MOE_PROJ_DOWN, 0 },
    { "experts.#.gate_proj", MOE_ROLE_EXPERT, MOE_PROJ_GATE, 0 },
    { "experts.#.up_proj", MOE_ROLE_EXPERT, MOE_PROJ_UP, 0 },
    { "experts.#.down_proj", MOE_ROLE_EXPERT, MOE_PROJ_DOWN, 0 },

    { "block_sparse_moe.input_linear", MOE_ROLE_EXPERT, MOE_PROJ_GATE_UP, STACK },
    { "block_sparse_moe.output_linear", MOE_ROLE_EXPERT, MOE_PROJ_DOWN, STACK },
    { "block_sparse_moe.experts.gate_up_proj", MOE_ROLE_EXPERT, MOE_PROJ_GATE_UP,
        STACK | BY_FAMILY | BARE },
    { "block_sparse_moe.experts.down_proj", MOE_ROLE_EXPERT, MOE_PROJ_DOWN,
        STACK | BY_FAMILY | BARE },
    { "mlp.experts.gate_up_proj", MOE_ROLE_EXPERT, MOE_PROJ_GATE_UP, STACK | BY_FAMILY | BARE },
    { "mlp.experts.down_proj", MOE_ROLE_EXPERT, MOE_PROJ_DOWN, STACK | BY_FAMILY | BARE },
    { "feed_forward.experts.gate_up_proj", MOE_ROLE_EXPERT, MOE_PROJ_GATE_UP,
        STACK | BY_FAMILY | BARE },
    { "feed_forward.experts.down_proj", MOE_ROLE_EXPERT, MOE_PROJ_DOWN, STACK | BY_FAMILY | BARE },
    { "experts.gate_up_proj", MOE_ROLE_EXPERT, MOE_PROJ_GATE_UP, STACK | BY_FAMILY | BARE },
    { "experts.down_proj", MOE_ROLE_EXPERT, MOE_PROJ_DOWN, STACK | BY_FAMILY | BARE },

    { "mlp.shared_expert.gate_proj", MOE_ROLE_SHARED, MOE_PROJ_GATE, 0 },
    { "mlp.shared_expert.up_proj", MOE_ROLE_SHARED, MOE_PROJ_UP, 0 },
    { "mlp.shared_expert.down_proj", MOE_ROLE_SHARED, MOE_PROJ_DOWN, 0 },
    { "mlp.shared_experts.gate_proj", MOE_ROLE_SHARED, MOE_PROJ_GATE, 0 },
    { "mlp.shared_experts.up_proj", MOE_ROLE_SHARED, MOE_PROJ_UP, 0 },
    { "mlp.shared_experts.down_proj", MOE_ROLE_SHARED, MOE_PROJ_DOWN, 0 },
    { "shared_mlp.input_linear", MOE_ROLE_SHARED, MOE_PROJ_GATE_UP, 0 },
    { "shared_mlp.output_linear", MOE_ROLE_SHARED, MOE_PROJ_DOWN, 0 },
    { "feed_forward.shared_expert.gate_proj", MOE_ROLE_SHARED, MOE_PROJ_GATE, 0 },
    { "feed_forward.shared_expert.up_proj", MOE_ROLE_SHARED, MOE_PROJ_UP, 0 },
    { "feed_forward.shared_expert.down_proj", MOE_ROLE_SHARED, MOE_PROJ_DOWN, 0 },
    { "mlp.shared_expert_gate", MOE_ROLE_SHARED_GATE, MOE_PROJ_NONE, 0 },

    { "mlp.gate_proj", MOE_ROLE_DENSE, MOE_PROJ_GATE, 0 },
    { "mlp.up_proj", MOE_ROLE_DENSE, MOE_PROJ_UP, 0 },
    { "mlp.down_proj", MOE_ROLE_DENSE, MOE_PROJ_DOWN, 0 },
    { "mlp.gate_up_proj", MOE_ROLE_DENSE, MOE_PROJ_GATE_UP, 0 },
    { "feed_forward.gate_proj", MOE_ROLE_DENSE, MOE_PROJ_GATE, 0 },
    { "feed_forward.up_proj", MOE_ROLE_DENSE, MOE_PROJ_UP, 0 },
    { "feed_forward.down_proj", MOE_ROLE_DENSE, MOE_PROJ_DOWN, 0 },
    { "per_layer_input_gate", MOE_ROLE_DENSE, MOE_PROJ_NONE, 0 },
    { "per_layer_projection", MOE_ROLE_DENSE, MOE_PROJ_NONE, 0 },

    /* What DeepSeek's prediction layers hold beside a layer's own names. */
    { "eh_proj", MOE_ROLE_MTP, MOE_PROJ_NONE, 0 },
    { "enorm", MOE_ROLE_MTP, MOE_PROJ_NONE, 0 },
    { "hnorm", MOE_ROLE_MTP, MOE_PROJ_NONE, 0 },
    { "embed_tokens", MOE_ROLE_MTP, MOE_PROJ_NONE, 0 },
    { "shared_head.norm", MOE_ROLE_MTP, MOE_PROJ_NONE, 0 },
    { "shared_head.head", MOE_ROLE_MTP, MOE_PROJ_NONE, 0 },
    { NULL, MOE_ROLE_UNKNOWN, MOE_PROJ_NONE, 0 }
};

/* GGUF, outside blk.N. */
static const struct row gguf_top[] = {
    { "token_embd", MOE_ROLE_EMBED, MOE_PROJ_NONE, 0 },
    { "output", MOE_ROLE_HEAD, MOE_PROJ_NONE, 0 },
    { "output_norm", MOE_ROLE_NORM, MOE_PROJ_NONE, 0 },
    { "rope_freqs", MOE_ROLE_ATTN, MOE_PROJ_NONE, 0 },
    { "rope_factors_long", MOE_ROLE_ATTN, MOE_PROJ_NONE, 0 },
    { "rope_factors_short", MOE_ROLE_ATTN, MOE_PROJ_NONE, 0 },
    { NULL, MOE_ROLE_UNKNOWN, MOE_PROJ_NONE, 0 }
};

/* GGUF, behind blk.N. */
static const struct row gguf[] = {
    { "attn_q", MOE_ROLE_ATTN, MOE_PROJ_Q, 0 },
    { "attn_k", MOE_ROLE_ATTN, MOE_PROJ_K, 0 },
    { "attn_v", MOE_ROLE_ATTN, MOE_PROJ_V, 0 },
    { "attn_output", MOE_ROLE_ATTN, MOE_PROJ_O, 0 },
    { "attn_qkv", MOE_ROLE_ATTN, MOE_PROJ_QKV, 0 },
    { "attn_q_a", MOE_ROLE_ATTN, MOE_PROJ_Q_A, 0 },
    { "attn_q_b", MOE_ROLE_ATTN, MOE_PROJ_Q_B, 0 },
    { "attn_kv_a_mqa", MOE_ROLE_ATTN, MOE_PROJ_KV_A, 0 },
    { "attn_kv_b", MOE_ROLE_ATTN, MOE_PROJ_KV_B, 0 },
    { "attn_k_b", MOE_ROLE_ATTN, MOE_PROJ_K_B, 0 },
    { "attn_v_b", MOE_ROLE_ATTN, MOE_PROJ_V_B, 0 },
    { "attn_sinks", MOE_ROLE_SINK, MOE_PROJ_NONE, 0 },
    { "attn_norm", MOE_ROLE_NORM, MOE_PROJ_NONE, 0 },
    { "ffn_norm", MOE_ROLE_NORM, MOE_PROJ_NONE, 0 },
    { "post_attention_norm", MOE_ROLE_NORM, MOE_PROJ_NONE, 0 },
    { "post_ffw_norm", MOE_ROLE_NORM, MOE_PROJ_NONE, 0 },
    { "attn_q_norm", MOE_ROLE_NORM, MOE_PROJ_Q, 0 },
    { "attn_k_norm", MOE_ROLE_NORM, MOE_PROJ_K, 0 },
    { "attn_q_a_norm", MOE_ROLE_NORM, MOE_PROJ_Q_A, 0 },
    { "attn_kv_a_norm", MOE_ROLE_NORM, MOE_PROJ_KV_A, 0 },
    { "ffn_gate_inp", MOE_ROLE_ROUTER, MOE_PROJ_NONE, 0 },
    { "exp_probs_b", MOE_ROLE_ROUTER, MOE_PROJ_NONE, BARE },
    { "ffn_gate_exps", MOE_ROLE_EXPERT, MOE_PROJ_GATE, STACK },
    { "ffn_up_exps", MOE_ROLE_EXPERT, MOE_PROJ_UP, STACK },
    { "ffn_down_exps", MOE_ROLE_EXPERT, MOE_PROJ_DOWN, STACK },
    { "ffn_gate_up_exps", MOE_ROLE_EXPERT, MOE_PROJ_GATE_UP, STACK },
    { "ffn_gate.#", MOE_ROLE_EXPERT, MOE_PROJ_GATE, 0 },    /* before the stacks, 2023 */
    { "ffn_up.#", MOE_ROLE_EXPERT, MOE_PROJ_UP, 0 },
    { "ffn_down.#", MOE_ROLE_EXPERT, MOE_PROJ_DOWN, 0 },
    { "ffn_gate_shexp", MOE_ROLE_SHARED, MOE_PROJ_GATE, 0 },
    { "ffn_up_shexp", MOE_ROLE_SHARED, MOE_PROJ_UP, 0 },
    { "ffn_down_shexp", MOE_ROLE_SHARED, MOE_PROJ_DOWN, 0 },
    { "ffn_gate_inp_shexp", MOE_ROLE_SHARED_GATE, MOE_PROJ_NONE, 0 },
    { "ffn_gate", MOE_ROLE_DENSE, MOE_PROJ_GATE, 0 },
    { "ffn_up", MOE_ROLE_DENSE, MOE_PROJ_UP, 0 },
    { "ffn_down", MOE_ROLE_DENSE, MOE_PROJ_DOWN, 0 },
    { "nextn.*", MOE_ROLE_MTP, MOE_PROJ_NONE, 0 },
    { NULL, MOE_ROLE_UNKNOWN, MOE_PROJ_NONE, 0 }
};

/* Prefixes of the language model, alone or before layers.N. */
static const char *const prefixes[] = {
    "model.language_model.", "language_model.model.", "language_model.", "model.", ""
};

/* A number without leading zeros; NULL if there is none or it is past INT_MAX. */
static const char *
number(const char *p, int *v)
{
    long n = 0;

    if (*p < '0' || *p > '9' || (*p == '0' && p[1] >= '0' && p[1] <= '9'))
        return NULL;
    for (; *p >= '0' && *p <= '9'; p++) {
        n = n * 10 + (*p - '0');
        if (n > INT_MAX)
            return NULL;
    }
    *v = (int)n;
    return p;
}

static bool
match(const char *pattern, const char *p, const char *end, int *expert)
{
    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '*')
            return true;
        if (*pattern == '#') {
            if ((p = number(p, expert)) == NULL)
                return false;
        } else if (p == end || *p++ != *pattern) {
            return false;
        }
    }
    return p == end;
}

static const struct row *
find(const struct row *rows, const char *p, const char *end, int *expert)
{
    for (; rows->pattern != NULL; rows++) {
        int x = -1;

        if (match(rows->pattern, p, end, &x)) {
            *expert = x;
            return rows;
        }
    }
    return NULL;
}

static const char *
skip(const char *p, const char *prefix)
{
    size_t n = strlen(prefix);

    return strncmp(p, prefix, n) == 0 ? p + n : NULL;
}

/* The row of name [p, end), with layer and expert; NULL if none. */
static const struct row *
lookup(const char *name, const char *end, int *at_layer, int *expert)
{
    const struct row *r = NULL;
    const char *p, *q;

    *at_layer = -1;
    if ((p = skip(name, "blk.")) != NULL) {
        if ((q = number(p, at_layer)) == NULL || *q != '.' || q >= end)
            return NULL;
        return find(gguf, q + 1, end, expert);
    }
    if ((r = find(gguf_top, name, end, expert)) != NULL)
        return r;
    for (size_t i = 0; r == NULL && i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if ((p = skip(name, prefixes[i])) == NULL || p > end)
            continue;
        if ((q = skip(p, "layers.")) != NULL && (q = number(q, at_layer)) != NULL &&
            *q == '.' && q < end)
            r = find(layer, q + 1, end, expert);
        else if (find(top, p, end, expert) != NULL) {
            *at_layer = -1;
            r = find(top, p, end, expert);
        }
    }
    return r;
}

/* Length of the module's name, and the part; the whole and OTHER if no suffix fits. */
static size_t
split(const char *name, size_t len, bool stack, enum moe_part *part)
{
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        size_t n = strlen(suffixes[i].text);

        if (suffixes[i].stack == stack && n < len &&
            memcmp(name + len - n, suffixes[i].text, n) == 0) {
            *part = suffixes[i].part;
            return len - n;
        }
    }
    *part = MOE_PART_OTHER;
    return len;
}

static void
layout(struct moe_naming *out, const char *family)
{
    size_t i, n = sizeof(families) / sizeof(families[0]);

    for (i = 0; i < n && (family == NULL || strcmp(families[i].name, family) != 0); i++)
        ;
    if (i == n) {
        out->ambiguous = true;
        return;
    }
    out->interleaved = out->proj == MOE_PROJ_GATE_UP && (families[i].layout & INTERLEAVED) != 0;
    out->transposed = out->part == MOE_PART_WEIGHT && (families[i].layout & TRANSPOSED) != 0;
}

/* The row for the first n bytes if it has all of the flags. */
static const struct row *
attempt(const char *name, size_t n, int flags, struct moe_naming *out)
{
    int at_layer, expert = -1;
    const struct row *r = lookup(name, name + n, &at_layer, &expert);

    if (r == NULL || (r->flags & flags) != flags)
        return NULL;
    out->role = r->role;
    out->proj = r->proj;
    out->layer = at_layer;
    out->expert = expert;
    out->stacked = (r->flags & STACK) != 0;
    return r;
}

/* A suffix after a dot, then no suffix, then one of the stacks of gpt-oss. */
static const struct row *
cut(const char *name, size_t len, size_t *n, struct moe_naming *out)
{
    const struct row *r;
    enum moe_part part;

    *n = split(name, len, false, &out->part);
    if (*n < len)
        return attempt(name, *n, 0, out);
    if ((r = attempt(name, len, BARE, out)) != NULL) {
        out->part = MOE_PART_WEIGHT;
    } else {
        size_t k = split(name, len, true, &part);

        if (k < len && (r = attempt(name, k, STACK | BARE, out)) != NULL) {
            out->part = part;
            *n = k;
        }
    }
    return r;
}

bool
moe_naming_parse(const char *family, int64_t n_layers, const char *tensor,
    struct moe_naming *out)
{
    const struct row *r;
    size_t n;

    *out = (struct moe_naming){ .layer = -1, .expert = -1 };
    r = cut(tensor, strlen(tensor), &n, out);
    if (r != NULL && (r->flags & BY_FAMILY) != 0)
        layout(out, family);
    if (r != NULL && n_layers > 0 && out->layer >= n_layers)
        out->role = MOE_ROLE_MTP;
    if (n >= sizeof(out->module)) {
        *out = (struct moe_naming){ .layer = -1, .expert = -1, .part = out->part };
        n = sizeof(out->module) - 1;
        r = NULL;
    }
    memcpy(out->module, tensor, n);
    out->module[n] = '\0';
    return r != NULL;
}

const char *
moe_naming_role(enum moe_role r)
{
    static const char *const names[MOE_ROLE_N] = {
        [MOE_ROLE_UNKNOWN] = "unknown", [MOE_ROLE_EMBED] = "embedding",
        [MOE_ROLE_HEAD] = "head", [MOE_ROLE_NORM] = "norm", [MOE_ROLE_ATTN] = "attention",
        [MOE_ROLE_ROUTER] = "router", [MOE_ROLE_EXPERT] = "expert",
        [MOE_ROLE_SHARED] = "shared", [MOE_ROLE_SHARED_GATE] = "shared-gate",
        [MOE_ROLE_DENSE] = "dense", [MOE_ROLE_SINK] = "sink", [MOE_ROLE_MTP] = "mtp",
        [MOE_ROLE_OTHER_TOWER] = "other-tower",
    };

    return names[r];
}

const char *
moe_naming_proj(enum moe_proj p)
{
    static const char *const names[MOE_PROJ_N] = {
        [MOE_PROJ_NONE] = "none", [MOE_PROJ_Q] = "q", [MOE_PROJ_K] = "k", [MOE_PROJ_V] = "v",
        [MOE_PROJ_O] = "o", [MOE_PROJ_GATE] = "gate", [MOE_PROJ_UP] = "up",
        [MOE_PROJ_DOWN] = "down", [MOE_PROJ_GATE_UP] = "gate-up", [MOE_PROJ_Q_A] = "q-a",
        [MOE_PROJ_Q_B] = "q-b", [MOE_PROJ_KV_A] = "kv-a", [MOE_PROJ_KV_B] = "kv-b",
        [MOE_PROJ_QKV] = "qkv", [MOE_PROJ_K_B] = "k-b", [MOE_PROJ_V_B] = "v-b",
    };

    return names[p];
}

const char *
moe_naming_family(int i)
{
    return i >= 0 && (size_t)i < sizeof(families) / sizeof(families[0]) ?
        families[i].name : NULL;
}

bool
moe_naming_known(const char *family)
{
    const char *s;

    for (int i = 0; (s = moe_naming_family(i)) != NULL; i++) {
        if (strcmp(s, family) == 0)
            return true;
    }
    return false;
}
