/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions between float and the short formats, one element at a time.
 */
#include "kernels/kernels_init.h"
#include "kernels/round.h"

static void
bf16_f32(float *out, const uint16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = k_bf16_f32(x[i]);
}

static void
f16_f32(float *out, const uint16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = k_f16_f32(x[i]);
}

static void
e4m3_f32(float *out, const uint8_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = k_e4m3_f32(x[i]);
}

static void
f32_bf16(uint16_t *out, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = k_f32_bf16(x[i]);
}

static void
f32_f16(uint16_t *out, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = k_f32_f16(x[i]);
}

static void
f32_e4m3(uint8_t *out, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = k_f32_e4m3(x[i]);
}

void
k_convert_ref_init(struct moe_kernels *k)
{
    k->bf16_f32 = bf16_f32;
    k->f16_f32 = f16_f32;
    k->e4m3_f32 = e4m3_f32;
    k->f32_bf16 = f32_bf16;
    k->f32_f16 = f32_f16;
    k->f32_e4m3 = f32_e4m3;
}
