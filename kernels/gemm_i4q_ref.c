/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed INT4 matrix product with INT8 activations, reference. Needs no sums of
 * the activations: it takes the zero point off each code.
 */
#include <math.h>

#include "kernels/half.h"
#include "kernels/kernels_init.h"
#include "kernels/packed.h"

static int
code(const uint8_t *codes, size_t r, size_t k)
{
    uint8_t byte = codes[k / 8 * 64 + r * 4 + k % 4];

    return (k % 8 < 4 ? byte & 15 : byte >> 4) - K_PACKED_ZERO;
}

static float
scale(const uint8_t *scales, size_t g, size_t r, int f16)
{
    uint16_t v;

    memcpy(&v, scales + (g * K_PACKED_ROWS + r) * sizeof(v), sizeof(v));
    return f16 ? k_f16_f32(v) : k_bf16_f32(v);
}

static float
dot(const uint8_t *w, size_t r, size_t cols, size_t group, int f16, const int8_t *xq,
    const float *xs)
{
    float acc = 0;

    for (size_t k = 0; k < cols;) {
        size_t groups = k_packed_groups(cols - k, group);
        const uint8_t *codes = w + k_packed_scales(groups);

        for (size_t g = 0; g < groups; g++, k += group, codes += k_packed_codes(group)) {
            int s = 0;

            for (size_t i = 0; i < group; i++)
                s += code(codes, r, i) * xq[k + i];
            acc = fmaf((float)s, scale(w, g, r, f16) * xs[k / group], acc);
        }
        w = codes;
    }
    return acc;
}

static void
gemm_i4q(float *out, size_t ldo, const void *w, size_t blocks, size_t cols, size_t group, int f16,
    const int8_t *xq, const float *xs, const int32_t *xsum, size_t n)
{
    const uint8_t *block = w;

    (void)xsum;
    for (size_t b = 0; b < blocks; b++, block += k_packed_block(cols, group))
        for (size_t j = 0; j < n; j++)
            for (size_t r = 0; r < K_PACKED_ROWS; r++)
                out[j * ldo + b * K_PACKED_ROWS + r] = dot(block, r, cols, group, f16,
                    xq + j * cols, xs + j * (cols / group));
}

void
k_gemm_i4q_ref_init(struct moe_kernels *k)
{
    k->gemm_i4q = gemm_i4q;
}
