/* SPDX-License-Identifier: Apache-2.0 */
/* RoPE frequencies of every type against the reference library's, and bad parameters. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/rope.h"
#include "tests/tap.h"

static double
num(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

/* A config with what rope.c looks at; tree is borrowed. */
static struct moe_config
config_of(json_t *tree)
{
    struct moe_config c = { .tree = tree, .text = tree, .name = "config.json" };

    c.max_pos = (int64_t)num(tree, "max_position_embeddings");
    c.head_dim = (int64_t)num(tree, "head_dim");
    c.rope_theta = num(tree, "rope_theta");
    c.rope = json_object_get(tree, "rope_scaling");
    c.rope = json_is_object(c.rope) ? c.rope : NULL;
    return c;
}

static void
check_case(const json_t *v, size_t i)
{
    struct moe_config c = config_of(json_object_get(v, "config"));
    const json_t *inv = json_object_get(v, "inv");
    const char *type = "default";
    double worst = 0, scale = num(v, "factor");
    struct moe_rope r;
    struct moe_err e;

    if (c.rope != NULL)
        type = json_string_value(json_object_get(c.rope, "rope_type"));
    if (!tap_is_int(moe_rope_init(&r, &c, (uint64_t)c.head_dim, (uint64_t)num(v, "length"), &e),
        0, "case %zu: %s", i, type))
        return;
    tap_is_int((long long)r.dim, 2 * (long long)json_array_size(inv), "case %zu: size", i);
    for (size_t k = 0; k < json_array_size(inv); k++) {
        double want = json_number_value(json_array_get(inv, k));

        worst = fmax(worst, fabs(r.inv[k] - want) / want);
    }
    tap_ok(worst < 4e-7, "case %zu: %s: frequencies differ by %.1e", i, type, worst);
    tap_ok(fabs(r.scale - scale) < 1e-6 * scale, "case %zu: scale %g for %g", i,
        (double)r.scale, scale);
}

static void
golden(const char *path)
{
    json_error_t je;
    json_t *root = json_load_file(path, 0, &je);
    const json_t *v;
    size_t i;

    if (!tap_ok(root != NULL, "%s", path))
        return;
    json_array_foreach (json_object_get(root, "cases"), i, v)
        check_case(v, i);
    json_decref(root);
}

static void
refuse(const char *rope, int want, const char *words)
{
    json_error_t je;
    json_t *tree = json_pack_ex(&je, 0, "{s:i, s:i, s:f, s:o}", "max_position_embeddings", 4096,
        "head_dim", 8, "rope_theta", 1e4, "rope_scaling", json_loads(rope, 0, &je));
    struct moe_config c = config_of(tree);
    struct moe_rope r;
    struct moe_err e = { 0 };

    tap_is_int(moe_rope_init(&r, &c, 8, 100, &e), want, "%s", rope);
    tap_ok(strstr(e.text, words) != NULL, "says \"%s\"", e.text);
    json_decref(tree);
}

static void
angles(void)
{
    struct moe_rope r = { .dim = 4, .scale = 2, .inv = { 1, 0.5f } };
    float c[2], s[2];

    moe_rope_at(&r, 3, c, s);
    tap_ok(fabs(c[0] - 2 * cos(3)) < 1e-6 && fabs(s[1] - 2 * sin(1.5)) < 1e-6,
        "cos and sin of an angle, scaled");
    moe_rope_at(&r, 0, c, s);
    tap_ok(c[0] == 2 && c[1] == 2 && s[0] == 0 && s[1] == 0, "position 0");
}

int
main(void)
{
    struct moe_config c = { .name = "config.json", .rope_theta = 1e4, .max_pos = 16 };
    struct moe_rope r;
    struct moe_err e;

    golden("tests/data/rope.json");
    refuse("{\"rope_type\": \"spiral\"}", MOE_EUNSUP, "\"spiral\"");
    refuse("{\"rope_type\": 7}", MOE_EFORMAT, "rope_type");
    refuse("{\"type\": \"linear\"}", MOE_EFORMAT, "factor");
    refuse("{\"type\": \"linear\", \"factor\": -1}", MOE_EFORMAT, "factor: -1");
    refuse("{\"type\": \"linear\", \"factor\": \"4\"}", MOE_EFORMAT, "factor");
    refuse("{\"type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, "
        "\"high_freq_factor\": 4}", MOE_EFORMAT, "high_freq_factor");
    refuse("{\"type\": \"longrope\", \"short_factor\": [1, 2]}", MOE_EFORMAT, "2 numbers, not 4");
    refuse("{\"type\": \"longrope\", \"short_factor\": [1, 2, 0, 1]}", MOE_EFORMAT, "entry 2");
    refuse("{\"type\": \"longrope\"}", MOE_EFORMAT, "short_factor");
    tap_is_int(moe_rope_init(&r, &c, 3, 1, &e), MOE_EFORMAT, "an odd head");
    tap_is_int(moe_rope_init(&r, &c, 1u << 20, 1, &e), MOE_EFORMAT, "a huge head");
    angles();
    return tap_done();
}
