/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns running SHA-256 digests: buffering to whole blocks, padding, and the
 * choice between the kernels and OpenSSL.
 */
#include <openssl/evp.h>
#include <string.h>

#include "common/trust/digest.h"
#include "kernels/kernels.h"

#define BLOCK 64

/* FIPS 180-4, section 5.3.3. */
static const uint32_t initial[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
    0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

int
moe_digest_begin(struct moe_digest *d, struct moe_err *e)
{
    memcpy(d->state, initial, sizeof(initial));
    d->len = 0;
    d->bad = false;
    if (moe_kernels()->sha256_x1 != NULL)
        return 0;
    if (d->evp == NULL)
        d->evp = EVP_MD_CTX_new();
    if (d->evp == NULL || EVP_DigestInit_ex(d->evp, EVP_sha256(), NULL) != 1)
        return moe_err_set(e, MOE_ENOMEM, "SHA-256: out of memory");
    return 0;
}

static void
add_evp(struct moe_digest *d, const void *p, size_t n)
{
    d->len += n;
    if (EVP_DigestUpdate(d->evp, p, n) != 1)
        d->bad = true;
}

/* Complete the tail from *p and compress it; after it whole blocks can follow. */
static void
fill_tail(struct moe_digest *d, const unsigned char **p, size_t *n)
{
    size_t have = d->len % BLOCK, take = have == 0 ? 0 : BLOCK - have;

    if (take > *n)
        take = *n;
    if (take == 0)
        return;
    memcpy(d->tail + have, *p, take);
    d->len += take;
    *p += take;
    *n -= take;
    if (d->len % BLOCK == 0)
        moe_kernels()->sha256_x1(d->state, d->tail, 1);
}

/* Less than a block, at a block's boundary or within the tail: keep it. */
static void
keep(struct moe_digest *d, const unsigned char *p, size_t n)
{
    if (n > 0)
        memcpy(d->tail + d->len % BLOCK, p, n);
    d->len += n;
}

void
moe_digest_add(struct moe_digest *d, const void *p, size_t n)
{
    const unsigned char *q = p;
    size_t whole;

    if (d->evp != NULL) {
        add_evp(d, p, n);
        return;
    }
    fill_tail(d, &q, &n);
    whole = n / BLOCK;
    if (whole > 0) {
        moe_kernels()->sha256_x1(d->state, q, whole);
        d->len += whole * BLOCK;
    }
    keep(d, q + whole * BLOCK, n % BLOCK);
}

void
moe_digest_add2(struct moe_digest *a, const void *pa, size_t na, struct moe_digest *b,
    const void *pb, size_t nb)
{
    const unsigned char *qa = pa, *qb = pb;
    size_t both;

    if (a->evp == NULL && b->evp == NULL) {
        fill_tail(a, &qa, &na);
        fill_tail(b, &qb, &nb);
        both = (na < nb ? na : nb) / BLOCK;
        if (both > 0) {
            moe_kernels()->sha256_x2(a->state, qa, b->state, qb, both);
            a->len += both * BLOCK;
            b->len += both * BLOCK;
            qa += both * BLOCK;
            qb += both * BLOCK;
            na -= both * BLOCK;
            nb -= both * BLOCK;
        }
    }
    moe_digest_add(a, qa, na);
    moe_digest_add(b, qb, nb);
}

int
moe_digest_end(struct moe_digest *d, unsigned char sum[static MOE_DIGEST_LEN],
    struct moe_err *e)
{
    unsigned char pad[2 * BLOCK] = { 0x80 };
    uint64_t bits = d->len * 8;
    size_t n = BLOCK - (d->len + 8) % BLOCK;    /* 1 .. 64: the bit, zeros */

    if (d->evp != NULL) {
        if (d->bad || EVP_DigestFinal_ex(d->evp, sum, NULL) != 1)
            return moe_err_set(e, MOE_EIO, "SHA-256: OpenSSL failed");
        return 0;
    }
    for (int i = 0; i < 8; i++)
        pad[n + (size_t)i] = (unsigned char)(bits >> (56 - 8 * i));
    moe_digest_add(d, pad, n + 8);
    for (int i = 0; i < MOE_DIGEST_LEN; i++)
        sum[i] = (unsigned char)(d->state[i / 4] >> (24 - 8 * (i % 4)));
    return 0;
}

void
moe_digest_fini(struct moe_digest *d)
{
    EVP_MD_CTX_free(d->evp);
    d->evp = NULL;
}

int
moe_digest_of(const void *p, size_t n, unsigned char sum[static MOE_DIGEST_LEN],
    struct moe_err *e)
{
    struct moe_digest d = MOE_DIGEST_INIT;
    int rc = moe_digest_begin(&d, e);

    if (rc == 0) {
        moe_digest_add(&d, p, n);
        rc = moe_digest_end(&d, sum, e);
    }
    moe_digest_fini(&d);
    return rc;
}

char *
moe_digest_hex(const unsigned char sum[static MOE_DIGEST_LEN], char hex[static MOE_DIGEST_HEX])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < MOE_DIGEST_LEN; i++) {
        hex[2 * i] = digits[sum[i] >> 4];
        hex[2 * i + 1] = digits[sum[i] & 15];
    }
    hex[2 * MOE_DIGEST_LEN] = '\0';
    return hex;
}

static int
digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' :
        c >= 'a' && c <= 'f' ? c - 'a' + 10 :
        c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool
moe_digest_unhex(const char *hex, size_t n, unsigned char sum[static MOE_DIGEST_LEN])
{
    if (n != 2 * MOE_DIGEST_LEN)
        return false;
    for (size_t i = 0; i < MOE_DIGEST_LEN; i++) {
        int hi = digit(hex[2 * i]), lo = digit(hex[2 * i + 1]);
        if (hi < 0 || lo < 0)
            return false;
        sum[i] = (unsigned char)(hi << 4 | lo);
    }
    return true;
}
