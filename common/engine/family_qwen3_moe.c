/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of Qwen3-MoE (model_type qwen3_moe; arXiv 2505.09388). */
#include "common/engine/family.h"

const struct moe_family moe_family_qwen3_moe = {
    .name = "qwen3_moe",
    .weights = {
        [MOE_W_EMBED] = "model.embed_tokens",
        [MOE_W_NORM] = "model.norm",
        [MOE_W_HEAD] = "lm_head",
        [MOE_W_ATTN_NORM] = "model.layers.{l}.input_layernorm",
        [MOE_W_Q] = "model.layers.{l}.self_attn.q_proj",
        [MOE_W_K] = "model.layers.{l}.self_attn.k_proj",
        [MOE_W_V] = "model.layers.{l}.self_attn.v_proj",
        [MOE_W_O] = "model.layers.{l}.self_attn.o_proj",
        [MOE_W_Q_NORM] = "model.layers.{l}.self_attn.q_norm",
        [MOE_W_K_NORM] = "model.layers.{l}.self_attn.k_norm",
        [MOE_W_MLP_NORM] = "model.layers.{l}.post_attention_layernorm",
        [MOE_W_GATE] = "model.layers.{l}.mlp.gate_proj",
        [MOE_W_UP] = "model.layers.{l}.mlp.up_proj",
        [MOE_W_DOWN] = "model.layers.{l}.mlp.down_proj",
        [MOE_W_ROUTER] = "model.layers.{l}.mlp.gate",
        [MOE_W_EXPERT_GATE] = "model.layers.{l}.mlp.experts.{e}.gate_proj",
        [MOE_W_EXPERT_UP] = "model.layers.{l}.mlp.experts.{e}.up_proj",
        [MOE_W_EXPERT_DOWN] = "model.layers.{l}.mlp.experts.{e}.down_proj",
        [MOE_W_EXPERTS_GATE_UP] = "model.layers.{l}.mlp.experts.gate_up_proj",
        [MOE_W_EXPERTS_DOWN] = "model.layers.{l}.mlp.experts.down_proj",
    },
    .qkv_bias = { "attention_bias", false },
    .o_bias = { "attention_bias", false },
    .qk_norm = MOE_QK_NORM_HEAD,
    .rope_pairs = MOE_ROPE_HALF,
    .window = { "use_sliding_window", false },
    .only_dense_key = "mlp_only_layers",
    .step_key = "decoder_sparse_step",
    .router = MOE_ROUTER_SOFTMAX,
    .renorm = { "norm_topk_prob", false },
};
