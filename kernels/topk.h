/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The step all variants of top-k share: a sorted list of the best so far, into
 * which an element is inserted behind its equals. They differ in how they skip
 * the elements that do not enter it. Meant for a small k.
 */
#ifndef MOE_KERNELS_TOPK_H
#define MOE_KERNELS_TOPK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* a before b: a larger, or a number where b is NaN. Equals keep their order. */
static inline bool
k_topk_before(float a, float b)
{
    return a > b || (a == a && b != b);
}

/* Insert element i into the list of `have` (at most k); returns the new length. */
static inline size_t
k_topk_insert(uint32_t *idx, size_t have, size_t k, const float *x, size_t i)
{
    size_t at = have < k ? have : k - 1;

    if (have == k && !k_topk_before(x[i], x[idx[k - 1]]))
        return have;
    for (; at > 0 && k_topk_before(x[i], x[idx[at - 1]]); at--)
        idx[at] = idx[at - 1];
    idx[at] = (uint32_t)i;
    return have < k ? have + 1 : k;
}

#endif
