/* SPDX-License-Identifier: Apache-2.0 */
/* GPTQ v1 and v2, act-order, 8 bits, and AWQ, against auto-gptq, auto-round and AutoAWQ. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/golden_qmat.h"
#include "tests/tap.h"

static void
one(const char *file)
{
    char path[256];
    struct golden_tensors g;
    struct golden_tensor w, z, s, index, codes, zeros, want;
    struct moe_qmat m = { 0 };
    json_t *j, *q;
    const float *f;
    float *plain;
    uint64_t groups;

    (void)snprintf(path, sizeof(path), "quant/gptq_awq/%s.safetensors", file);
    g = golden_tensors(path);
    (void)snprintf(path, sizeof(path), "quant/gptq_awq/%s.json", file);
    j = golden_json(path);
    q = json_object_get(j, "quantization_config");
    golden_find(&g, "qweight", true, &w);
    golden_find(&g, "qzeros", true, &z);
    golden_find(&g, "scales", true, &s);
    golden_find(&g, "codes", true, &codes);
    golden_find(&g, "zeros", true, &zeros);
    m.enc = strcmp(json_string_value(json_object_get(q, "quant_method")), "awq") == 0 ?
        MOE_ENC_AWQ : MOE_ENC_GPTQ;
    m.rows = codes.shape[0];
    m.cols = codes.shape[1];
    m.bits = (int)json_integer_value(json_object_get(q, "bits"));
    m.group = (uint64_t)json_integer_value(json_object_get(q, "group_size"));
    m.gptq_v2 = strncmp(file, "gptq_v2", 7) == 0;
    m.scale_dtype = MOE_F16;
    m.data = w.p;
    m.zero = z.p;
    m.scale = s.p;
    m.data_len = w.n;
    m.zero_len = z.n;
    m.scale_len = s.n;
    if (golden_find(&g, "g_idx", false, &index)) {
        m.g_idx = (const int32_t *)(const void *)index.p;
        m.g_idx_len = index.n;
    }
    if ((f = golden_qmat_decode(&m, file)) == NULL)
        return;
    /* The known codes and zero points, in the plain order. */
    groups = m.cols / m.group;
    plain = malloc((size_t)(m.rows * m.cols) * sizeof(*plain));
    for (uint64_t o = 0; o < m.rows; o++)
        for (uint64_t i = 0; i < m.cols; i++) {
            uint64_t k = m.g_idx == NULL ? i / m.group : (uint64_t)m.g_idx[i];
            uint16_t h;

            memcpy(&h, s.p + 2 * (k * m.rows + o), sizeof(h));
            plain[o * m.cols + i] = moe_dtype_f16_f32(h) *
                (float)(codes.p[o * m.cols + i] - zeros.p[o * groups + k]);
        }
    tap_is_mem(f, plain, (size_t)(m.rows * m.cols) * 4, "%s: scale * (code - zero)", file);
    if (golden_find(&g, "dequant", false, &want))
        tap_is_mem(f, want.p, want.n, "%s: the values", file);
    free(plain);
}

int
main(void)
{
    one("gptq_v1_sym_g32");
    one("gptq_v1_asym_g64");
    one("gptq_v1_act_order_g64");
    one("gptq_v1_int8_sym_g64");
    one("gptq_v2_sym_g64");
    one("gptq_v2_asym_g64");
    one("awq_gemm_g64");
    return tap_done();
}
