/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step of an exponential average, reference.
 */
#include <math.h>

#include "kernels/kernels_init.h"

static size_t
ema_f32(float *hi, float *lo, const float *x, double w, size_t n)
{
    size_t bad = 0;

    for (size_t i = 0; i < n; i++) {
        double e = (double)hi[i] + (double)lo[i];

        e = fma(w, (double)x[i] - e, e);
        hi[i] = (float)e;
        lo[i] = (float)(e - (double)hi[i]);
        bad += !isfinite(x[i]);
    }
    return bad;
}

void
k_ema_ref_init(struct moe_kernels *k)
{
    k->ema_f32 = ema_f32;
}
