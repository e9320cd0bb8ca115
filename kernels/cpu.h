/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this processor and its operating system can run. Private to dispatch.
 */
#ifndef MOE_KERNELS_CPU_H
#define MOE_KERNELS_CPU_H

enum {
    MOE_CPU_AVX2 = 1 << 0,      /* AVX2, FMA, F16C, BMI2 */
    MOE_CPU_AVX512 = 1 << 1,    /* AVX-512 F, BW, VL, DQ, VNNI; implies AVX2 */
    MOE_CPU_SHA = 1 << 2,       /* SHA extensions and SSE4.1 */
    MOE_CPU_CRC = 1 << 3        /* SSE4.2 and PCLMULQDQ */
};

/* The MOE_CPU_* bits that hold; vector bits only if the system saves the registers. */
unsigned moe_cpu_features(void);

#endif
