/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grids with a given scale: the reference.
 */
#include "kernels/grid.h"
#include "kernels/kernels_init.h"

static float
err_int(const float *x, const float *h, size_t n, float scale, float lo, float hi)
{
    float lane[K_LANES] = { 0 }, inv = 1 / scale;

    for (size_t i = 0; i < n; i++)
        lane[i % K_LANES] += k_grid_term_int(x[i], h != NULL ? h[i] : 1, inv, scale, lo, hi);
    return k_lanes_sum(lane);
}

static float
err_e2m1(const float *x, const float *h, size_t n, float scale)
{
    float lane[K_LANES] = { 0 }, inv = 1 / scale;

    for (size_t i = 0; i < n; i++)
        lane[i % K_LANES] += k_grid_term_e2m1(x[i], h != NULL ? h[i] : 1, inv, scale);
    return k_lanes_sum(lane);
}

void
k_grid_ref_init(struct moe_kernels *k)
{
    k->range_f32 = k_grid_range;
    k->codes_int = k_grid_int;
    k->codes_e2m1 = k_grid_e2m1;
    k->err_int = err_int;
    k->err_e2m1 = err_e2m1;
}
