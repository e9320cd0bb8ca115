/* SPDX-License-Identifier: Apache-2.0 */
/* MXFP4, MXFP8 and NVFP4 against compressed-tensors 0.20.1; gpt-oss blocks are MXFP4 rows. */
#include <string.h>

#include "tests/golden_qmat.h"
#include "tests/tap.h"

static void
gpt_oss(void)
{
    struct golden_tensors g = golden_tensors("quant/ct/mxfp4.safetensors");
    struct golden_tensor w, s, want;
    struct moe_qmat m;
    const float *f;

    golden_find(&g, "c.weight_packed", true, &w);
    golden_find(&g, "c.weight_scale", true, &s);
    golden_find(&g, "c.dequant", true, &want);
    m = (struct moe_qmat){ .enc = MOE_ENC_OSS_MXFP4, .rows = 16, .cols = 256, .group = 32,
        .symmetric = true, .scale_dtype = MOE_U8, .data = w.p, .scale = s.p,
        .data_len = w.n, .scale_len = s.n };
    if ((f = golden_qmat_decode(&m, "gpt-oss")) != NULL)
        tap_is_mem(f, want.p, want.n, "gpt-oss: the values");
}

int
main(void)
{
    golden_qmat_ct("mxfp4");
    golden_qmat_ct("mxfp8");
    golden_qmat_ct("nvfp4");
    gpt_oss();
    return tap_done();
}
