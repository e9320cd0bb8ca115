/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dot product of two vectors, reference.
 */
#include <math.h>

#include "kernels/kernels_init.h"
#include "kernels/lanes.h"

static float
dot_f32(const float *a, const float *b, size_t n)
{
    float lane[K_LANES] = { 0 };

    for (size_t i = 0; i < n; i++)
        lane[i % K_LANES] = fmaf(a[i], b[i], lane[i % K_LANES]);
    return k_lanes_sum(lane);
}

void
k_dot_ref_init(struct moe_kernels *k)
{
    k->dot_f32 = dot_f32;
}
