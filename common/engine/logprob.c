/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the logarithms of probabilities that a caller may see. */
#include <math.h>
#include <string.h>

#include "common/engine/logprob.h"

/* Put token i among the best so far, unless all of them are at least as likely. */
static void
place(const float *logits, uint32_t i, size_t most, struct moe_logprobs *out)
{
    size_t at = out->n;

    while (at > 0 && logits[i] > logits[out->top[at - 1].id])
        at--;
    if (at == most)
        return;
    if (out->n < most)
        out->n++;
    memmove(out->top + at + 1, out->top + at, (out->n - at - 1) * sizeof(*out->top));
    out->top[at].id = i;
}

static double
logprob(float logit, double top, double log_sum)
{
    double v = (double)logit - top - log_sum;

    return v > MOE_LOGPROB_LEAST ? v : MOE_LOGPROB_LEAST;
}

void
moe_logprob_get(const float *logits, size_t n, uint32_t chosen, size_t top,
    struct moe_logprobs *out)
{
    double most = -INFINITY, sum = 0, log_sum;

    out->n = 0;
    for (size_t i = 0; i < n; i++)
        most = (double)logits[i] > most ? (double)logits[i] : most;
    for (size_t i = 0; i < n; i++) {
        sum += exp((double)logits[i] - most);
        if (top > 0)
            place(logits, (uint32_t)i, top, out);
    }
    log_sum = log(sum);
    out->chosen = (struct moe_logprob){ chosen, logprob(logits[chosen], most, log_sum) };
    for (size_t i = 0; i < out->n; i++)
        out->top[i].logprob = logprob(logits[out->top[i].id], most, log_sum);
}
