/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4) of bytes as they come by, at the speed of the processor:
 * its SHA extensions where it has them (kernels/sha256), OpenSSL where not. One
 * stream leaves half of the unit idle, so two independent ones can be advanced
 * together. Files and ranges of files are digestq's.
 *
 * A struct moe_digest belongs to the caller and to one thread.
 */
#ifndef MOE_TRUST_DIGEST_H
#define MOE_TRUST_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define MOE_DIGEST_LEN 32
#define MOE_DIGEST_HEX 65       /* with the NUL */

struct moe_digest {
    uint32_t state[8];
    uint64_t len;               /* bytes so far */
    unsigned char tail[64];     /* the len % 64 of them not compressed yet */
    void *evp;                  /* OpenSSL's context, or NULL: the fields above count */
    bool bad;                   /* OpenSSL failed; moe_digest_end() says so */
};

#define MOE_DIGEST_INIT { { 0 }, 0, { 0 }, NULL, false }

/* Begin anew; d was MOE_DIGEST_INIT or used before. Errors: MOE_ENOMEM. */
int moe_digest_begin(struct moe_digest *d, struct moe_err *e);

/* The next n bytes. */
void moe_digest_add(struct moe_digest *d, const void *p, size_t n);

/* The next bytes of two streams: the same as two calls, in little more time than one. */
void moe_digest_add2(struct moe_digest *a, const void *pa, size_t na, struct moe_digest *b,
    const void *pb, size_t nb);

/* The digest of all bytes; d must be begun again after. Errors: MOE_EIO (OpenSSL failed). */
int moe_digest_end(struct moe_digest *d, unsigned char sum[static MOE_DIGEST_LEN],
    struct moe_err *e);

void moe_digest_fini(struct moe_digest *d);

/* The digest of n bytes in memory. */
int moe_digest_of(const void *p, size_t n, unsigned char sum[static MOE_DIGEST_LEN],
    struct moe_err *e);

/* Lower-case hexadecimal with a NUL; returns hex. */
char *moe_digest_hex(const unsigned char sum[static MOE_DIGEST_LEN],
    char hex[static MOE_DIGEST_HEX]);

/* The opposite, of exactly 64 digits of either case; false if they are not. */
bool moe_digest_unhex(const char *hex, size_t n, unsigned char sum[static MOE_DIGEST_LEN]);

#endif
