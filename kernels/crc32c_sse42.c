/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC32C with the processor's crc32 instruction. It takes one word a cycle but
 * three cycles to finish, so three stretches run side by side and are joined
 * with a carry-less multiplication.
 */
#include <immintrin.h>
#include <string.h>

#include "kernels/kernels_init.h"

#define STRETCH 1024

/*
 * x^(8 STRETCH - 33) and x^(16 STRETCH - 33) modulo the polynomial, reflected.
 * Multiplying a reflected remainder by such a constant gains one power of x and
 * the crc32 instruction 32 more, so the product moves it on by one stretch and
 * by two.
 */
#define ONE_ON 0x170076fau
#define TWO_ON 0xa51b6135u

static inline uint64_t
word(const unsigned char *p)
{
    uint64_t w;

    memcpy(&w, p, sizeof(w));
    return w;
}

static inline __m128i
times(uint64_t crc, uint32_t by)
{
    return _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc), _mm_cvtsi64_si128(by), 0);
}

/* Three stretches at p. */
static inline uint64_t
three(uint64_t a, const unsigned char *p)
{
    uint64_t b = 0, c = 0;

    for (size_t i = 0; i < STRETCH; i += 8) {
        a = _mm_crc32_u64(a, word(p + i));
        b = _mm_crc32_u64(b, word(p + STRETCH + i));
        c = _mm_crc32_u64(c, word(p + 2 * STRETCH + i));
    }
    __m128i ab = _mm_xor_si128(times(a, TWO_ON), times(b, ONE_ON));
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(ab)) ^ c;
}

static uint32_t
crc32c(uint32_t crc, const void *p, size_t n)
{
    const unsigned char *q = p;
    uint64_t c = ~crc;

    for (; n >= 3 * STRETCH; n -= 3 * STRETCH, q += 3 * STRETCH)
        c = three(c, q);
    for (; n >= 8; n -= 8, q += 8)
        c = _mm_crc32_u64(c, word(q));
    for (; n > 0; n--, q++)
        c = _mm_crc32_u8((uint32_t)c, *q);
    return ~(uint32_t)c;
}

void
k_crc32c_sse42_init(struct moe_kernels *k)
{
    k->crc32c = crc32c;
}
