/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exclusive or of 64-bit words, AVX-512.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx512.h"

static uint64_t
xor_u64(const uint64_t *x, size_t n)
{
    __m512i v = _mm512_setzero_si512(), u = v;
    uint64_t lane[8], sum = 0;
    size_t i = 0;

    for (; n - i >= 16; i += 16) {
        v = _mm512_xor_si512(v, _mm512_loadu_si512(x + i));
        u = _mm512_xor_si512(u, _mm512_loadu_si512(x + i + 8));
    }
    _mm512_storeu_si512(lane, _mm512_xor_si512(v, u));
    for (int l = 0; l < 8; l++)
        sum ^= lane[l];
    for (; i < n; i++)
        sum ^= x[i];
    return sum;
}

void
k_xor_avx512_init(struct moe_kernels *k)
{
    k->xor_u64 = xor_u64;
}
