/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rotary position embedding (Su et al. 2021, section 3.2.2), reference: both
 * ways of pairing the elements of a head.
 */
#include <math.h>

#include "kernels/kernels_init.h"

static void
rotate(float *a, float *b, float c, float s)
{
    float x = *a, y = *b;

    *a = fmaf(x, c, -(y * s));
    *b = fmaf(y, c, x * s);
}

static void
rope_half(float *x, const float *c, const float *s, size_t dim)
{
    for (size_t i = 0; i < dim / 2; i++)
        rotate(&x[i], &x[i + dim / 2], c[i], s[i]);
}

static void
rope_pair(float *x, const float *c, const float *s, size_t dim)
{
    for (size_t i = 0; i < dim / 2; i++)
        rotate(&x[2 * i], &x[2 * i + 1], c[i], s[i]);
}

void
k_rope_ref_init(struct moe_kernels *k)
{
    k->rope_half = rope_half;
    k->rope_pair = rope_pair;
}
