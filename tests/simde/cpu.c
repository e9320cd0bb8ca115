/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for kernels/cpu.c in checkkern_simde, whose AVX-512 kernels are made
 * of AVX2: it says that a processor with AVX2 has AVX-512.
 */
#include "kernels/cpu.h"

unsigned
moe_cpu_features(void)
{
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return 0;
    return MOE_CPU_AVX2 | MOE_CPU_AVX512;
}
