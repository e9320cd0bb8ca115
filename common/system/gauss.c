/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what gauss.h says. */
#include <math.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdint.h>
#include <string.h>

#include "common/system/gauss.h"

#define TERMS 4
#define BATCH 128               /* numbers at a time */
#define TWO_PI 6.283185307179586

static int
secret_bytes(void *ctx, unsigned char *p, size_t n, struct moe_err *e)
{
    (void)ctx;
    if (RAND_priv_bytes(p, (int)n) != 1)
        return moe_err_set(e, MOE_EIO, "the system gives no random numbers");
    return 0;
}

/* In (0, 1], of 53 bits. */
static double
uniform(const unsigned char *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return (double)((v >> 11) + 1) * 0x1p-53;
}

int
moe_gauss_fill(moe_gauss_bytes *bytes, void *ctx, double sigma, double *out, size_t n,
    struct moe_err *e)
{
    unsigned char raw[BATCH * TERMS * sizeof(uint64_t)];
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i += BATCH) {
        size_t m = n - i < BATCH ? n - i : BATCH;

        rc = (bytes != NULL ? bytes : secret_bytes)(ctx, raw, sizeof(raw), e);
        for (size_t j = 0; rc == 0 && j < m; j++) {
            const unsigned char *p = raw + j * TERMS * sizeof(uint64_t);
            double sum = 0;

            /* Two uniform numbers are two Gaussian ones. */
            for (int k = 0; k < TERMS; k += 2, p += 2 * sizeof(uint64_t)) {
                double r = sqrt(-2 * log(uniform(p))), a = TWO_PI * uniform(p + sizeof(uint64_t));

                sum += r * cos(a) + r * sin(a);
            }
            out[i + j] = sigma * (sum / 2);
        }
    }
    OPENSSL_cleanse(raw, sizeof(raw));
    return rc;
}
