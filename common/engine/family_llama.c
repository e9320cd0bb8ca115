/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of Llama (model_type llama; arXiv 2302.13971 and after), dense. */
#include "common/engine/family.h"

const struct moe_family moe_family_llama = {
    .name = "llama",
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
        [MOE_W_GATE] = "model.layers.{l}.mlp.gate_proj",
        [MOE_W_UP] = "model.layers.{l}.mlp.up_proj",
        [MOE_W_DOWN] = "model.layers.{l}.mlp.down_proj",
    },
    .qkv_bias = { "attention_bias", false },
    .o_bias = { "attention_bias", false },
    .mlp_bias = { "mlp_bias", false },
};
