/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of multiply-adds, AVX-512: 12 vectors, more than two units with a
 * latency of 4 or 5 need to be always busy, in registers.
 */
#include "kernels/kernels_init.h"
#include "kernels/vec_avx512.h"

#define TILE 12

static void
chains_f32(float *x, float a, float b, size_t steps)
{
    const __m512 va = _mm512_set1_ps(a), vb = _mm512_set1_ps(b);

    for (size_t t = 0; t < MOE_CHAINS; t += TILE * 16) {
        __m512 v[TILE];

        K_UNROLL
        for (int i = 0; i < TILE; i++)
            v[i] = _mm512_loadu_ps(x + t + 16 * i);
        for (size_t s = 0; s < steps; s++) {
            K_UNROLL
            for (int i = 0; i < TILE; i++)
                v[i] = _mm512_fmadd_ps(v[i], va, vb);
        }
        K_UNROLL
        for (int i = 0; i < TILE; i++)
            _mm512_storeu_ps(x + t + 16 * i, v[i]);
    }
}

void
k_chains_avx512_init(struct moe_kernels *k)
{
    k->chains_f32 = chains_f32;
}
