/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns what blend.h says. A double becomes BF16 or F16 through a float that is
 * rounded to odd, so that rounding twice gives what rounding once would
 * (Boldo and Melquiond, "Emulation of a FMA and correctly-rounded sums", 2008).
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "common/formats/blend.h"
#include "kernels/kernels.h"

#define LANES 16
#define SLICE 512       /* elements converted at a time */

bool
moe_blend_takes(enum moe_dtype t)
{
    return t == MOE_F64 || t == MOE_F32 || t == MOE_BF16 || t == MOE_F16;
}

size_t
moe_blend_load(enum moe_dtype t, const void *p, size_t n, double *out)
{
    const struct moe_kernels *k = moe_kernels();
    const unsigned char *from = p;
    size_t bad = 0;

    if (t == MOE_F64)
        memcpy(out, p, n * sizeof(*out));
    for (size_t i = 0; t != MOE_F64 && i < n; i += SLICE) {
        size_t m = n - i < SLICE ? n - i : SLICE;
        float v[SLICE] = { 0 };
        uint16_t half[SLICE];

        if (t == MOE_F32)
            memcpy(v, from + i * sizeof(float), m * sizeof(float));
        else
            memcpy(half, from + i * sizeof(uint16_t), m * sizeof(uint16_t));
        if (t == MOE_BF16)
            k->bf16_f32(v, half, m);
        else if (t == MOE_F16)
            k->f16_f32(v, half, m);
        for (size_t j = 0; j < m; j++)
            out[i + j] = (double)v[j];
    }
    for (size_t i = 0; i < n; i++)
        bad += !isfinite(out[i]);
    return bad;
}

/* A double as float: cut, with the last bit set when something was cut off. */
static float
to_odd(double x)
{
    float v = (float)x;
    uint32_t bits;

    if (!isfinite(v) || (double)v == x)
        return v;
    if (fabs((double)v) > fabs(x))
        v = nextafterf(v, 0.0f);
    memcpy(&bits, &v, sizeof(bits));
    bits |= 1;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

size_t
moe_blend_store(enum moe_dtype t, const double *x, size_t n, void *out)
{
    unsigned char *to = out;
    size_t bad = 0;

    for (size_t i = 0; i < n; i++) {
        double back = x[i];

        if (t == MOE_F32) {
            float v = (float)x[i];

            back = (double)v;
            memcpy(to + i * sizeof(v), &v, sizeof(v));
        } else if (t != MOE_F64) {
            float odd = to_odd(x[i]);
            uint16_t v = t == MOE_BF16 ? moe_dtype_f32_bf16(odd) : moe_dtype_f32_f16(odd);

            back = (double)(t == MOE_BF16 ? moe_dtype_bf16_f32(v) : moe_dtype_f16_f32(v));
            memcpy(to + i * sizeof(v), &v, sizeof(v));
        }
        bad += !isfinite(back);
    }
    if (t == MOE_F64)
        memcpy(out, x, n * sizeof(*x));
    return bad;
}

double
moe_blend_squares(const double *x, size_t n)
{
    double lane[LANES] = { 0 };
    size_t i = 0;

    for (; n - i >= LANES; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lane[l] += x[i + l] * x[i + l];
    for (size_t l = 0; i + l < n; l++)
        lane[l] += x[i + l] * x[i + l];
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

float
moe_blend_clip(double norm, double most)
{
    float x = (float)norm, c;

    if (isinf(x))
        c = (float)(most / norm);
    else
        c = 1.0f / (x + 1e-6f) * (float)most;
    return c < 1.0f ? c : 1.0f;
}
