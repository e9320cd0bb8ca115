/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weighted sums of rows, reference.
 */
#include <math.h>

#include "kernels/kernels_init.h"

static void
wsum_f32(float *out, size_t ldo, const float *v, const float *p, size_t ldp, size_t rows,
    size_t dim, size_t n)
{
    for (size_t j = 0; j < n; j++)
        for (size_t t = 0; t < rows; t++)
            for (size_t d = 0; d < dim; d++)
                out[j * ldo + d] = fmaf(p[j * ldp + t], v[t * dim + d], out[j * ldo + d]);
}

void
k_wsum_ref_init(struct moe_kernels *k)
{
    k->wsum_f32 = wsum_f32;
}
