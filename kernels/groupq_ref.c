/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group quantisation to INT4 and INT8 and back, in the order of the formulas.
 */
#include <string.h>

#include "kernels/groupq.h"
#include "kernels/kernels_init.h"

/* The scale of one group; *bad is raised by its values that are not finite. */
static uint16_t
scale_of(const void *x, size_t at, size_t group, float range, enum k_groupq kind, size_t *bad)
{
    uint32_t max = 0;
    size_t n = 0;

    for (size_t i = at; i < at + group; i++) {
        uint32_t a = k_groupq_abs(x, i, kind);
        n += a >= k_groupq_inf(kind);
        max = a > max ? a : max;
    }
    *bad += n;
    return n > 0 ? k_groupq_nan(kind) : k_groupq_scale(k_groupq_value(max, kind), range, kind);
}

static size_t
to_i4(uint8_t *codes, uint16_t *scale, const void *x, size_t n, size_t group, enum k_groupq kind)
{
    size_t bad = 0;

    for (size_t g = 0; g < n / group; g++) {
        size_t before = bad;
        scale[g] = scale_of(x, g * group, group, 7.5f, kind, &bad);
        float s = k_groupq_scale_f32(scale[g], kind);
        for (size_t i = g * group; i < (g + 1) * group; i += 2) {
            int lo = 0, hi = 0;
            if (bad == before) {
                lo = k_groupq_code(k_groupq_get(x, i, kind), s, -8, 7);
                hi = k_groupq_code(k_groupq_get(x, i + 1, kind), s, -8, 7);
            }
            codes[i / 2] = (uint8_t)((lo + 8) | (hi + 8) << 4);
        }
    }
    return bad;
}

static size_t
to_i8(int8_t *codes, uint16_t *scale, const void *x, size_t n, size_t group, enum k_groupq kind)
{
    size_t bad = 0;

    for (size_t g = 0; g < n / group; g++) {
        size_t before = bad;
        scale[g] = scale_of(x, g * group, group, 127.5f, kind, &bad);
        float s = k_groupq_scale_f32(scale[g], kind);
        for (size_t i = g * group; i < (g + 1) * group; i++)
            codes[i] = bad > before ? 0 :
                (int8_t)k_groupq_code(k_groupq_get(x, i, kind), s, -128, 127);
    }
    return bad;
}

static size_t
quant_i4_bf16(uint8_t *codes, uint16_t *scale, const uint16_t *x, size_t n, size_t group)
{
    return to_i4(codes, scale, x, n, group, K_GROUPQ_BF16);
}

static size_t
quant_i4_f16(uint8_t *codes, uint16_t *scale, const uint16_t *x, size_t n, size_t group)
{
    return to_i4(codes, scale, x, n, group, K_GROUPQ_F16);
}

static size_t
quant_i4_f32(uint8_t *codes, uint16_t *scale, const float *x, size_t n, size_t group)
{
    return to_i4(codes, scale, x, n, group, K_GROUPQ_F32);
}

static size_t
quant_i8_bf16(int8_t *codes, uint16_t *scale, const uint16_t *x, size_t n, size_t group)
{
    return to_i8(codes, scale, x, n, group, K_GROUPQ_BF16);
}

static size_t
quant_i8_f16(int8_t *codes, uint16_t *scale, const uint16_t *x, size_t n, size_t group)
{
    return to_i8(codes, scale, x, n, group, K_GROUPQ_F16);
}

static size_t
quant_i8_f32(int8_t *codes, uint16_t *scale, const float *x, size_t n, size_t group)
{
    return to_i8(codes, scale, x, n, group, K_GROUPQ_F32);
}

static void
dequant_i4(float *out, const uint8_t *codes, const uint16_t *scale, size_t n, size_t group,
    int f16)
{
    for (size_t i = 0; i < n; i++) {
        float s = f16 ? k_f16_f32(scale[i / group]) : k_bf16_f32(scale[i / group]);
        int u = codes[i / 2] >> i % 2 * 4 & 15;
        out[i] = (float)(u - 8) * s;
    }
}

void
k_groupq_ref_init(struct moe_kernels *k)
{
    k->quant_i4_bf16 = quant_i4_bf16;
    k->quant_i4_f16 = quant_i4_f16;
    k->quant_i4_f32 = quant_i4_f32;
    k->quant_i8_bf16 = quant_i8_bf16;
    k->quant_i8_f16 = quant_i8_f16;
    k->quant_i8_f32 = quant_i8_f32;
    k->dequant_i4 = dequant_i4;
}
