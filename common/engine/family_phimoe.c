/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of Phi-3.5-MoE (model_type phimoe; arXiv 2404.14219). */
#include "common/engine/family.h"

const struct moe_family moe_family_phimoe = {
    .name = "phimoe",
    .norm_eps = 1e-5,
    .rope_theta = 1e6,
    .max_pos = 131072,
    .weights = {
        [MOE_W_EMBED] = "model.embed_tokens",
        [MOE_W_NORM] = "model.norm",
        [MOE_W_HEAD] = "lm_head",
        [MOE_W_ATTN_NORM] = "model.layers.{l}.input_layernorm",
        [MOE_W_Q] = "model.layers.{l}.self_attn.q_proj",
        [MOE_W_K] = "model.layers.{l}.self_attn.k_proj",
        [MOE_W_V] = "model.layers.{l}.self_attn.v_proj",
        [MOE_W_O] = "model.layers.{l}.self_attn.o_proj",
        [MOE_W_MLP_NORM] = "model.layers.{l}.post_attention_layernorm",
        [MOE_W_ROUTER] = "model.layers.{l}.block_sparse_moe.gate",
        [MOE_W_EXPERT_GATE] = "model.layers.{l}.block_sparse_moe.experts.{e}.w1",
        [MOE_W_EXPERT_UP] = "model.layers.{l}.block_sparse_moe.experts.{e}.w3",
        [MOE_W_EXPERT_DOWN] = "model.layers.{l}.block_sparse_moe.experts.{e}.w2",
        [MOE_W_EXPERTS_GATE_UP] = "model.layers.{l}.mlp.experts.gate_up_proj",
        [MOE_W_EXPERTS_DOWN] = "model.layers.{l}.mlp.experts.down_proj",
    },
    .norm = MOE_NORM_LAYER,
    .qkv_bias = { "attention_bias", false },
    .o_bias = { "attention_bias", false },
    .head_bias = { "lm_head_bias", false },
    .window = { NULL, true },
    .router = MOE_ROUTER_SPARSEMIXER,
};
