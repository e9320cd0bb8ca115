/* SPDX-License-Identifier: Apache-2.0 */
/* Moments and tails of noise from repeatable bytes; bytes of the system differ; errors. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "common/base/random.h"
#include "common/system/gauss.h"
#include "tests/tap.h"

#define N 100000

static int
repeatable(void *ctx, unsigned char *p, size_t n, struct moe_err *e)
{
    uint64_t *at = ctx;

    (void)e;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t v = moe_random_bits(11, (*at)++);

        memcpy(p + i, &v, 8);
    }
    return 0;
}

static int
failing(void *ctx, unsigned char *p, size_t n, struct moe_err *e)
{
    (void)ctx;
    memset(p, 0, n);
    return moe_err_set(e, MOE_EIO, "none");
}

int
main(void)
{
    static double x[N];
    double m1 = 0, m2 = 0, m4 = 0, beyond = 0, apart = 0;
    uint64_t at = 0;
    double a[5], b[5];

    tap_is_int(moe_gauss_fill(repeatable, &at, 3, x, N, NULL), 0, "filled");
    for (size_t i = 0; i < N; i++) {
        double z = x[i] / 3;

        m1 += z / N;
        m2 += z * z / N;
        m4 += z * z * z * z / N;
        beyond += fabs(z) > 1.959964 ? 1.0 / N : 0;
        apart += i > 0 ? z * x[i - 1] / 3 / N : 0;
    }
    /* Five standard errors of each. */
    tap_ok(fabs(m1) < 5 / sqrt(N), "mean %g", m1);
    tap_ok(fabs(m2 - 1) < 5 * sqrt(2.0 / N), "variance %g", m2);
    tap_ok(fabs(m4 - 3) < 5 * sqrt(96.0 / N), "fourth moment %g", m4);
    tap_ok(fabs(beyond - 0.05) < 5 * sqrt(0.05 * 0.95 / N), "one in twenty beyond 1.96: %g",
        beyond);
    tap_ok(fabs(apart) < 5 / sqrt(N), "neighbours do not hang together: %g", apart);
    tap_ok(moe_gauss_fill(NULL, NULL, 1, a, 5, NULL) == 0 &&
        moe_gauss_fill(NULL, NULL, 1, b, 5, NULL) == 0 && memcmp(a, b, sizeof(a)) != 0,
        "the system's are never the same");
    tap_is_int(moe_gauss_fill(failing, NULL, 1, a, 5, NULL), MOE_EIO, "no randomness");
    return tap_done();
}
