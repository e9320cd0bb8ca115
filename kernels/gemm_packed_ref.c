/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed matrix product with float activations, reference.
 */
#include <math.h>

#include "kernels/kernels_init.h"
#include "kernels/packed_ref.h"

static float
dot(const struct moe_blocks *f, const uint8_t *w, size_t r, const float *x)
{
    float acc = 0;

    w += f->head;
    for (size_t k = 0; k < f->cols;) {
        size_t groups = k_packed_groups(f->cols - k, f->group);
        const uint8_t *codes = w + k_packed_scales(f, groups);

        for (size_t g = 0; g < groups; g++, k += f->group) {
            float s = 0, z = (float)k_packed_less(f, w, groups, g, r);

            for (size_t i = 0; i < f->group; i++)
                s = fmaf(k_packed_value(f->codes, codes, r, i) - z, x[k + i], s);
            acc = fmaf(s, k_packed_scale_at(f, w, g, r), acc);
            codes += k_packed_codes(f->codes, f->group);
        }
        w = codes;
    }
    return acc;
}

static void
gemm_packed(float *out, size_t ldo, const void *w, size_t blocks, const struct moe_blocks *f,
    const float *x, size_t ldx, size_t n)
{
    const uint8_t *block = w;

    for (size_t b = 0; b < blocks; b++, block += k_packed_block(f))
        for (size_t j = 0; j < n; j++)
            for (size_t r = 0; r < K_PACKED_ROWS; r++)
                out[j * ldo + b * K_PACKED_ROWS + r] = dot(f, block, r, x + j * ldx);
}

void
k_gemm_packed_ref_init(struct moe_kernels *k)
{
    k->gemm_packed = gemm_packed;
}
