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
    s->name = realloc(s->name, (s->n + 1) * sizeof(*s->name));
    moe_family_tensor(f, w, l, x, ".weight", s->name[s->n++]);
}

/* What a plan names in a model of so many layers and experts, all of them sparse. */
static struct names
planned(const struct moe_family *f, size_t layers, size_t experts)
{
    struct names s = { NULL, 0 };

    add(&s, f, MOE_W_EMBED, 0, 0);
    add(&s, f, MOE_W_NORM, 0, 0);
    add(&s, f, MOE_W_HEAD, 0, 0);
    for (size_t l = 0; l < layers; l++) {
        for (int w = MOE_W_ATTN_NORM; w <= MOE_W_MLP_NORM; w++) {
            if (f->weights[w] != NULL)
                add(&s, f, (enum moe_weight)w, l, 0);
        }
        add(&s, f, MOE_W_ROUTER, l, 0);
        for (size_t x = 0; x < experts; x++) {
            for (int w = MOE_W_EXPERT_GATE; w <= MOE_W_EXPERT_DOWN; w++)
                add(&s, f, (enum moe_weight)w, l, x);
        }
    }
    return s;
}

static void
check_model(const char *model, size_t layers, size_t experts)
{
    char path[128];
    const json_t *files, *file, *tensor;
    const struct moe_family *f = moe_family_find(model);
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

            all++;
            for (size_t j = 0; j < s.n; j++)
                found += strcmp(s.name[j], name) == 0;
        }
    }
    tap_is_int((long long)found, (long long)all, "%s: every tensor is in the plan", model);
    tap_is_int((long long)s.n, (long long)all, "%s: the plan names nothing else", model);
    free(s.name);
}

int
main(void)
{
    char name[MOE_FAMILY_MAX_NAME];

    check_model("mixtral", 3, 8);
    check_model("qwen3_moe", 3, 16);
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
