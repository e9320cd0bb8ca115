/* SPDX-License-Identifier: Apache-2.0 */
/* Names: every tensor of the golden models and GGUF files, and chosen ones of each family. */
#include <stdio.h>
#include <string.h>

#include "common/formats/naming.h"
#include "tests/golden.h"
#include "tests/tap.h"

/*
 * What a model must hold, from its configuration: a fixed number, and numbers
 * a layer (L), a layer with experts (M), a dense layer (D), an expert (X).
 */
struct count { int fixed, l, m, d, x; };

struct model {
    const char *dir, *family;
    int layers, experts, dense;
    struct count norm, attn, router, expert, shared, gate, dense_mlp, sink;
    int head;
};

static const struct model models[] = {
    { "mixtral", "mixtral", 3, 8, 0, .norm = { 1, 2, 0, 0, 0 }, .attn = { .l = 4 },
        .router = { .m = 1 }, .expert = { .x = 3 }, .head = 1 },
    { "qwen2_moe", "qwen2_moe", 3, 12, 1, .norm = { 1, 2, 0, 0, 0 }, .attn = { .l = 7 },
        .router = { .m = 1 }, .expert = { .x = 3 }, .shared = { .m = 3 }, .gate = { .m = 1 },
        .dense_mlp = { .d = 3 }, .head = 1 },
    { "qwen3_moe", "qwen3_moe", 3, 16, 0, .norm = { 1, 4, 0, 0, 0 }, .attn = { .l = 4 },
        .router = { .m = 1 }, .expert = { .x = 3 }, .head = 1 },
    { "olmoe", "olmoe", 3, 16, 0, .norm = { 1, 4, 0, 0, 0 }, .attn = { .l = 4 },
        .router = { .m = 1 }, .expert = { .x = 3 }, .head = 1 },
    { "deepseek_v2", "deepseek_v2", 3, 16, 1, .norm = { 1, 3, 0, 0, 0 }, .attn = { .l = 4 },
        .router = { .m = 1 }, .expert = { .x = 3 }, .shared = { .m = 3 },
        .dense_mlp = { .d = 3 }, .head = 1 },
    { "deepseek_v3", "deepseek_v3", 3, 16, 1, .norm = { 1, 4, 0, 0, 0 }, .attn = { .l = 5 },
        .router = { .m = 2 }, .expert = { .x = 3 }, .shared = { .m = 3 },
        .dense_mlp = { .d = 3 }, .head = 1 },
    { "deepseek_v3_fp8", "deepseek_v3", 3, 16, 1, .norm = { 1, 4, 0, 0, 0 }, .attn = { .l = 10 },
        .router = { .m = 2 }, .expert = { .x = 6 }, .shared = { .m = 6 },
        .dense_mlp = { .d = 6 }, .head = 1 },
    { "gpt_oss", "gpt_oss", 3, 8, 0, .norm = { 1, 2, 0, 0, 0 }, .attn = { .l = 8 },
        .router = { .m = 2 }, .expert = { .m = 4 }, .sink = { .l = 1 }, .head = 1 },
    { "gpt_oss_mxfp4", "gpt_oss", 3, 8, 0, .norm = { 1, 2, 0, 0, 0 }, .attn = { .l = 8 },
        .router = { .m = 2 }, .expert = { .m = 6 }, .sink = { .l = 1 }, .head = 1 },
    { "granitemoe", "granitemoe", 3, 8, 0, .norm = { 1, 2, 0, 0, 0 }, .attn = { .l = 4 },
        .router = { .m = 1 }, .expert = { .m = 2 }, .head = 1 },
    { "phimoe", "phimoe", 3, 8, 0, .norm = { 2, 4, 0, 0, 0 }, .attn = { .l = 8 },
        .router = { .m = 1 }, .expert = { .x = 3 }, .head = 2 },
};

