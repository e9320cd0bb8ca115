/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs between model families, as data: where the weights are called
 * what, and which of a few ways each part of a layer works. The forward pass
 * reads a plan and never a family's name. A new family is one more const plan;
 * a part that works in a new way is one more value of an enum here and one more
 * branch in the one file that computes that part.
 */
#ifndef MOE_ENGINE_FAMILY_H
#define MOE_ENGINE_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The weights of a model, by what they do. */
enum moe_weight {
    MOE_W_EMBED, MOE_W_NORM, MOE_W_HEAD,        /* once a model */
    MOE_W_ATTN_NORM, MOE_W_Q, MOE_W_K, MOE_W_V, MOE_W_O, MOE_W_Q_NORM, MOE_W_K_NORM,
    MOE_W_SINKS,
    /* Of latent attention: q through a factor (or Q alone), keys and values through one. */
    MOE_W_Q_A, MOE_W_Q_A_NORM, MOE_W_Q_B, MOE_W_KV_A, MOE_W_KV_A_NORM, MOE_W_KV_B,
    MOE_W_K_B, MOE_W_V_B,                       /* its two parts, each a stack of heads */
    MOE_W_MLP_NORM,
    MOE_W_GATE, MOE_W_UP, MOE_W_DOWN,           /* of a dense layer */
    MOE_W_ROUTER, MOE_W_ROUTER_BIAS,            /* added to scores when experts are chosen */
    MOE_W_EXPERT_GATE, MOE_W_EXPERT_UP, MOE_W_EXPERT_DOWN,
    MOE_W_EXPERTS_GATE_UP, MOE_W_EXPERTS_DOWN,  /* the same, all experts of a layer stacked */
    MOE_W_SHARED_GATE, MOE_W_SHARED_UP, MOE_W_SHARED_DOWN,
    MOE_W_SHARED_GATE_UP,                       /* the first two in one, halves */
    MOE_W_SHARED_MIX,                           /* a row: sigmoid of its product weighs it */
    MOE_W_N
};

/* A choice that a family fixes (key NULL), or leaves to a key of config.json. */
struct moe_family_flag {
    const char *key;
    bool value;             /* when the key is missing */
};

/* The same of a number. */
struct moe_family_number {
    const char *key;
    double value;
};

/* A key of which only one value runs here, as JSON; missing and null are that value. */
struct moe_family_must {
    const char *key, *value;
};

enum moe_norm {
    MOE_NORM_RMS,
    MOE_NORM_LAYER          /* LayerNorm with weight and bias */
};

enum moe_qk_norm {
    MOE_QK_NORM_NONE,
    MOE_QK_NORM_HEAD,       /* RMSNorm of each head of q and k, before RoPE */
    MOE_QK_NORM_HEAD_AFTER, /* the same after RoPE */
    MOE_QK_NORM_WHOLE       /* of all heads together, before RoPE */
};

/* Which layers see a window only; a list layer_types in config.json goes before. */
enum moe_window_layers {
    MOE_WINDOW_ALL,
    MOE_WINDOW_FROM_MAX,    /* those from max_window_layers on */
    MOE_WINDOW_EVEN         /* 0, 2, 4 ... */
};

enum moe_router {
    MOE_ROUTER_SOFTMAX,     /* softmax over all experts, then the k largest */
    MOE_ROUTER_TOP_SOFTMAX, /* the k largest, then softmax over them */
    MOE_ROUTER_SIGMOID,     /* sigmoid; chosen with a bias, weighed without */
    MOE_ROUTER_SOFTMAX_BIAS,        /* the same of softmax */
    MOE_ROUTER_SPARSEMIXER  /* two experts, each weighed among those near it (2409.12136) */
};

/* What is kept of groups of experts before the choice (n_group, topk_group). */
enum moe_groups {
    MOE_GROUPS_NONE,
    MOE_GROUPS_MAX,         /* the groups of the largest best score */
    MOE_GROUPS_TOP_2        /* of the largest sum of two best */
};

