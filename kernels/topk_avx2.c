/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The k largest of n, AVX2: eight elements at a time are held against the last
 * of the list, and only those before it are looked at one by one.
 */
#include "kernels/kernels_init.h"
#include "kernels/topk.h"
#include "kernels/vec_avx2.h"

/* Bit l is set: x[l] stands before last. */
static unsigned
candidates(const float *x, float last)
{
    __m256 v = _mm256_loadu_ps(x);

    if (last != last)
        return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(v, v, _CMP_ORD_Q));
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(v, _mm256_set1_ps(last), _CMP_GT_OQ));
}

static void
topk_f32(uint32_t *idx, const float *x, size_t n, size_t k)
{
    size_t have = 0, i = 0;

    if (k == 0)
        return;
    for (; i < k; i++)
        have = k_topk_insert(idx, have, k, x, i);
    for (; n - i >= 8; i += 8)
        for (unsigned m = candidates(x + i, x[idx[k - 1]]); m != 0; m &= m - 1)
            k_topk_insert(idx, k, k, x, i + (unsigned)__builtin_ctz(m));
    for (; i < n; i++)
        k_topk_insert(idx, k, k, x, i);
}

void
k_topk_avx2_init(struct moe_kernels *k)
{
    k->topk_f32 = topk_f32;
}
