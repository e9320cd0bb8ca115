/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: every tensor of the golden models is named by its plan, and nothing else is. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/family.h"
#include "tests/golden.h"
#include "tests/tap.h"

struct names {
    char (*name)[MOE_FAMILY_MAX_NAME];
    size_t n;
};

static void
add(struct names *s, const struct moe_family *f, enum moe_weight w, size_t l, size_t x)
{
    static const char *const suffixes[] = { "", ".weight", ".bias", "_bias", "_blocks", "_scales",
        ".weight_scale_inv" };

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        s->name = realloc(s->name, (s->n + 1) * sizeof(*s->name));
        moe_family_tensor(f, w, l, x, suffixes[i], s->name[s->n++]);
    }
}

static bool
of_expert(int w)
{
    return w >= MOE_W_EXPERT_GATE && w <= MOE_W_EXPERT_DOWN;
}

/* What a plan can name in a model of so many layers and experts. */
static struct names
planned(const struct moe_family *f, size_t layers, size_t experts)
{
    struct names s = { NULL, 0 };

    for (int w = 0; w < MOE_W_N; w++) {
        for (size_t l = 0; f->weights[w] != NULL && l < (w <= MOE_W_HEAD ? 1 : layers); l++) {
            for (size_t x = 0; x < (of_expert(w) ? experts : 1); x++)
                add(&s, f, (enum moe_weight)w, l, x);
        }
    }
    return s;
}

/* Every tensor of a golden model is in its family's plan. */
static void
check_model(const char *model, const char *family, size_t layers, size_t experts)
{
    char path[128];
    const json_t *files, *file, *tensor;
    const struct moe_family *f = moe_family_find(family);
    struct names s;
    size_t i, k, found = 0, all = 0;

    snprintf(path, sizeof(path), "models/%s/weights.json", model);
    files = json_object_get(golden_json(path), "files");
    if (!tap_ok(f != NULL && files != NULL, "%s: a plan and its weights", model))
        return;
    s = planned(f, layers, experts);
    json_array_foreach (files, i, file) {
        json_array_foreach (json_object_get(file, "tensors"), k, tensor) {
            const char *name = json_string_value(json_object_get(tensor, "name"));
            bool is = false;

            all++;
            for (size_t j = 0; j < s.n && !is; j++)
                is = strcmp(s.name[j], name) == 0;
            if (!is)
                tap_diag("%s: %s is not in the plan", model, name);
            found += is;
        }
    }
    tap_is_int((long long)found, (long long)all, "%s: every tensor is in the plan", model);
    free(s.name);
}

int
main(void)
{
    char name[MOE_FAMILY_MAX_NAME];

    check_model("mixtral", "mixtral", 3, 8);
    check_model("qwen2_moe", "qwen2_moe", 3, 12);
    check_model("qwen3_moe", "qwen3_moe", 3, 16);
    check_model("olmoe", "olmoe", 3, 16);
    check_model("deepseek_v2", "deepseek_v2", 3, 16);
    check_model("deepseek_v3", "deepseek_v3", 3, 16);
    check_model("deepseek_v3_fp8", "deepseek_v3", 3, 16);
    check_model("gpt_oss", "gpt_oss", 3, 8);
    check_model("gpt_oss_mxfp4", "gpt_oss", 3, 8);
    check_model("granitemoe", "granitemoe", 3, 8);
    check_model("phimoe", "phimoe", 3, 8);
    tap_ok(moe_family_find("gpt2") == NULL, "an unknown family");
    for (size_t i = 0; moe_family_at(i) != NULL; i++)
        tap_ok(moe_family_find(moe_family_at(i)->name) == moe_family_at(i), "%s is found",
            moe_family_at(i)->name);
    tap_is_str(moe_family_tensor(&moe_family_mixtral, MOE_W_EXPERT_DOWN, 12, 345, ".weight",
        name), "model.layers.12.block_sparse_moe.experts.345.w2.weight", "layer and expert");
    tap_is_str(moe_family_tensor(&moe_family_qwen3_moe, MOE_W_EXPERTS_DOWN, 0, 9, "", name),
        "model.layers.0.mlp.experts.down_proj", "a stack has no expert in its name");
    for (int w = 0; w < MOE_W_N; w++)
        tap_ok(moe_family_weight((enum moe_weight)w) != NULL, "weight %d has a word", w);
    return tap_done();
}
