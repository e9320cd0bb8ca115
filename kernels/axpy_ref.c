/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vector times a number added to a vector, reference.
 */
#include <math.h>

#include "kernels/kernels_init.h"

static void
axpy_f32(float *out, const float *x, float a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = fmaf(a, x[i], out[i]);
}

void
k_axpy_ref_init(struct moe_kernels *k)
{
    k->axpy_f32 = axpy_f32;
}
