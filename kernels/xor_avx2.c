/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exclusive or of 64-bit words, AVX2.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx2.h"

static uint64_t
xor_u64(const uint64_t *x, size_t n)
{
    __m256i v[4] = { _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
        _mm256_setzero_si256() };
    uint64_t lane[4], sum;
    size_t i = 0;

    for (; n - i >= 16; i += 16)
        K_UNROLL
        for (int l = 0; l < 4; l++)
            v[l] = _mm256_xor_si256(v[l], _mm256_loadu_si256((const __m256i *)(x + i + 4 * l)));
    v[0] = _mm256_xor_si256(_mm256_xor_si256(v[0], v[1]), _mm256_xor_si256(v[2], v[3]));
    _mm256_storeu_si256((__m256i *)lane, v[0]);
    sum = lane[0] ^ lane[1] ^ lane[2] ^ lane[3];
    for (; i < n; i++)
        sum ^= x[i];
    return sum;
}

void
k_xor_avx2_init(struct moe_kernels *k)
{
    k->xor_u64 = xor_u64;
}
