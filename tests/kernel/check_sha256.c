/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 compression against the vectors of FIPS 180-4 and OpenSSL. */
#include <openssl/evp.h>
#include <string.h>

#include "tests/kernel/checkkern.h"
#include "tests/tap.h"

static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
    0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

/* The digest of whole blocks, and its padding, all through x1 or one side of x2. */
static void
digest(const struct moe_kernels *k, int side, const uint8_t *p, size_t blocks, uint8_t out[32])
{
    uint32_t state[8], other[8];
    uint8_t pad[64] = { 0x80 };
    uint64_t bits = (uint64_t)blocks * 512;

    for (int i = 0; i < 8; i++)
        pad[56 + i] = (uint8_t)(bits >> (56 - 8 * i));
    memcpy(state, start, sizeof(state));
    memcpy(other, start, sizeof(other));
    if (side == 0) {
        k->sha256_x1(state, p, blocks);
    } else if (side == 1) {
        k->sha256_x2(state, p, other, p, blocks);
    } else {
        k->sha256_x2(other, p, state, p, blocks);
    }
    k->sha256_x1(state, pad, 1);
    for (int i = 0; i < 32; i++)
        out[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}

static void
against_evp(const struct moe_kernels *k)
{
    ck_begin("sha256_x1 sha256_x2", k->tier);
    for (size_t blocks = 0; blocks <= 40; blocks++) {
        uint8_t *p = ck_buf(0, blocks * 64), want[32], got[32];

        for (size_t i = 0; i < blocks * 64; i++)
            p[i] = (uint8_t)ck_rand();
        EVP_Digest(p, blocks * 64, want, NULL, EVP_sha256(), NULL);
        for (int side = 0; side < 3; side++) {
            digest(k, side, p, blocks, got);
            ck_expect(memcmp(got, want, 32) == 0, "%zu blocks, side %d", blocks, side);
        }
    }
    ck_end();
}

/* Two streams of different bytes, from addresses of any alignment. */
static void
two_streams(const struct moe_kernels *k)
{
    ck_begin("sha256_x2 beside x1", k->tier);
    for (size_t n = 1; n <= 9; n++) {
        uint8_t *p = ck_buf(0, n * 64 + n), *q = ck_buf(1, n * 64);
        uint32_t a[8], b[8], c[8], d[8];

        for (size_t i = 0; i < n * 64; i++) {
            p[i] = (uint8_t)ck_rand();
            q[i] = (uint8_t)ck_rand();
        }
        for (int i = 0; i < 8; i++) {
            a[i] = c[i] = ck_rand();
            b[i] = d[i] = ck_rand();
        }
        k->sha256_x2(a, p, b, q, n);
        k->sha256_x1(c, p, n);
        k->sha256_x1(d, q, n);
        ck_expect(memcmp(a, c, sizeof(a)) == 0 && memcmp(b, d, sizeof(b)) == 0, "%zu", n);
    }
    ck_end();
}

/* FIPS 180-4 example "abc", padded by hand. */
static void
abc(const struct moe_kernels *k)
{
    static const uint32_t want[8] = { 0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223, 0xb00361a3,
        0x96177a9c, 0xb410ff61, 0xf20015ad };
    uint8_t block[64] = { 'a', 'b', 'c', 0x80, [63] = 24 };
    uint32_t state[8];

    memcpy(state, start, sizeof(state));
    k->sha256_x1(state, block, 1);
    tap_is_mem(state, want, sizeof(want), "%s: \"abc\"", k->tier);
}

static void
run(void)
{
    const struct moe_kernels *k;

    tap_ok(ck_ref()->sha256_x1 == NULL && ck_ref()->sha256_x2 == NULL,
        "the reference is OpenSSL's");
    for (size_t t = 0; (k = ck_tier(t)) != NULL; t++) {
        if (k->sha256_x1 == NULL) {
            tap_skip("no SHA extensions");
            continue;
        }
        abc(k);
        against_evp(k);
        two_streams(k);
    }
}

const struct ck_check check_sha256 = { "sha256", run, NULL };
