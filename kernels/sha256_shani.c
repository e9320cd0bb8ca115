/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 compression with the processor's SHA extensions (FIPS 180-4, section
 * 6.2.2). One stream is bound by the latency of sha256rnds2, so a second one
 * beside it is nearly free. No reference of our own: it is OpenSSL's.
 */
#include <immintrin.h>

#include "kernels/kernels_init.h"

/* FIPS 180-4, section 4.2.2. */
static const uint32_t round_k[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

/* The working variables as the instructions hold them, and 16 words of schedule. */
struct stream {
    __m128i abef, cdgh;
    __m128i w[4];
};

static inline void
unpack(struct stream *s, const uint32_t state[8])
{
    __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
    __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);

    s->abef = _mm_alignr_epi8(badc, hgfe, 8);
    s->cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
}

static inline void
pack(uint32_t state[8], const struct stream *s)
{
    __m128i feba = _mm_shuffle_epi32(s->abef, 0x1b);
    __m128i dchg = _mm_shuffle_epi32(s->cdgh, 0xb1);

    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

/* The block's 16 big-endian words. */
static inline void
load(struct stream *s, const unsigned char *p)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);

    for (int i = 0; i < 4; i++)
        s->w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), swap);
}

/* Rounds 4i .. 4i + 3 with the words w[i mod 4] = w. */
static inline void
rounds(struct stream *s, __m128i w, int i)
{
    __m128i wk = _mm_add_epi32(w, _mm_load_si128((const __m128i *)(round_k + 4 * i)));

    s->cdgh = _mm_sha256rnds2_epu32(s->cdgh, s->abef, wk);
    s->abef = _mm_sha256rnds2_epu32(s->abef, s->cdgh, _mm_shuffle_epi32(wk, 0x0e));
}

/* The four words that come 16 after those of a; b, c, d follow a. */
static inline __m128i
schedule(__m128i a, __m128i b, __m128i c, __m128i d)
{
    __m128i t = _mm_add_epi32(_mm_sha256msg1_epu32(a, b), _mm_alignr_epi8(d, c, 4));

    return _mm_sha256msg2_epu32(t, d);
}

/* Rounds 16r + 4j .. 16r + 4j + 3, and the words for 16 rounds later. */
static inline void
rounds_next(struct stream *s, int r, int j)
{
    __m128i *w = s->w;

    rounds(s, w[j], 4 * r + j);
    w[j] = schedule(w[j], w[(j + 1) & 3], w[(j + 2) & 3], w[(j + 3) & 3]);
}

static void
sha256_x1(uint32_t state[8], const void *p, size_t blocks)
{
    const unsigned char *q = p;
    struct stream s;

    unpack(&s, state);
    for (; blocks > 0; blocks--, q += 64) {
        __m128i abef = s.abef, cdgh = s.cdgh;

        load(&s, q);
        for (int r = 0; r < 3; r++) {
            rounds_next(&s, r, 0);
            rounds_next(&s, r, 1);
            rounds_next(&s, r, 2);
            rounds_next(&s, r, 3);
        }
        for (int j = 0; j < 4; j++)
            rounds(&s, s.w[j], 12 + j);
        s.abef = _mm_add_epi32(s.abef, abef);
        s.cdgh = _mm_add_epi32(s.cdgh, cdgh);
    }
    pack(state, &s);
}

static void
sha256_x2(uint32_t a[8], const void *pa, uint32_t b[8], const void *pb, size_t blocks)
{
    const unsigned char *qa = pa, *qb = pb;
    struct stream s, t;

    unpack(&s, a);
    unpack(&t, b);
    for (; blocks > 0; blocks--, qa += 64, qb += 64) {
        __m128i abef_s = s.abef, cdgh_s = s.cdgh, abef_t = t.abef, cdgh_t = t.cdgh;

        load(&s, qa);
        load(&t, qb);
        for (int r = 0; r < 3; r++) {
            rounds_next(&s, r, 0);
            rounds_next(&t, r, 0);
            rounds_next(&s, r, 1);
            rounds_next(&t, r, 1);
            rounds_next(&s, r, 2);
            rounds_next(&t, r, 2);
            rounds_next(&s, r, 3);
            rounds_next(&t, r, 3);
        }
        for (int j = 0; j < 4; j++) {
            rounds(&s, s.w[j], 12 + j);
            rounds(&t, t.w[j], 12 + j);
        }
        s.abef = _mm_add_epi32(s.abef, abef_s);
        s.cdgh = _mm_add_epi32(s.cdgh, cdgh_s);
        t.abef = _mm_add_epi32(t.abef, abef_t);
        t.cdgh = _mm_add_epi32(t.cdgh, cdgh_t);
    }
    pack(a, &s);
    pack(b, &t);
}

void
k_sha256_shani_init(struct moe_kernels *k)
{
    k->sha256_x1 = sha256_x1;
    k->sha256_x2 = sha256_x2;
}