/* The same of GGUF, where experts are stacks and MLA's kv_b is two. */
static const struct model ggufs[] = {
    { "deepseek_v2-bf16", NULL, 3, 16, 1, .norm = { 1, 3, 0, 0, 0 }, .attn = { .l = 5 },
        .router = { .m = 1 }, .expert = { .m = 3 }, .shared = { .m = 3 },
        .dense_mlp = { .d = 3 }, .head = 1 },
    { "deepseek_v3-bf16", NULL, 3, 16, 1, .norm = { 1, 4, 0, 0, 0 }, .attn = { .l = 6 },
        .router = { .m = 2 }, .expert = { .m = 3 }, .shared = { .m = 3 },
        .dense_mlp = { .d = 3 }, .head = 1 },
    { "gpt_oss-bf16", NULL, 3, 8, 0, .norm = { 1, 2, 0, 0, 0 }, .attn = { .l = 8 },
        .router = { .m = 2 }, .expert = { .m = 6 }, .sink = { .l = 1 }, .head = 1 },
    { "granitemoe-bf16", NULL, 3, 8, 0, .norm = { 1, 2, 0, 0, 0 }, .attn = { .l = 4 },
        .router = { .m = 1 }, .expert = { .m = 3 }, .head = 1 },
    { "mixtral-bf16", NULL, 3, 8, 0, .norm = { 1, 2, 0, 0, 0 }, .attn = { .l = 4 },
        .router = { .m = 1 }, .expert = { .m = 3 }, .head = 1 },
    { "olmoe-bf16", NULL, 3, 16, 0, .norm = { 1, 4, 0, 0, 0 }, .attn = { .l = 4 },
        .router = { .m = 1 }, .expert = { .m = 3 }, .head = 1 },
    { "qwen3_moe-q8_0", NULL, 3, 16, 0, .norm = { 1, 4, 0, 0, 0 }, .attn = { .l = 4 },
        .router = { .m = 1 }, .expert = { .m = 3 }, .head = 1 },
};

static int
want(const struct model *m, struct count c)
{
    int moe = m->layers - m->dense;

    return c.fixed + c.l * m->layers + c.m * moe + c.d * m->dense + c.x * moe * m->experts;
}

static void
check_counts(const struct model *m, const int *got, int unknown)
{
    tap_is_int(unknown, 0, "%s: every name is understood", m->dir);
    tap_is_int(got[MOE_ROLE_EMBED], 1, "%s: embedding", m->dir);
    tap_is_int(got[MOE_ROLE_HEAD], m->head, "%s: head", m->dir);
    tap_is_int(got[MOE_ROLE_NORM], want(m, m->norm), "%s: norms", m->dir);
    tap_is_int(got[MOE_ROLE_ATTN], want(m, m->attn), "%s: attention", m->dir);
    tap_is_int(got[MOE_ROLE_ROUTER], want(m, m->router), "%s: router", m->dir);
    tap_is_int(got[MOE_ROLE_EXPERT], want(m, m->expert), "%s: experts", m->dir);
    tap_is_int(got[MOE_ROLE_SHARED], want(m, m->shared), "%s: shared experts", m->dir);
    tap_is_int(got[MOE_ROLE_SHARED_GATE], want(m, m->gate), "%s: shared gate", m->dir);
    tap_is_int(got[MOE_ROLE_DENSE], want(m, m->dense_mlp), "%s: dense layers", m->dir);
    tap_is_int(got[MOE_ROLE_SINK], want(m, m->sink), "%s: sinks", m->dir);
}

/* Each (layer, expert, projection) once, whatever its parts are called. */
static void
check_experts(const struct model *m, const char seen[8][32][3])
{
    int moe = m->layers - m->dense, bad = 0, full = 0;

    for (int l = 0; l < 8; l++) {
        int n = 0;

        for (int x = 0; x < 32; x++) {
            for (int p = 0; p < 3; p++) {
                n += seen[l][x][p] == 1;
                bad += seen[l][x][p] > 1 || (seen[l][x][p] != 0 && x >= m->experts);
            }
        }
        full += n == 3 * m->experts;
    }
    tap_is_int(bad, 0, "%s: no matrix of an expert twice or too many", m->dir);
    tap_is_int(full, m->expert.x > 0 ? moe : 0, "%s: layers with all experts", m->dir);
}

