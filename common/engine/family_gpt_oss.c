/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of gpt-oss (model_type gpt_oss; arXiv 2508.10925). */
#include "common/engine/family.h"

const struct moe_family moe_family_gpt_oss = {
    .name = "gpt_oss",
    .norm_eps = 1e-5,
    .rope_theta = 150000,
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
        [MOE_W_SINKS] = "model.layers.{l}.self_attn.sinks",
        [MOE_W_MLP_NORM] = "model.layers.{l}.post_attention_layernorm",
        [MOE_W_ROUTER] = "model.layers.{l}.mlp.router",
        [MOE_W_EXPERTS_GATE_UP] = "model.layers.{l}.mlp.experts.gate_up_proj",
        [MOE_W_EXPERTS_DOWN] = "model.layers.{l}.mlp.experts.down_proj",
    },
    .qkv_bias = { "attention_bias", true },
    .o_bias = { "attention_bias", true },
    .router_bias = { NULL, true },
    .expert_bias = { NULL, true },
    .window = { NULL, true },
    .window_layers = MOE_WINDOW_EVEN,
    .router = MOE_ROUTER_TOP_SOFTMAX,
    .act = MOE_ACT_CLAMPED,
};
