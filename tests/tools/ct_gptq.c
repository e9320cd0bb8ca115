/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ct_gptq SRC DST gptq|awq: a directory of symmetric pack-quantized INT4 as GPTQ
 * (version 1, with an index) or AWQ (gemm) has it: the same codes and scales, every
 * zero point 8.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/formats/sink.h"
#include "common/formats/source.h"

#define MAX 4096

static struct moe_err err;
static struct moe_source *src;
static struct moe_tensor out[MAX];
static uint64_t shape[MAX][2];
static void *data[MAX];
static size_t n_out;
static bool awq;
static uint64_t group;

static void
need(bool yes, const char *what)
{
    if (yes)
        return;
    fprintf(stderr, "ct_gptq: %s: %s\n", what, err.text);
    exit(2);
}

static void
add(const char *module, const char *suffix, enum moe_dtype t, uint64_t a, uint64_t b, void *p)
{
    size_t n = strlen(module) + strlen(suffix) + 1;
    char *name = malloc(n);

    need(n_out < MAX && name != NULL, module);
    (void)snprintf(name, n, "%s%s", module, suffix);
    shape[n_out][0] = a;
    shape[n_out][1] = b;
    out[n_out] = (struct moe_tensor){ .name = name, .dtype = t, .rank = b == 0 ? 1 : 2,
        .shape = shape[n_out] };
    data[n_out++] = p;
}

static const void *
part(const char *module, const char *suffix, const struct moe_tensor **t)
{
    char name[512];
    const void *p;
    size_t i;

    (void)snprintf(name, sizeof(name), "%s%s", module, suffix);
    need((i = moe_source_find(src, name)) != SIZE_MAX, name);
    *t = moe_source_at(src, i);
    need(moe_source_map(src, i, &p, &err) == 0, name);
    return p;
}

/* Codes of output o and input i to where the format has them. */
static uint32_t *
deal(const uint32_t *codes, uint64_t rows, uint64_t cols)
{
    static const unsigned order[8] = { 0, 4, 1, 5, 2, 6, 3, 7 };
    uint32_t *to = calloc(rows * cols / 8, 4);

    need(to != NULL, "memory");
    for (uint64_t o = 0; o < rows; o++)
        for (uint64_t i = 0; i < cols; i++) {
            uint32_t q = codes[(o * cols + i) / 8] >> (i % 8 * 4) & 15;

            if (awq)
                to[i * (rows / 8) + o / 8] |= q << (4 * order[o % 8]);
            else
                to[i / 8 * rows + o] |= q << (i % 8 * 4);
        }
    return to;
}

static void
convert(const char *module)
{
    const struct moe_tensor *tc, *ts;
    const uint32_t *codes = part(module, ".weight_packed", &tc);
    const uint16_t *scale = part(module, ".weight_scale", &ts);
    uint64_t rows = tc->shape[0], cols = tc->shape[1] * 8, groups = ts->shape[1];
    uint32_t *zeros = malloc(groups * rows / 8 * 4);
    uint16_t *turned = malloc(groups * rows * 2);
    int32_t *index = malloc(cols * 4);

    need(zeros != NULL && turned != NULL && index != NULL && rows % 8 == 0, module);
    group = cols / groups;
    /* GPTQ stores a zero point less one. */
    memset(zeros, awq ? 0x88 : 0x77, groups * rows / 8 * 4);
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t g = 0; g < groups; g++)
            turned[g * rows + r] = scale[r * groups + g];
    for (uint64_t i = 0; i < cols; i++)
        index[i] = (int32_t)(i / group);
    add(module, ".qweight", MOE_I32, awq ? cols : cols / 8, awq ? rows / 8 : rows,
        deal(codes, rows, cols));
    add(module, ".qzeros", MOE_I32, groups, rows / 8, zeros);
    add(module, ".scales", ts->dtype, groups, rows, turned);
    if (awq)
        free(index);
    else
        add(module, ".g_idx", MOE_I32, cols, 0, index);
}

static bool
ends(const char *name, const char *suffix)
{
    size_t n = strlen(name), k = strlen(suffix);

    return n > k && strcmp(name + n - k, suffix) == 0;
}

static void
put_config(struct moe_sink *sink)
{
    json_t *o = json_deep_copy(moe_source_config(src)->tree);
    json_t *q = json_pack("{s:s, s:i, s:i, s:b, s:b}", "quant_method", awq ? "awq" : "gptq", "bits",
        4, "group_size", (int)group, awq ? "zero_point" : "sym", 1, "desc_act", 0);
    char *text;

    if (awq)
        json_object_set_new(q, "version", json_string("gemm"));
    json_object_set_new(o, "quantization_config", q);
    text = json_dumps(o, JSON_INDENT(1));
    need(text != NULL && moe_sink_aux(sink, "config.json", text, strlen(text), &err) == 0,
        "config");
    free(text);
    json_decref(o);
}

int
main(int argc, char **argv)
{
    struct moe_sink_plan plan = { .tensors = out, .align = 8 };
    struct moe_sink *sink;
    const void *p;
    uint64_t bytes;

    need(argc == 4, "usage: ct_gptq SRC DST gptq|awq");
    awq = strcmp(argv[3], "awq") == 0;
    need(moe_source_open(argv[1], &src, &err) == 0, argv[1]);
    for (size_t i = 0; i < moe_source_n(src); i++) {
        const struct moe_tensor *t = moe_source_at(src, i);
        char module[512];

        (void)snprintf(module, sizeof(module), "%s", t->name);
        if (ends(t->name, ".weight_packed")) {
            module[strlen(module) - strlen(".weight_packed")] = '\0';
            convert(module);
        } else if (!ends(t->name, ".weight_scale") && !ends(t->name, ".weight_shape")) {
            need(n_out < MAX && moe_source_map(src, i, &p, &err) == 0, t->name);
            data[n_out] = (void *)p;
            out[n_out++] = *t;
        }
    }
    plan.n = n_out;
    need(moe_sink_open(argv[2], false, &plan, &sink, &err) == 0, argv[2]);
    for (size_t i = 0; i < n_out; i++) {
        need(moe_safet_bytes(out[i].dtype, out[i].shape, out[i].rank, &bytes), out[i].name);
        need(moe_sink_write(sink, data[i], bytes, &err) == 0, out[i].name);
    }
    put_config(sink);
    need(moe_sink_commit(sink, &err) == 0, argv[2]);
    moe_source_close(src);
    return 0;
}