static void
check_model(const struct model *m)
{
    json_t *w, *f, *t;
    char path[128];
    char seen[8][32][3] = { { { 0 } } };
    int got[MOE_ROLE_N] = { 0 }, unknown = 0, stacked = 0;
    size_t i, j;

    snprintf(path, sizeof(path), "models/%s/weights.json", m->dir);
    w = golden_json(path);
    json_array_foreach(json_object_get(w, "files"), i, f) {
        json_array_foreach(json_object_get(f, "tensors"), j, t) {
            struct moe_naming n;

            if (!moe_naming_parse(m->family, m->layers,
                json_string_value(json_object_get(t, "name")), &n))
                unknown++;
            got[n.role]++;
            stacked += n.stacked && n.expert == -1;
            if (n.role == MOE_ROLE_EXPERT && n.expert >= 0 && n.part == MOE_PART_WEIGHT)
                seen[n.layer][n.expert][n.proj - MOE_PROJ_GATE]++;
        }
    }
    check_counts(m, got, unknown);
    check_experts(m, seen);
    tap_is_int(stacked, m->expert.m * (m->layers - m->dense), "%s: stacks", m->dir);
}

static void
check_gguf(const struct model *m)
{
    int got[MOE_ROLE_N] = { 0 }, unknown = 0, stacked = 0;
    char path[128];
    json_t *w, *t;
    size_t i;

    snprintf(path, sizeof(path), "quant/gguf_file/%s.json", m->dir);
    w = golden_json(path);
    json_array_foreach(json_object_get(w, "tensors"), i, t) {
        struct moe_naming n;

        unknown += !moe_naming_parse(NULL, 0, json_string_value(json_array_get(t, 0)), &n);
        got[n.role]++;
        stacked += n.stacked && !n.ambiguous && !n.transposed;
    }
    check_counts(m, got, unknown);
    tap_is_int(stacked, want(m, m->expert), "%s: stacks", m->dir);
}

/* Chosen names: family, layers, name, then role proj part layer expert and letters:
 * s stacked, i interleaved, t transposed, a ambiguous. */
