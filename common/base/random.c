/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the generator; sequences are the callers'. */
#include "common/base/random.h"

uint64_t
moe_random_bits(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

double
moe_random_uniform(uint64_t seed, uint64_t i)
{
    return (double)(moe_random_bits(seed, i) >> 11) * 0x1p-53;
}
