/* SPDX-License-Identifier: Apache-2.0 */
/* Exclusive or of words: all lengths to 300 and a long one, each of its bits seen. */
#include "tests/kernel/checkkern.h"

static void
tier(const struct moe_kernels *k)
{
    ck_begin("xor_u64", k->tier);
    for (size_t i = 0; i <= 301; i++) {
        size_t n = i <= 300 ? i : 4099;
        uint64_t *x = ck_buf(0, n * sizeof(*x)), want = 0;

        for (size_t j = 0; j < n; j++) {
            x[j] = (uint64_t)ck_rand() << 32 | ck_rand();
            want ^= x[j];
        }
        ck_expect(k->xor_u64(x, n) == want, "n %zu", n);
    }
    ck_end();
}

static void
run(void)
{
    const struct moe_kernels *k;

    tier(ck_ref());
    for (size_t t = 0; (k = ck_tier(t)) != NULL; t++)
        tier(k);
}

const struct ck_check check_xor = { "xor", run, NULL };