enum moe_act {
    MOE_ACT_NONE,           /* a product alone */
    MOE_ACT_SILU,           /* silu(gate) * up */
    MOE_ACT_CLAMPED         /* of gpt-oss: g * sigmoid(alpha g) * (u + 1), both clamped */
};

struct moe_family {
    const char *name;               /* model_type of config.json */
    double norm_eps, rope_theta;    /* when config.json has no such key */
    int64_t max_pos;                /* and max_position_embeddings */
    bool tied;                      /* and tie_word_embeddings */
    const char *weights[MOE_W_N];   /* module names, {l} layer, {e} expert; NULL = has none */
    enum moe_norm norm;
    struct moe_family_flag qkv_bias, o_bias, mlp_bias, router_bias, expert_bias, head_bias;
    enum moe_qk_norm qk_norm;
    struct moe_family_flag qk_norm_on;      /* whether it is there; no key: it is */
    const char *clip_key;           /* q, k, v are clamped to plus and minus this */
    /* Elements 2 i and 2 i + 1 of a head rotate together; else i and i + dim / 2. */
    struct moe_family_flag rope_pairs;
    struct moe_family_number rope_part;     /* of a head that rotates; 0 = all */
    bool latent;                    /* attention over a latent of keys and values (MLA) */
    struct moe_family_number attn_scale;    /* 0 = 1 / sqrt(head_dim) */
    struct moe_family_number embed_scale, residual_scale, logits_div;   /* 0 = 1 */
    /* Attention sees sliding_window positions when this says so (and the key has a number). */
    struct moe_family_flag window;
    enum moe_window_layers window_layers;
    /*
     * Layers without experts: those in the list under only_dense_key; those where
     * (layer + 1) is no multiple of the number under step_key; the first ones, up
     * to the number under first_key; those outside [from_key, to_key]. NULL = none.
     */
    const char *only_dense_key, *step_key, *from_key, *to_key;
    struct moe_family_number first_dense;
    enum moe_router router;
    enum moe_groups groups;
    struct moe_family_flag renorm;  /* the k weights are divided by their sum */
    double renorm_add, renorm_min;  /* added to that sum; its least */
    struct moe_family_number route_scale;   /* 0 = 1 */
    enum moe_act act;               /* NONE = MOE_ACT_SILU */
    bool expert_slices;             /* EXPERT_GATE, _UP and _DOWN are stacks of all experts */
    bool shared_as_expert;          /* the shared expert is there, as wide as a routed one */
    const struct moe_family_must *must;     /* NULL, or rows that end with key NULL */
};

/* The plan of a model_type, or NULL; the i-th plan, or NULL past the last. */
const struct moe_family *moe_family_find(const char *model_type);
const struct moe_family *moe_family_at(size_t i);

#define MOE_FAMILY_MAX_NAME 256

/*
 * Name of a tensor: the module of weight w in layer l (expert x), then suffix
 * (".weight"), into dst of MOE_FAMILY_MAX_NAME bytes. Returns dst. The family
 * has the weight.
 */
char *moe_family_tensor(const struct moe_family *f, enum moe_weight w, size_t l, size_t x,
    const char *suffix, char dst[MOE_FAMILY_MAX_NAME]);

/* A short constant word for a weight: "q", "expert gate"; never NULL. */
const char *moe_family_weight(enum moe_weight w);

extern const struct moe_family moe_family_deepseek_v2;
extern const struct moe_family moe_family_deepseek_v3;
extern const struct moe_family moe_family_dots1;
extern const struct moe_family moe_family_ernie4_5_moe;
extern const struct moe_family moe_family_glm4_moe;
extern const struct moe_family moe_family_gpt_oss;
extern const struct moe_family moe_family_granitemoe;
extern const struct moe_family moe_family_granitemoeshared;
extern const struct moe_family moe_family_hunyuan_v1_moe;
extern const struct moe_family moe_family_llama;
extern const struct moe_family moe_family_mixtral;
extern const struct moe_family moe_family_olmoe;
extern const struct moe_family moe_family_phimoe;
extern const struct moe_family moe_family_qwen2_moe;
extern const struct moe_family moe_family_qwen3;
extern const struct moe_family moe_family_qwen3_moe;

#endif
