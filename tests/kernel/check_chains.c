/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of multiply-adds: all kinds of numbers, no steps and many. */
#include <math.h>
#include <string.h>

#include "tests/kernel/checkkern.h"

/* A power of two shrinks without rounding: the sum of the series is known. */
static void
by_series(void)
{
    float x[MOE_CHAINS];
    int bad = 0;

    ck_begin("chains_f32", "ref against the series");
    for (size_t i = 0; i < MOE_CHAINS; i++)
        x[i] = (float)i;
    ck_ref()->chains_f32(x, 0.5f, 1.0f, 3);
    for (size_t i = 0; i < MOE_CHAINS; i++)
        bad += x[i] != (float)i / 8 + 1.75f;
    ck_expect(bad == 0, "x / 8 + 7 / 4 after 3 steps, %d wrong", bad);
    ck_end();
}

static void
tier(const struct moe_kernels *k)
{
    const size_t bytes = MOE_CHAINS * sizeof(float);
    float *want = ck_buf(0, bytes), *got = ck_buf(1, bytes), ab[2];

    ck_begin("chains_f32", k->tier);
    for (int kind = 0; kind < CK_KINDS; kind++)
        for (size_t steps = 0; steps < 50; steps = steps * 2 + 1) {
            ck_f32(want, MOE_CHAINS, (enum ck_kind)kind);
            ck_f32(ab, 2, CK_RANDOM);
            memcpy(got, want, bytes);
            ck_ref()->chains_f32(want, ab[0], ab[1], steps);
            k->chains_f32(got, ab[0], ab[1], steps);
            ck_expect(ck_same_f32(got, want, MOE_CHAINS) && ck_intact(1), "%zu steps, %s", steps,
                ck_kind_name((enum ck_kind)kind));
        }
    ck_end();
}

static void
run(void)
{
    const struct moe_kernels *k;

    by_series();
    for (size_t t = 0; (k = ck_tier(t)) != NULL; t++)
        tier(k);
}

const struct ck_check check_chains = { "chains", run, NULL };
