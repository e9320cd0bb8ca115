/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over groups that the vector variants share. They give the three
 * steps as a constant struct; with kind and bits constant too, inlining makes a
 * loop of its own of each operation.
 */
#ifndef MOE_KERNELS_GROUPQ_VEC_H
#define MOE_KERNELS_GROUPQ_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/groupq.h"
#include "kernels/kernels.h"

struct k_groupq_vec {
    /* The bits of the largest magnitude of n values. */
    uint32_t (*max_abs)(const void *x, size_t n, enum k_groupq kind);
    /* The codes of n finite values. */
    void (*i4)(uint8_t *codes, const void *x, size_t n, float scale, enum k_groupq kind);
    void (*i8)(int8_t *codes, const void *x, size_t n, float scale, enum k_groupq kind);
};

K_GROUPQ_INLINE size_t
k_groupq_walk(const struct k_groupq_vec v, void *codes, uint16_t *scale, const void *x, size_t n,
    size_t group, int bits, enum k_groupq kind)
{
    size_t bad = 0, step = group * (kind == K_GROUPQ_F32 ? 4 : 2);
    const char *p = x;
    char *q = codes;

    for (size_t g = 0; g < n / group; g++, p += step, q += group * (size_t)bits / 8) {
        uint32_t max = v.max_abs(p, group, kind);
        if (max >= k_groupq_inf(kind)) {
            bad += k_groupq_bad(p, group, kind);
            scale[g] = k_groupq_nan(kind);
            memset(q, bits == 4 ? 0x88 : 0, group * (size_t)bits / 8);
            continue;
        }
        scale[g] = k_groupq_scale(k_groupq_value(max, kind), bits == 4 ? 7.5f : 127.5f, kind);
        if (bits == 4)
            v.i4((uint8_t *)q, p, group, k_groupq_scale_f32(scale[g], kind), kind);
        else
            v.i8((int8_t *)q, p, group, k_groupq_scale_f32(scale[g], kind), kind);
    }
    return bad;
}

#endif
