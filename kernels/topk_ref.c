/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The k largest of n, reference: a sorted list of the best so far, into which
 * each element is inserted behind its equals. Meant for a small k.
 */
#include <stdbool.h>

#include "kernels/kernels_init.h"

/* a before b: a larger, or a number where b is NaN. Equals keep their order. */
static bool
before(float a, float b)
{
    return a > b || (a == a && b != b);
}

static void
topk_f32(uint32_t *idx, const float *x, size_t n, size_t k)
{
    size_t have = 0;

    if (k == 0)
        return;
    for (size_t i = 0; i < n; i++) {
        size_t at;

        if (have == k && !before(x[i], x[idx[k - 1]]))
            continue;
        at = have < k ? have++ : k - 1;
        for (; at > 0 && before(x[i], x[idx[at - 1]]); at--)
            idx[at] = idx[at - 1];
        idx[at] = (uint32_t)i;
    }
}

void
k_topk_ref_init(struct moe_kernels *k)
{
    k->topk_f32 = topk_f32;
}
