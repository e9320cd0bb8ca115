/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of multiply-adds, reference.
 */
#include <math.h>

#include "kernels/kernels_init.h"

static void
chains_f32(float *x, float a, float b, size_t steps)
{
    for (size_t s = 0; s < steps; s++)
        for (size_t i = 0; i < MOE_CHAINS; i++)
            x[i] = fmaf(x[i], a, b);
}

void
k_chains_ref_init(struct moe_kernels *k)
{
    k->chains_f32 = chains_f32;
}