static const struct {
    const char *family, *name, *module;
    enum moe_role role;
    enum moe_proj proj;
    enum moe_part part;
    int layer, expert;
    const char *flags;
} cases[] = {
    { "gpt_oss", "model.layers.7.mlp.experts.gate_up_proj",
        "model.layers.7.mlp.experts.gate_up_proj",
        MOE_ROLE_EXPERT, MOE_PROJ_GATE_UP, MOE_PART_WEIGHT, 7, -1, "sit" },
    { "gpt_oss", "model.layers.7.mlp.experts.gate_up_proj_blocks",
        "model.layers.7.mlp.experts.gate_up_proj",
        MOE_ROLE_EXPERT, MOE_PROJ_GATE_UP, MOE_PART_PACKED, 7, -1, "si" },
    { "gpt_oss", "model.layers.7.mlp.experts.down_proj_scales",
        "model.layers.7.mlp.experts.down_proj",
        MOE_ROLE_EXPERT, MOE_PROJ_DOWN, MOE_PART_SCALE, 7, -1, "s" },
    { "gpt_oss", "model.layers.7.mlp.experts.down_proj", "model.layers.7.mlp.experts.down_proj",
        MOE_ROLE_EXPERT, MOE_PROJ_DOWN, MOE_PART_WEIGHT, 7, -1, "st" },
    { "gpt_oss", "model.layers.7.mlp.experts.down_proj_bias",
        "model.layers.7.mlp.experts.down_proj",
        MOE_ROLE_EXPERT, MOE_PROJ_DOWN, MOE_PART_BIAS, 7, -1, "s" },
    { "llama4", "language_model.model.layers.3.feed_forward.experts.gate_up_proj",
        "language_model.model.layers.3.feed_forward.experts.gate_up_proj",
        MOE_ROLE_EXPERT, MOE_PROJ_GATE_UP, MOE_PART_WEIGHT, 3, -1, "st" },
    { "llama4", "language_model.model.layers.3.feed_forward.shared_expert.up_proj.weight",
        "language_model.model.layers.3.feed_forward.shared_expert.up_proj",
        MOE_ROLE_SHARED, MOE_PROJ_UP, MOE_PART_WEIGHT, 3, -1, "" },
    { "llama4", "language_model.lm_head.weight", "language_model.lm_head",
        MOE_ROLE_HEAD, MOE_PROJ_NONE, MOE_PART_WEIGHT, -1, -1, "" },
    { "llama4", "vision_model.model.layers.0.self_attn.q_proj.weight",
        "vision_model.model.layers.0.self_attn.q_proj",
        MOE_ROLE_OTHER_TOWER, MOE_PROJ_NONE, MOE_PART_WEIGHT, -1, -1, "" },
    { "gemma4", "model.language_model.layers.2.experts.down_proj",
        "model.language_model.layers.2.experts.down_proj",
        MOE_ROLE_EXPERT, MOE_PROJ_DOWN, MOE_PART_WEIGHT, 2, -1, "s" },
    { "gemma4", "model.language_model.layers.2.router.per_expert_scale",
        "model.language_model.layers.2.router.per_expert_scale",
        MOE_ROLE_ROUTER, MOE_PROJ_NONE, MOE_PART_WEIGHT, 2, -1, "" },
    { "qwen3_5_moe", "model.language_model.layers.2.mlp.experts.gate_up_proj",
        "model.language_model.layers.2.mlp.experts.gate_up_proj",
        MOE_ROLE_EXPERT, MOE_PROJ_GATE_UP, MOE_PART_WEIGHT, 2, -1, "s" },
    { "qwen3_5_moe", "model.language_model.layers.2.linear_attn.in_proj_qkv.weight",
        "model.language_model.layers.2.linear_attn.in_proj_qkv",
        MOE_ROLE_ATTN, MOE_PROJ_NONE, MOE_PART_WEIGHT, 2, -1, "" },
    { "qwen3_5_moe", "model.language_model.layers.2.linear_attn.A_log",
        "model.language_model.layers.2.linear_attn.A_log",
        MOE_ROLE_ATTN, MOE_PROJ_NONE, MOE_PART_WEIGHT, 2, -1, "" },
    { "qwen3_vl_moe", "model.language_model.layers.2.mlp.experts.gate_up_proj",
        "model.language_model.layers.2.mlp.experts.gate_up_proj",
        MOE_ROLE_EXPERT, MOE_PROJ_GATE_UP, MOE_PART_WEIGHT, 2, -1, "st" },
    { "qwen3_vl_moe", "model.visual.blocks.0.attn.qkv.weight", "model.visual.blocks.0.attn.qkv",
        MOE_ROLE_OTHER_TOWER, MOE_PROJ_NONE, MOE_PART_WEIGHT, -1, -1, "" },
    { "qwen3_moe", "model.layers.2.mlp.experts.gate_up_proj",
        "model.layers.2.mlp.experts.gate_up_proj",
        MOE_ROLE_EXPERT, MOE_PROJ_GATE_UP, MOE_PART_WEIGHT, 2, -1, "s" },
    { NULL, "model.layers.2.mlp.experts.gate_up_proj", "model.layers.2.mlp.experts.gate_up_proj",
        MOE_ROLE_EXPERT, MOE_PROJ_GATE_UP, MOE_PART_WEIGHT, 2, -1, "sa" },
    { "granitemoeshared", "model.layers.2.shared_mlp.input_linear.weight",
        "model.layers.2.shared_mlp.input_linear",
        MOE_ROLE_SHARED, MOE_PROJ_GATE_UP, MOE_PART_WEIGHT, 2, -1, "" },
    { NULL, "model.layers.2.block_sparse_moe.output_linear.weight",
        "model.layers.2.block_sparse_moe.output_linear",
        MOE_ROLE_EXPERT, MOE_PROJ_DOWN, MOE_PART_WEIGHT, 2, -1, "s" },
    { "deepseek_v3", "model.layers.60.mlp.experts.255.down_proj.weight_scale_inv",
        "model.layers.60.mlp.experts.255.down_proj",
        MOE_ROLE_EXPERT, MOE_PROJ_DOWN, MOE_PART_SCALE, 60, 255, "" },
    { "deepseek_v3", "model.layers.61.mlp.experts.255.down_proj.weight",
        "model.layers.61.mlp.experts.255.down_proj",
        MOE_ROLE_MTP, MOE_PROJ_DOWN, MOE_PART_WEIGHT, 61, 255, "" },
    { "deepseek_v3", "model.layers.61.eh_proj.weight", "model.layers.61.eh_proj",
        MOE_ROLE_MTP, MOE_PROJ_NONE, MOE_PART_WEIGHT, 61, -1, "" },
    { "deepseek_v3", "model.layers.61.shared_head.head.weight", "model.layers.61.shared_head.head",
        MOE_ROLE_MTP, MOE_PROJ_NONE, MOE_PART_WEIGHT, 61, -1, "" },
    { "deepseek_v3", "model.layers.5.mlp.gate.e_score_correction_bias", "model.layers.5.mlp.gate",
        MOE_ROLE_ROUTER, MOE_PROJ_NONE, MOE_PART_BIAS, 5, -1, "" },
    { "mixtral", "model.layers.5.block_sparse_moe.experts.3.w3.weight_packed",
        "model.layers.5.block_sparse_moe.experts.3.w3",
        MOE_ROLE_EXPERT, MOE_PROJ_UP, MOE_PART_PACKED, 5, 3, "" },
    { "mixtral", "model.layers.5.block_sparse_moe.experts.3.w3.weight_zero_point",
        "model.layers.5.block_sparse_moe.experts.3.w3",
        MOE_ROLE_EXPERT, MOE_PROJ_UP, MOE_PART_ZERO, 5, 3, "" },
    { "mixtral", "model.layers.5.block_sparse_moe.experts.3.w3.weight_shape",
        "model.layers.5.block_sparse_moe.experts.3.w3",
        MOE_ROLE_EXPERT, MOE_PROJ_UP, MOE_PART_SHAPE, 5, 3, "" },
    { "qwen3_moe", "model.layers.5.mlp.experts.3.up_proj.qweight",
        "model.layers.5.mlp.experts.3.up_proj",
        MOE_ROLE_EXPERT, MOE_PROJ_UP, MOE_PART_PACKED, 5, 3, "" },
    { "qwen3_moe", "model.layers.5.mlp.experts.3.up_proj.g_idx",
        "model.layers.5.mlp.experts.3.up_proj",
        MOE_ROLE_EXPERT, MOE_PROJ_UP, MOE_PART_G_IDX, 5, 3, "" },
    { "qwen3_moe", "model.layers.5.mlp.experts.3.up_proj.weight_global_scale",
        "model.layers.5.mlp.experts.3.up_proj",
        MOE_ROLE_EXPERT, MOE_PROJ_UP, MOE_PART_GLOBAL, 5, 3, "" },
    { "qwen2_moe", "model.layers.5.mlp.shared_expert_gate.weight",
        "model.layers.5.mlp.shared_expert_gate",
        MOE_ROLE_SHARED_GATE, MOE_PROJ_NONE, MOE_PART_WEIGHT, 5, -1, "" },
    { NULL, "mtp.layers.0.mlp.experts.9.up_proj.weight", "mtp.layers.0.mlp.experts.9.up_proj",
        MOE_ROLE_MTP, MOE_PROJ_UP, MOE_PART_WEIGHT, -1, 9, "" },
    { NULL, "mtp.fc.weight", "mtp.fc",
        MOE_ROLE_MTP, MOE_PROJ_NONE, MOE_PART_WEIGHT, -1, -1, "" },
    { NULL, "blk.4.ffn_gate_up_exps.weight", "blk.4.ffn_gate_up_exps",
        MOE_ROLE_EXPERT, MOE_PROJ_GATE_UP, MOE_PART_WEIGHT, 4, -1, "s" },
    { NULL, "blk.4.ffn_down.7.weight", "blk.4.ffn_down.7",
        MOE_ROLE_EXPERT, MOE_PROJ_DOWN, MOE_PART_WEIGHT, 4, 7, "" },
    { NULL, "blk.4.ffn_gate_inp_shexp.weight", "blk.4.ffn_gate_inp_shexp",
        MOE_ROLE_SHARED_GATE, MOE_PROJ_NONE, MOE_PART_WEIGHT, 4, -1, "" },
    { NULL, "blk.4.attn_v_b.weight", "blk.4.attn_v_b",
        MOE_ROLE_ATTN, MOE_PROJ_V_B, MOE_PART_WEIGHT, 4, -1, "" },
};

