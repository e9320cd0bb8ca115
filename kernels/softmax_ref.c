/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax in place, reference.
 */
#include <math.h>

#include "kernels/exp.h"
#include "kernels/kernels_init.h"
#include "kernels/lanes.h"

static void
softmax_f32(float *x, size_t n)
{
    float lane[K_LANES] = { 0 }, max = -INFINITY, sum;

    for (size_t i = 0; i < n; i++)
        max = x[i] > max ? x[i] : max;
    for (size_t i = 0; i < n; i++) {
        x[i] = k_exp(x[i] - max);
        lane[i % K_LANES] += x[i];
    }
    sum = k_lanes_sum(lane);
    for (size_t i = 0; i < n; i++)
        x[i] /= sum;
}

void
k_softmax_ref_init(struct moe_kernels *k)
{
    k->softmax_f32 = softmax_f32;
}
