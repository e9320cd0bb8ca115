/* SPDX-License-Identifier: Apache-2.0 */
/* E4M3 with scales a tensor, a row and a block: compressed-tensors and DeepSeek. */
#include "tests/golden_qmat.h"
#include "tests/tap.h"

static void
deepseek(void)
{
    struct golden_tensors g = golden_tensors("quant/ds_fp8/fp8_block.safetensors");
    json_t *j = golden_json("quant/ds_fp8/fp8_block.json");
    struct golden_tensor w, s;
    struct moe_qmat m;
    const float *f;

    golden_find(&g, "d.weight", true, &w);
    golden_find(&g, "d.weight_scale_inv", true, &s);
    m = (struct moe_qmat){ .enc = MOE_ENC_DS_FP8, .rows = w.shape[0], .cols = w.shape[1],
        .group = 128, .block_rows = 128, .symmetric = true, .scale_dtype = MOE_F32,
        .data = w.p, .scale = s.p, .data_len = w.n, .scale_len = s.n };
    if ((f = golden_qmat_decode(&m, "d")) != NULL)
        tap_is_str(golden_sha256(f, (size_t)(m.rows * m.cols) * 4),
            json_string_value(json_object_get(j, "dequant_f32_sha256")), "DeepSeek: SHA-256");
}

int
main(void)
{
    golden_qmat_ct("fp8_tensor");
    golden_qmat_ct("fp8_channel");
    golden_qmat_ct("fp8_block");
    deepseek();
    return tap_done();
}
