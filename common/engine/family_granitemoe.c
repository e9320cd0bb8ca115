/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of Granite-MoE (model_type granitemoe; arXiv 2408.13359). */
#include "common/engine/family.h"

static const struct moe_family_must must[] = {
    { "position_embedding_type", "\"rope\"" },
    { NULL, NULL },
};

const struct moe_family moe_family_granitemoe = {
    .name = "granitemoe",
    .norm_eps = 1e-6,
    .rope_theta = 1e4,
    .max_pos = 2048,
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
        [MOE_W_ROUTER] = "model.layers.{l}.block_sparse_moe.router.layer",
        [MOE_W_EXPERTS_GATE_UP] = "model.layers.{l}.block_sparse_moe.input_linear",
        [MOE_W_EXPERTS_DOWN] = "model.layers.{l}.block_sparse_moe.output_linear",
    },
    .qkv_bias = { "attention_bias", false },
    .o_bias = { "attention_bias", false },
    .attn_scale = { "attention_multiplier", 1 },
    .embed_scale = { "embedding_multiplier", 1 },
    .residual_scale = { "residual_multiplier", 1 },
    .logits_div = { "logits_scaling", 1 },
    .router = MOE_ROUTER_TOP_SOFTMAX,
    .must = must,
};
