/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The k largest of n, reference.
 */
#include "kernels/kernels_init.h"
#include "kernels/topk.h"

static void
topk_f32(uint32_t *idx, const float *x, size_t n, size_t k)
{
    size_t have = 0;

    if (k == 0)
        return;
    for (size_t i = 0; i < n; i++)
        have = k_topk_insert(idx, have, k, x, i);
}

void
k_topk_ref_init(struct moe_kernels *k)
{
    k->topk_f32 = topk_f32;
}
