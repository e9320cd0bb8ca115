/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error sums of a reconstruction, in 16 lanes of double.
 */
#include <math.h>

#include "kernels/kernels_init.h"

#define LANES 16

static double
tree(double *lane)
{
    for (int w = LANES / 2; w > 0; w /= 2)
        for (int i = 0; i < w; i++)
            lane[i] += lane[i + w];
    return lane[0];
}

static void
err_f32(double s[3], const float *x, const float *y, size_t n)
{
    double square[LANES] = { 0 }, error[LANES] = { 0 };

    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i] - (double)y[i];
        square[i % LANES] = fma(x[i], x[i], square[i % LANES]);
        error[i % LANES] = fma(d, d, error[i % LANES]);
        s[2] = fabs(d) > s[2] ? fabs(d) : s[2];
    }
    s[0] += tree(square);
    s[1] += tree(error);
}

void
k_errsum_ref_init(struct moe_kernels *k)
{
    k->err_f32 = err_f32;
}
