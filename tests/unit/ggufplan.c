/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as GGUF files have them: names of llama.cpp, which families turn pairs, what they lack. */
#include <stddef.h>
#include <string.h>

#include "common/engine/ggufplan.h"
#include "tests/tap.h"

static void
name_is(const char *model_type, enum moe_weight w, const char *want)
{
    const struct moe_family *f = moe_family_find(model_type);
    struct moe_family g = moe_ggufplan_of(f);
    char name[MOE_FAMILY_MAX_NAME];

    if (want == NULL)
        tap_ok(g.weights[w] == NULL, "%s: no %s", model_type, moe_family_weight(w));
    else if (tap_ok(g.weights[w] != NULL, "%s: %s", model_type, moe_family_weight(w)))
        tap_is_str(moe_family_tensor(&g, w, 7, 3, "", name), want, "its name");
}

int
main(void)
{
    static const struct { const char *type; bool pairs; } turns[] = { { "mixtral", true },
        { "llama", true }, { "granitemoe", true }, { "deepseek_v2", true }, { "qwen3_moe", false },
        { "olmoe", false }, { "gpt_oss", false } };

    name_is("mixtral", MOE_W_EMBED, "token_embd");
    name_is("mixtral", MOE_W_EXPERT_GATE, "blk.7.ffn_gate_exps");
    name_is("mixtral", MOE_W_EXPERTS_GATE_UP, NULL);
    name_is("mixtral", MOE_W_Q_NORM, NULL);
    name_is("gpt_oss", MOE_W_EXPERT_DOWN, "blk.7.ffn_down_exps");
    name_is("gpt_oss", MOE_W_MLP_NORM, "blk.7.post_attention_norm");
    name_is("gpt_oss", MOE_W_SINKS, "blk.7.attn_sinks.weight");
    name_is("granitemoeshared", MOE_W_SHARED_UP, "blk.7.ffn_up_shexp");
    name_is("granitemoeshared", MOE_W_SHARED_GATE_UP, NULL);
    name_is("qwen2_moe", MOE_W_SHARED_MIX, "blk.7.ffn_gate_inp_shexp");
    name_is("deepseek_v3", MOE_W_ROUTER_BIAS, "blk.7.exp_probs_b.bias");
    name_is("deepseek_v3", MOE_W_K_B, "blk.7.attn_k_b");
    name_is("deepseek_v3", MOE_W_KV_B, NULL);
    name_is("qwen3", MOE_W_K_B, NULL);
    name_is("qwen3", MOE_W_EXPERT_UP, NULL);
    for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
        struct moe_family g = moe_ggufplan_of(moe_family_find(turns[i].type));

        tap_ok(g.rope_pairs.value == turns[i].pairs && g.expert_slices &&
            strcmp(g.name, turns[i].type) == 0, "%s: %s", turns[i].type,
            turns[i].pairs ? "pairs rotate" : "halves rotate");
    }
    return tap_done();
}
