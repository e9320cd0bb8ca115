/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the list of families and the making of tensor names from a plan. The
 * plans themselves are in family_NAME.c.
 */
#include <stdio.h>
#include <string.h>

#include "common/engine/family.h"

static const struct moe_family *const families[] = {
    &moe_family_deepseek_v2,
    &moe_family_deepseek_v3,
    &moe_family_dots1,
    &moe_family_ernie4_5_moe,
    &moe_family_glm4_moe,
    &moe_family_gpt_oss,
    &moe_family_granitemoe,
    &moe_family_granitemoeshared,
    &moe_family_hunyuan_v1_moe,
    &moe_family_llama,
    &moe_family_mixtral,
    &moe_family_olmoe,
    &moe_family_phimoe,
    &moe_family_qwen2_moe,
    &moe_family_qwen3,
    &moe_family_qwen3_moe,
};

#define FAMILIES (sizeof(families) / sizeof(families[0]))

const struct moe_family *
moe_family_find(const char *model_type)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        if (strcmp(families[i]->name, model_type) == 0)
            return families[i];
    }
    return NULL;
}

const struct moe_family *
moe_family_at(size_t i)
{
    return i < FAMILIES ? families[i] : NULL;
}

char *
moe_family_tensor(const struct moe_family *f, enum moe_weight w, size_t l, size_t x,
    const char *suffix, char dst[MOE_FAMILY_MAX_NAME])
{
    size_t at = 0;

    for (const char *p = f->weights[w]; *p != '\0' && at + 1 < MOE_FAMILY_MAX_NAME;) {
        int n;

        if (strncmp(p, "{l}", 3) == 0 || strncmp(p, "{e}", 3) == 0) {
            n = snprintf(dst + at, MOE_FAMILY_MAX_NAME - at, "%zu", p[1] == 'l' ? l : x);
            p += 3;
        } else {
            n = snprintf(dst + at, MOE_FAMILY_MAX_NAME - at, "%c", *p++);
        }
        at += (size_t)n;
    }
    if (at < MOE_FAMILY_MAX_NAME)
        snprintf(dst + at, MOE_FAMILY_MAX_NAME - at, "%s", suffix);
    return dst;
}

const char *
moe_family_weight(enum moe_weight w)
{
    static const char *const words[MOE_W_N] = {
        [MOE_W_EMBED] = "embedding", [MOE_W_NORM] = "norm", [MOE_W_HEAD] = "head",
        [MOE_W_ATTN_NORM] = "attention norm", [MOE_W_Q] = "q", [MOE_W_K] = "k",
        [MOE_W_V] = "v", [MOE_W_O] = "o", [MOE_W_Q_NORM] = "q norm",
        [MOE_W_K_NORM] = "k norm", [MOE_W_SINKS] = "sinks", [MOE_W_Q_A] = "q a",
        [MOE_W_Q_A_NORM] = "q a norm", [MOE_W_Q_B] = "q b", [MOE_W_KV_A] = "kv a",
        [MOE_W_KV_A_NORM] = "kv a norm", [MOE_W_KV_B] = "kv b", [MOE_W_K_B] = "k b",
        [MOE_W_V_B] = "v b", [MOE_W_MLP_NORM] = "MLP norm",
        [MOE_W_GATE] = "gate", [MOE_W_UP] = "up", [MOE_W_DOWN] = "down",
        [MOE_W_ROUTER] = "router", [MOE_W_ROUTER_BIAS] = "router bias",
        [MOE_W_EXPERT_GATE] = "expert gate", [MOE_W_EXPERT_UP] = "expert up",
        [MOE_W_EXPERT_DOWN] = "expert down", [MOE_W_EXPERTS_GATE_UP] = "experts gate and up",
        [MOE_W_EXPERTS_DOWN] = "experts down", [MOE_W_SHARED_GATE] = "shared gate",
        [MOE_W_SHARED_UP] = "shared up", [MOE_W_SHARED_DOWN] = "shared down",
        [MOE_W_SHARED_GATE_UP] = "shared gate and up", [MOE_W_SHARED_MIX] = "shared mix",
    };

    return words[w];
}
