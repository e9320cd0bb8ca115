/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the reading of cpuid and XCR0 (Intel SDM, volume 1, sections 13.2 and
 * 14.3, 15.2). Choosing a variant is dispatch's.
 */
#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/cpu.h"

/* Leaf 1, ecx. */
#define PCLMUL (1u << 1)
#define FMA (1u << 12)
#define SSE41 (1u << 19)
#define SSE42 (1u << 20)
#define OSXSAVE (1u << 27)
#define F16C (1u << 29)
/* Leaf 7, ebx and ecx. */
#define AVX2 (1u << 5)
#define BMI2 (1u << 8)
#define AVX512F (1u << 16)
#define AVX512DQ (1u << 17)
#define SHA (1u << 29)
#define AVX512BW (1u << 30)
#define AVX512VL (1u << 31)
#define AVX512VNNI (1u << 11)
/* XCR0: XMM and YMM; and with opmask and both halves of ZMM. */
#define STATE_YMM 0x06u
#define STATE_ZMM 0xe6u

static bool
has(uint32_t reg, uint32_t bits)
{
    return (reg & bits) == bits;
}

static uint32_t
xcr0(void)
{
    uint32_t lo, hi;

    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return lo;
}

unsigned
moe_cpu_features(void)
{
    uint32_t a, b, c1, b7, c7, d, state;
    unsigned f = 0;

    if (!__get_cpuid(1, &a, &b, &c1, &d) || !__get_cpuid_count(7, 0, &a, &b7, &c7, &d))
        return 0;
    state = has(c1, OSXSAVE) ? xcr0() : 0;
    if (has(c1, FMA | F16C) && has(b7, AVX2 | BMI2) && has(state, STATE_YMM))
        f |= MOE_CPU_AVX2;
    if ((f & MOE_CPU_AVX2) && has(b7, AVX512F | AVX512DQ | AVX512BW | AVX512VL) &&
        has(c7, AVX512VNNI) && has(state, STATE_ZMM))
        f |= MOE_CPU_AVX512;
    if (has(c1, SSE41) && has(b7, SHA))
        f |= MOE_CPU_SHA;
    if (has(c1, SSE42 | PCLMUL))
        f |= MOE_CPU_CRC;
    return f;
}
