/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of ggml, decoded as ggml and gguf-py do; encoded matrices by their digest; a file. */
#include <stdio.h>
#include <string.h>

#include "common/formats/gguf.h"
#include "tests/golden_qmat.h"
#include "tests/tap.h"

static const struct { const char *name; uint32_t type; } types[] = {
    { "q4_0", MOE_GGML_Q4_0 }, { "q5_0", MOE_GGML_Q5_0 }, { "q8_0", MOE_GGML_Q8_0 },
    { "q2_K", MOE_GGML_Q2_K }, { "q3_K", MOE_GGML_Q3_K }, { "q4_K", MOE_GGML_Q4_K },
    { "q5_K", MOE_GGML_Q5_K }, { "q6_K", MOE_GGML_Q6_K }, { "mxfp4", MOE_GGML_MXFP4 },
    { "nvfp4", MOE_GGML_NVFP4 },
};

static struct moe_qmat
matrix(uint32_t type, const struct golden_tensor *t, uint64_t cols)
{
    return (struct moe_qmat){ .enc = MOE_ENC_GGML, .ggml = type, .rows = t->shape[0],
        .cols = cols, .data = t->p, .data_len = t->n };
}

static void
random_blocks(void)
{
    struct golden_tensors g = golden_tensors("quant/gguf_blocks/decode.safetensors");

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct golden_tensor blocks, values;
        struct moe_qmat m;
        char name[32];
        const float *f;

        (void)snprintf(name, sizeof(name), "%s.blocks", types[i].name);
        golden_find(&g, name, true, &blocks);
        (void)snprintf(name, sizeof(name), "%s.values", types[i].name);
        golden_find(&g, name, true, &values);
        m = matrix(types[i].type, &blocks, values.shape[1]);
        if ((f = golden_qmat_decode(&m, types[i].name)) != NULL)
            tap_is_mem(f, values.p, values.n, "%s: random blocks", types[i].name);
    }
}

static void
encoded(void)
{
    struct golden_tensors g = golden_tensors("quant/gguf_blocks/encode.safetensors");
    json_t *j = golden_json("quant/gguf_blocks/encode.json"), *info, *sha;
    const char *name, *type;

    json_object_foreach(j, name, info) {
        uint64_t cols = (uint64_t)json_integer_value(json_array_get(
            json_object_get(info, "shape"), 1));

        json_object_foreach(json_object_get(info, "decoded_f32_sha256"), type, sha) {
            struct golden_tensor t;
            struct moe_qmat m;
            char full[64];
            const float *f;
            size_t k = 0;

            (void)snprintf(full, sizeof(full), "%s.%s", name, type);
            golden_find(&g, full, true, &t);
            while (strncmp(type, types[k].name, strlen(types[k].name)) != 0)
                k++;
            m = matrix(types[k].type, &t, cols);
            if ((f = golden_qmat_decode(&m, full)) != NULL)
                tap_is_str(golden_sha256(f, (size_t)(m.rows * m.cols) * 4),
                    json_string_value(sha), "%s: SHA-256 of the values", full);
        }
    }
}

/* Plain types: F16 and BF16 of one matrix against F32. */
static void
plain_types(void)
{
    static const uint16_t half[] = { 0x3c00, 0xc000, 0x0001, 0x7bff };
    static const uint16_t brain[] = { 0x3f80, 0xc000, 0x0001, 0x7f7f };
    static const float f16[] = { 1, -2, 0x1p-24f, 65504 };
    static const float bf16[] = { 1, -2, 0x1p-133f, 0x1.fep127f };
    struct moe_qmat m = { .enc = MOE_ENC_GGML, .ggml = MOE_GGML_F16, .rows = 2, .cols = 2,
        .data = half, .data_len = sizeof(half) };
    struct moe_err e = { 0, "" };
    float out[4];

    tap_ok(moe_qmat_check(&m, "f16", &e) == 0, "F16 checked");
    moe_qmat_rows(&m, 0, 2, out);
    tap_is_mem(out, f16, sizeof(out), "F16");
    m.ggml = MOE_GGML_BF16;
    m.data = brain;
    moe_qmat_rows(&m, 0, 2, out);
    tap_is_mem(out, bf16, sizeof(out), "BF16");
    m.ggml = MOE_GGML_F32;
    m.data = f16;
    m.data_len = sizeof(f16);
    tap_ok(moe_qmat_check(&m, "f32", &e) == 0, "F32 checked");
    moe_qmat_rows(&m, 1, 1, out);
    tap_is_mem(out, f16 + 2, 8, "F32, second row");
}

int
main(void)
{
    random_blocks();
    encoded();
    plain_types();
    return tap_done();
}
