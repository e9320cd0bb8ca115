/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what GGUF calls the weights, by gguf's constants.py; converters are those of llama.cpp. */
#include <stddef.h>
#include <string.h>

#include "common/engine/ggufplan.h"

static const char *const names[MOE_W_N] = {
    [MOE_W_EMBED] = "token_embd",
    [MOE_W_NORM] = "output_norm",
    [MOE_W_HEAD] = "output",
    [MOE_W_ATTN_NORM] = "blk.{l}.attn_norm",
    [MOE_W_Q] = "blk.{l}.attn_q",
    [MOE_W_K] = "blk.{l}.attn_k",
    [MOE_W_V] = "blk.{l}.attn_v",
    [MOE_W_O] = "blk.{l}.attn_output",
    [MOE_W_Q_NORM] = "blk.{l}.attn_q_norm",
    [MOE_W_K_NORM] = "blk.{l}.attn_k_norm",
    [MOE_W_SINKS] = "blk.{l}.attn_sinks.weight",
    [MOE_W_Q_A] = "blk.{l}.attn_q_a",
    [MOE_W_Q_A_NORM] = "blk.{l}.attn_q_a_norm",
    [MOE_W_Q_B] = "blk.{l}.attn_q_b",
    [MOE_W_KV_A] = "blk.{l}.attn_kv_a_mqa",
    [MOE_W_KV_A_NORM] = "blk.{l}.attn_kv_a_norm",
    [MOE_W_K_B] = "blk.{l}.attn_k_b",
    [MOE_W_V_B] = "blk.{l}.attn_v_b",
    [MOE_W_MLP_NORM] = "blk.{l}.ffn_norm",
    [MOE_W_GATE] = "blk.{l}.ffn_gate",
    [MOE_W_UP] = "blk.{l}.ffn_up",
    [MOE_W_DOWN] = "blk.{l}.ffn_down",
    [MOE_W_ROUTER] = "blk.{l}.ffn_gate_inp",
    [MOE_W_ROUTER_BIAS] = "blk.{l}.exp_probs_b.bias",
    [MOE_W_EXPERT_GATE] = "blk.{l}.ffn_gate_exps",
    [MOE_W_EXPERT_UP] = "blk.{l}.ffn_up_exps",
    [MOE_W_EXPERT_DOWN] = "blk.{l}.ffn_down_exps",
    [MOE_W_SHARED_GATE] = "blk.{l}.ffn_gate_shexp",
    [MOE_W_SHARED_UP] = "blk.{l}.ffn_up_shexp",
    [MOE_W_SHARED_DOWN] = "blk.{l}.ffn_down_shexp",
    [MOE_W_SHARED_MIX] = "blk.{l}.ffn_gate_inp_shexp",
};

/* Families of which the converter reorders q and k, so that elements 2 i and 2 i + 1 rotate. */
static const char *const moved[] = { "llama", "mixtral", "granitemoe", "granitemoeshared" };

/* Whether a family has weight w, under one of the names it may have. */
static bool
has(const struct moe_family *f, enum moe_weight w)
{
    switch (w) {
    case MOE_W_EXPERT_GATE:
    case MOE_W_EXPERT_UP:
        return f->weights[w] != NULL || f->weights[MOE_W_EXPERTS_GATE_UP] != NULL;
    case MOE_W_EXPERT_DOWN:
        return f->weights[w] != NULL || f->weights[MOE_W_EXPERTS_DOWN] != NULL;
    case MOE_W_SHARED_GATE:
    case MOE_W_SHARED_UP:
        return f->weights[w] != NULL || f->weights[MOE_W_SHARED_GATE_UP] != NULL;
    case MOE_W_K_B:
    case MOE_W_V_B:
        return f->latent;
    default:
        return f->weights[w] != NULL;
    }
}

struct moe_family
moe_ggufplan_of(const struct moe_family *f)
{
    struct moe_family g = *f;

    for (int w = 0; w < MOE_W_N; w++)
        g.weights[w] = has(f, (enum moe_weight)w) ? names[w] : NULL;
    if (strcmp(f->name, "gpt_oss") == 0)
        g.weights[MOE_W_MLP_NORM] = "blk.{l}.post_attention_norm";
    g.expert_slices = true;
    for (size_t i = 0; i < sizeof(moved) / sizeof(moved[0]); i++)
        if (strcmp(f->name, moved[i]) == 0)
            g.rope_pairs = (struct moe_family_flag){ NULL, true };
    return g;
}
