/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what rdp.h says; all sums are of logarithms. */
#include <math.h>

#include "common/system/rdp.h"

/* log(C(n, k)) */
static double
log_choose(int n, int k)
{
    int sign;

    return lgamma_r(n + 1.0, &sign) - lgamma_r(k + 1.0, &sign) - lgamma_r(n - k + 1.0, &sign);
}

/*
 * The moment is the sum over k of binomial weights times exp((k^2 - k) / (2 sigma^2)). The
 * weights sum to 1, so that with exp() less 1 the sum is the moment less 1, which keeps its
 * digits when q is tiny. The terms 0 and 1 vanish.
 */
double
moe_rdp_step(double q, double sigma, int order)
{
    double largest = -INFINITY, sum = 0, less1;
    double log_q = log(q), log_rest = log1p(-q);

    if (q >= 1)
        return order / (2 * sigma * sigma);
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 2; k <= order; k++) {
            double c = ((double)k * k - k) / (2 * sigma * sigma);
            double t = log_choose(order, k) + k * log_q + (order - k) * log_rest + c +
                log(-expm1(-c));

            if (pass == 0)
                largest = fmax(largest, t);
            else
                sum += exp(t - largest);
        }
        if (!isfinite(largest))
            return largest < 0 ? 0 : INFINITY;
    }
    less1 = largest + log(sum);
    return (less1 > 700 ? less1 : log1p(exp(less1))) / (order - 1);
}

int
moe_rdp_epsilon(double q, double sigma, double steps, double delta, struct moe_rdp *out,
    struct moe_err *e)
{
    *out = (struct moe_rdp){ INFINITY, MOE_RDP_MIN_ORDER };
    if (!(q > 0 && q <= 1))
        return moe_err_set(e, MOE_EUSAGE, "a rate of sampling is above 0 and at most 1");
    if (!(sigma > 0 && isfinite(sigma)))
        return moe_err_set(e, MOE_EUSAGE, "noise is above 0");
    if (!(steps >= 1 && isfinite(steps)))
        return moe_err_set(e, MOE_EUSAGE, "there is one step at least");
    if (!(delta > 0 && delta < 1))
        return moe_err_set(e, MOE_EUSAGE, "delta is between 0 and 1");
    for (int a = MOE_RDP_MIN_ORDER; a <= MOE_RDP_MAX_ORDER; a++) {
        double epsilon = steps * moe_rdp_step(q, sigma, a) + log1p(-1.0 / a) -
            (log(delta) + log(a)) / (a - 1);

        if (epsilon < out->epsilon)
            *out = (struct moe_rdp){ epsilon, a };
    }
    out->epsilon = fmax(out->epsilon, 0);
    return 0;
}
