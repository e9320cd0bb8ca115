/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One code, scale or zero point of a packed block, as the references read them.
 */
#ifndef MOE_KERNELS_PACKED_REF_H
#define MOE_KERNELS_PACKED_REF_H

#include "kernels/half.h"
#include "kernels/packed.h"

/* Value of column k of row r in a group's codes, the zero point not yet taken off. */
static inline float
k_packed_value(int codes, const uint8_t *p, size_t r, size_t k)
{
    static const float e2m1[16] = { 0, 1, 2, 3, 4, 6, 8, 12, -0.0f, -1, -2, -3, -4, -6, -8, -12 };
    size_t unit = k_packed_unit(codes);
    uint8_t c;

    p += k / unit * 64;
    k %= unit;
    if (codes == MOE_CODES_E4M3) {
        c = p[k * K_PACKED_ROWS + r];
        return k_f16_f32((uint16_t)((c & 0x7f) << 7 | (c & 0x80) << 8));
    }
    c = p[r * 4 + k % 4];
    if (codes == MOE_CODES_I8)
        return (float)(c - 128);
    c = k < 4 ? c & 15 : c >> 4;
    return codes == MOE_CODES_E2M1 ? e2m1[c] : (float)(c - 8);
}

/* Scale of group g of a step whose scales begin at p. */
static inline float
k_packed_scale_at(const struct moe_blocks *f, const uint8_t *p, size_t g, size_t r)
{
    uint16_t h;
    float v;

    if (f->scale == MOE_SCALE_F32) {
        memcpy(&v, p + (g * K_PACKED_ROWS + r) * sizeof(v), sizeof(v));
    } else {
        memcpy(&h, p + (g * K_PACKED_ROWS + r) * sizeof(h), sizeof(h));
        v = f->scale == MOE_SCALE_F16 ? k_f16_f32(h) : k_bf16_f32(h);
    }
    return f->codes == MOE_CODES_E4M3 ? v * K_PACKED_E4M3 : v;
}

/* Zero point of group g of a step of `groups`. */
static inline int
k_packed_less(const struct moe_blocks *f, const uint8_t *p, size_t groups, size_t g, size_t r)
{
    if (!f->zeros)
        return 0;
    return p[groups * k_packed_scale(f) + g * K_PACKED_ROWS + r] - k_packed_zero(f->codes);
}

#endif
