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
    MOE_W_MLP_NORM,
    MOE_W_GATE, MOE_W_UP, MOE_W_DOWN,           /* of a dense layer */
    MOE_W_ROUTER,
    MOE_W_EXPERT_GATE, MOE_W_EXPERT_UP, MOE_W_EXPERT_DOWN,
    MOE_W_EXPERTS_GATE_UP, MOE_W_EXPERTS_DOWN,  /* the same, all experts of a layer stacked */
    MOE_W_N
};

/* A choice that a family fixes (key NULL), or leaves to a key of config.json. */
struct moe_family_flag {
    const char *key;
    bool value;             /* when the key is missing */
};

enum moe_qk_norm {
    MOE_QK_NORM_NONE,
    MOE_QK_NORM_HEAD        /* RMSNorm of each head of q and k, before RoPE */
};

enum moe_rope_pairs {
    MOE_ROPE_HALF,          /* elements i and i + dim / 2 rotate together */
    MOE_ROPE_INTERLEAVED    /* elements 2 i and 2 i + 1 */
};

enum moe_router {
    MOE_ROUTER_SOFTMAX      /* softmax over all experts, then the k largest */
};

struct moe_family {
    const char *name;               /* model_type of config.json */
    double norm_eps, rope_theta;    /* when config.json has no such key */
    int64_t max_pos;                /* and max_position_embeddings */
    const char *weights[MOE_W_N];   /* module names, {l} layer, {e} expert; NULL = has none */
    struct moe_family_flag qkv_bias, o_bias;
    enum moe_qk_norm qk_norm;
    enum moe_rope_pairs rope_pairs;
    /* Attention sees sliding_window positions when this says so (and the key has a number). */
    struct moe_family_flag window;
    /*
     * Layers without experts: those in the list under only_dense_key, and those
     * where (layer + 1) is no multiple of the number under step_key; NULL = none.
     */
    const char *only_dense_key, *step_key;
    enum moe_router router;
    struct moe_family_flag renorm;  /* the k weights are divided by their sum */
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

extern const struct moe_family moe_family_mixtral;
extern const struct moe_family moe_family_qwen3_moe;

#endif