static void
check_cases(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct moe_naming n;
        char flags[8];
        bool yes = moe_naming_parse(cases[i].family, 61, cases[i].name, &n);

        snprintf(flags, sizeof(flags), "%s%s%s%s", n.stacked ? "s" : "",
            n.interleaved ? "i" : "", n.transposed ? "t" : "", n.ambiguous ? "a" : "");
        tap_ok(yes && n.role == cases[i].role && n.proj == cases[i].proj &&
            n.part == cases[i].part && n.layer == cases[i].layer &&
            n.expert == cases[i].expert && strcmp(flags, cases[i].flags) == 0 &&
            strcmp(n.module, cases[i].module) == 0,
            "%s: %s %s %d %d '%s' %s", cases[i].name, moe_naming_role(n.role),
            moe_naming_proj(n.proj), n.layer, n.expert, flags, n.module);
    }
}

static void
check_unknown(void)
{
    static const char *const names[] = {
        "", "x", "model", "model.", "model.layers", "model.layers.",
        "model.layers.x.mlp.gate.weight",
        "model.layers.01.mlp.gate.weight", "model.layers.99999999999.mlp.gate.weight",
        "model.layers.3.mlp.gate", "model.layers.3.mlp.gatex.weight", "model.layers.3.weight",
        "model.layers.3.mlp.experts.gate_up_proj_xyz", "model.layers.3.mlp.gate_bias",
        "model.layers.3.mlp.experts.x.gate_proj.weight", "model.layers.3.mlp.experts..w1.weight",
        "model.layers.3.mlp.experts.-1.gate_proj.weight", "blk", "blk.", "blk.1", "blk.1.",
        "blk.x.attn_q.weight", "blk.1.attn_q", "blk.1.attn_x.weight", "lm_head", ".weight",
    };
    struct moe_naming n;
    char big[400];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        tap_ok(!moe_naming_parse(NULL, 0, names[i], &n) && n.role == MOE_ROLE_UNKNOWN &&
            n.layer == -1 && n.expert == -1, "'%s' is unknown", names[i]);
    }
    tap_ok(!moe_naming_parse(NULL, 0, "transformer.h.1.weight", &n) &&
        n.part == MOE_PART_WEIGHT && strcmp(n.module, "transformer.h.1") == 0,
        "an unknown name has a module and a part");
    memset(big, 'a', sizeof(big));
    memcpy(big, "visual.", 7);
    big[sizeof(big) - 1] = '\0';
    tap_ok(!moe_naming_parse(NULL, 0, big, &n) && strlen(n.module) == sizeof(n.module) - 1,
        "a name too long is unknown, its module cut");
}

int
main(void)
{
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
        check_model(&models[i]);
    for (size_t i = 0; i < sizeof(ggufs) / sizeof(ggufs[0]); i++)
        check_gguf(&ggufs[i]);
    check_cases();
    check_unknown();
    tap_ok(moe_naming_known("deepseek_v3") && !moe_naming_known("deepseek"), "known families");
    tap_ok(moe_naming_family(-1) == NULL && moe_naming_family(1000) == NULL, "past the families");
    tap_is_str(moe_naming_family(0), "mixtral", "first family");
    for (int r = 0; r < MOE_ROLE_N; r++)
        tap_ok(moe_naming_role((enum moe_role)r) != NULL, "role %d has a name", r);
    for (int p = 0; p < MOE_PROJ_N; p++)
        tap_ok(moe_naming_proj((enum moe_proj)p) != NULL, "projection %d has a name", p);
    return tap_done();
}
