/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exclusive or of 64-bit words, reference.
 */
#include "kernels/kernels_init.h"

static uint64_t
xor_u64(const uint64_t *x, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++)
        v ^= x[i];
    return v;
}

void
k_xor_ref_init(struct moe_kernels *k)
{
    k->xor_u64 = xor_u64;
}
