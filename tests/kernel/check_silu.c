/* SPDX-License-Identifier: Apache-2.0 */
/* silu(gate) * up: all lengths to 300, the packed order, and the whole range of exp. */
#include <math.h>
#include <string.h>

#include "tests/kernel/checkkern.h"

/* exp, sum, quotient and product. */
#define SILU_EPS 0x1p-21

#define SWEEP 500000            /* from -110 to 110 */

static void
against_double(void)
{
    float *g = ck_buf(0, SWEEP * sizeof(*g)), *u = ck_buf(1, SWEEP * sizeof(*u));
    float *out = ck_buf(2, SWEEP * sizeof(*out));

    ck_begin("silu_mul_f32", "ref against double");
    ck_f32(u, SWEEP, CK_RANDOM);
    for (int i = 0; i < SWEEP; i++)
        g[i] = (float)(i - SWEEP / 2) * (220.0f / SWEEP);
    ck_ref()->silu_mul_f32(out, g, u, SWEEP);
    for (int i = 0; i < SWEEP; i++) {
        double want = g[i] / (1 + exp(-(double)g[i])) * u[i];

        /* Below the normal numbers the error is absolute. */
        ck_expect(fabs(out[i] - want) <= fabs(want) * SILU_EPS + 0x1p-118,
            "silu(%g) * %g is %g", g[i], u[i], out[i]);
    }
    ck_end();
}

static void
tier(const struct moe_kernels *k)
{
    ck_begin("silu_mul_f32", k->tier);
    for (int kind = 0; kind < CK_KINDS; kind++)
        for (size_t i = 0; i <= 301; i++) {
            size_t n = i <= 300 ? i : SWEEP;
            float *g = ck_buf(0, n * sizeof(*g)), *u = ck_buf(1, n * sizeof(*u));
            float *want = ck_buf(2, n * sizeof(*want)), *got = ck_buf(3, n * sizeof(*got));

            ck_f32(g, n, kind);
            ck_f32(u, n, kind);
            for (size_t j = 0; j < n && kind == CK_RANDOM; j++)
                g[j] *= 110;
            ck_ref()->silu_mul_f32(want, g, u, n);
            k->silu_mul_f32(got, g, u, n);
            ck_expect(ck_same_f32(got, want, n) && ck_intact(3), "n %zu, %s", n,
                ck_kind_name(kind));
            k->silu_mul_f32(g, g, u, n);
            ck_expect(ck_same_f32(g, want, n) && ck_intact(0), "n %zu, %s, in place", n,
                ck_kind_name(kind));
        }
    ck_end();
}

/* In the packed order against the operation on two vectors. */
static void
packed(const struct moe_kernels *k)
{
    ck_begin("silu_mul_16", k->tier);
    for (size_t blocks = 0; blocks <= 40; blocks++) {
        size_t n = 16 * blocks;
        float *gu = ck_buf(0, 2 * n * sizeof(*gu)), *got = ck_buf(1, n * sizeof(*got));
        float *g = ck_buf(2, n * sizeof(*g)), *u = ck_buf(3, n * sizeof(*u));
        float *want = ck_buf(4, n * sizeof(*want));

        ck_f32(gu, 2 * n, CK_SPECIAL);
        for (size_t i = 0; i < n; i++) {
            g[i] = gu[i / 16 * 32 + i % 16];
            u[i] = gu[i / 16 * 32 + 16 + i % 16];
        }
        ck_ref()->silu_mul_f32(want, g, u, n);
        k->silu_mul_16(got, gu, blocks);
        ck_expect(ck_same_f32(got, want, n) && ck_intact(1), "%zu blocks", blocks);
    }
    ck_end();
}

static void
run(void)
{
    const struct moe_kernels *k;

    against_double();
    packed(ck_ref());
    for (size_t t = 0; (k = ck_tier(t)) != NULL; t++) {
        tier(k);
        packed(k);
    }
}

const struct ck_check check_silu = { "silu", run, NULL };
