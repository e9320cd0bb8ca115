/* SPDX-License-Identifier: Apache-2.0 */
/* Logarithms of probabilities: against what they are defined as, order, extremes. */
#include <math.h>

#include "common/engine/logprob.h"
#include "tests/tap.h"

int
main(void)
{
    static const float x[6] = { 1, 3, -2, 3, 0.5F, 2 };
    static const float extreme[3] = { 30000, -INFINITY, -30000 };
    struct moe_logprobs p;
    double sum = 0, worst = 0;

    for (int i = 0; i < 6; i++)
        sum += exp((double)x[i]);
    for (uint32_t i = 0; i < 6; i++) {
        moe_logprob_get(x, 6, i, 0, &p);
        worst = fmax(worst, fabs(p.chosen.logprob - log(exp((double)x[i]) / sum)));
        if (p.n != 0 || p.chosen.id != i)
            worst = 1;
    }
    tap_ok(worst < 1e-12, "of the chosen one: off by %.1e", worst);
    moe_logprob_get(x, 6, 2, 4, &p);
    tap_is_int((long long)p.n, 4, "four likeliest");
    tap_ok(p.top[0].id == 1 && p.top[1].id == 3 && p.top[2].id == 5 && p.top[3].id == 0,
        "in order, lowest id first: %u %u %u %u", p.top[0].id, p.top[1].id, p.top[2].id,
        p.top[3].id);
    tap_ok(fabs(p.top[2].logprob - log(exp(2) / sum)) < 1e-12, "with their logarithms");
    moe_logprob_get(x, 6, 0, 20, &p);
    tap_is_int((long long)p.n, 6, "no more than there are");
    moe_logprob_get(extreme, 3, 1, 3, &p);
    tap_ok(p.chosen.logprob == MOE_LOGPROB_LEAST && p.top[0].logprob == 0
        && p.top[1].logprob == MOE_LOGPROB_LEAST, "what is next to impossible is a number");
    return tap_done();
}
