/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gaussian noise for privacy, from OpenSSL's generator for secrets. Each number
 * is half the sum of four of Box and Muller, so that the gaps between floating
 * point numbers do not give away what it was added to (Holohan and Braghin,
 * "Secure Random Sampling in Differential Privacy", 2021).
 */
#ifndef MOE_SYSTEM_GAUSS_H
#define MOE_SYSTEM_GAUSS_H

#include <stddef.h>

#include "common/base/err.h"

/* Fill n random bytes; 0, or an error with its text. */
typedef int moe_gauss_bytes(void *ctx, unsigned char *p, size_t n, struct moe_err *e);

/*
 * n numbers of mean 0 and standard deviation sigma. bytes NULL: OpenSSL's; tests
 * give bytes that can be repeated. Errors: MOE_EIO (no randomness).
 */
int moe_gauss_fill(moe_gauss_bytes *bytes, void *ctx, double sigma, double *out, size_t n,
    struct moe_err *e);

#endif
