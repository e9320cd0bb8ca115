/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMSNorm (Zhang and Sennrich 2019, equation 4), reference.
 */
#include <math.h>

#include "kernels/kernels_init.h"
#include "kernels/lanes.h"

static void
rmsnorm_f32(float *out, const float *x, const float *w, size_t n, float eps)
{
    float lane[K_LANES] = { 0 }, r;

    for (size_t i = 0; i < n; i++)
        lane[i % K_LANES] = fmaf(x[i], x[i], lane[i % K_LANES]);
    r = 1.0f / sqrtf(k_lanes_sum(lane) / (float)n + eps);
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * r * w[i];
}

void
k_rmsnorm_ref_init(struct moe_kernels *k)
{
    k->rmsnorm_f32 = rmsnorm_f32;
}
