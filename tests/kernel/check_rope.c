/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary embedding: every even head size to 300, both pairings. */
#include <math.h>
#include <string.h>

#include "tests/kernel/checkkern.h"

/* Two roundings of values of at most 2. */
#define ROPE_EPS 0x1p-22

static void
call(const struct moe_kernels *k, bool pair, float *x, const float *c, const float *s, size_t dim)
{
    if (pair)
        k->rope_pair(x, c, s, dim);
    else
        k->rope_half(x, c, s, dim);
}

/* The rotation of one pair as complex numbers multiply. */
static void
against_double(bool pair)
{
    ck_begin(pair ? "rope_pair" : "rope_half", "ref against double");
    for (size_t dim = 0; dim <= 300; dim += 2) {
        size_t half = dim / 2;
        float *c = ck_buf(0, half * sizeof(*c)), *s = ck_buf(1, half * sizeof(*s));
        float *x = ck_buf(2, dim * sizeof(*x)), *y = ck_buf(3, dim * sizeof(*y));
        double worst = 0;

        ck_f32(c, half, CK_RANDOM);
        ck_f32(s, half, CK_RANDOM);
        ck_f32(x, dim, CK_RANDOM);
        memcpy(y, x, dim * sizeof(*y));
        call(ck_ref(), pair, y, c, s, dim);
        for (size_t i = 0; i < half; i++) {
            size_t a = pair ? 2 * i : i, b = pair ? 2 * i + 1 : i + half;

            worst = fmax(worst, fabs(y[a] - ((double)x[a] * c[i] - (double)x[b] * s[i])));
            worst = fmax(worst, fabs(y[b] - ((double)x[b] * c[i] + (double)x[a] * s[i])));
        }
        ck_expect(worst <= ROPE_EPS, "head of %zu: %g", dim, worst);
    }
    ck_end();
}

static void
tier(const struct moe_kernels *k, bool pair)
{
    ck_begin(pair ? "rope_pair" : "rope_half", k->tier);
    for (int kind = 0; kind < CK_KINDS; kind++)
        for (size_t dim = 0; dim <= 300; dim += 2) {
            float *c = ck_buf(0, dim / 2 * sizeof(*c)), *s = ck_buf(1, dim / 2 * sizeof(*s));
            float *want = ck_buf(2, dim * sizeof(*want)), *got = ck_buf(3, dim * sizeof(*got));

            ck_f32(c, dim / 2, kind);
            ck_f32(s, dim / 2, kind);
            ck_f32(want, dim, kind);
            memcpy(got, want, dim * sizeof(*got));
            call(ck_ref(), pair, want, c, s, dim);
            call(k, pair, got, c, s, dim);
            ck_expect(ck_same_f32(got, want, dim) && ck_intact(3), "head of %zu, %s", dim,
                ck_kind_name(kind));
        }
    ck_end();
}

static void
run(void)
{
    const struct moe_kernels *k;

    for (int pair = 0; pair < 2; pair++) {
        against_double(pair);
        for (size_t t = 0; (k = ck_tier(t)) != NULL; t++)
            tier(k, pair);
    }
}

const struct ck_check check_rope = { "rope", run, NULL };
