/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running digests against OpenSSL at all lengths and cuts, alone and in pairs,
 * and the vectors of FIPS 180-4. Run once more with MOE_CPU=ref by
 * tests/cli/digest_ref.sh, where OpenSSL computes them.
 */
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "common/trust/digest.h"
#include "tests/tap.h"

#define N 1000

static unsigned char data[2][N];

static void
fill(void)
{
    uint32_t x = 1;

    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < N; i++) {
            x = x * 1664525 + 1013904223;
            data[s][i] = (unsigned char)(x >> 24);
        }
}

static bool
is_evp(const unsigned char *sum, const unsigned char *p, size_t n)
{
    unsigned char want[EVP_MAX_MD_SIZE];

    EVP_Digest(p, n, want, NULL, EVP_sha256(), NULL);
    return memcmp(sum, want, MOE_DIGEST_LEN) == 0;
}

static void
vectors(void)
{
    static const struct { const char *text, *hex; } v[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    };
    unsigned char sum[MOE_DIGEST_LEN], back[MOE_DIGEST_LEN];
    char hex[MOE_DIGEST_HEX];

    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
        moe_digest_of(v[i].text, strlen(v[i].text), sum, NULL);
        tap_is_str(moe_digest_hex(sum, hex), v[i].hex, "\"%s\"", v[i].text);
    }
    tap_ok(moe_digest_unhex(hex, 64, back) && memcmp(back, sum, sizeof(sum)) == 0, "back from hex");
    hex[0] = 'A';
    tap_ok(moe_digest_unhex(hex, 64, back) && back[0] == 0xa4, "capitals");
    hex[63] = 'g';
    tap_ok(!moe_digest_unhex(hex, 64, back), "g is no digit");
    hex[63] = '0';
    tap_ok(!moe_digest_unhex(hex, 63, back) && !moe_digest_unhex(hex, 65, back), "64 digits only");
}

/* Every length, cut in three at varying places. */
static void
cuts(void)
{
    struct moe_digest d = MOE_DIGEST_INIT;
    unsigned char sum[MOE_DIGEST_LEN];
    size_t bad = 0;

    for (size_t n = 0; n <= 300; n++) {
        size_t a = n * 7 % (n + 1), b = a + (n - a) * 3 / 5;
        moe_digest_begin(&d, NULL);
        moe_digest_add(&d, data[0], a);
        moe_digest_add(&d, data[0] + a, b - a);
        moe_digest_add(&d, data[0] + b, n - b);
        moe_digest_end(&d, sum, NULL);
        bad += !is_evp(sum, data[0], n);
    }
    tap_is_int((long long)bad, 0, "lengths 0 to 300 in three pieces");
    for (size_t step = 1; step <= 130; step++) {
        moe_digest_begin(&d, NULL);
        for (size_t i = 0; i < N; i += step)
            moe_digest_add(&d, data[0] + i, i + step < N ? step : N - i);
        moe_digest_end(&d, sum, NULL);
        bad += !is_evp(sum, data[0], N);
    }
    tap_is_int((long long)bad, 0, "pieces of 1 to 130 bytes");
    moe_digest_fini(&d);
}

/* Two streams of unlike lengths, both first advanced by unlike amounts. */
static void
pairs(void)
{
    struct moe_digest a = MOE_DIGEST_INIT, b = MOE_DIGEST_INIT;
    unsigned char sum[MOE_DIGEST_LEN];
    size_t bad = 0;

    for (size_t na = 0; na <= 400; na += 13)
        for (size_t nb = 0; nb <= 400; nb += 17) {
            size_t ca = na * 5 % (na + 1), cb = nb / 3;
            moe_digest_begin(&a, NULL);
            moe_digest_begin(&b, NULL);
            moe_digest_add2(&a, data[0], ca, &b, data[1], cb);
            moe_digest_add2(&a, data[0] + ca, na - ca, &b, data[1] + cb, nb - cb);
            moe_digest_end(&a, sum, NULL);
            bad += !is_evp(sum, data[0], na);
            moe_digest_end(&b, sum, NULL);
            bad += !is_evp(sum, data[1], nb);
        }
    tap_is_int((long long)bad, 0, "pairs of streams");
    moe_digest_fini(&a);
    moe_digest_fini(&b);
}

int
main(void)
{
    fill();
    vectors();
    cuts();
    pairs();
    return tap_done();
}
