/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Natural logarithms of what the model itself gave tokens: from its raw logits,
 * before penalties, bias, grammar and temperature.
 */
#ifndef MOE_ENGINE_LOGPROB_H
#define MOE_ENGINE_LOGPROB_H

#include <stddef.h>
#include <stdint.h>

#define MOE_LOGPROB_MAX 20      /* likeliest tokens shown beside the chosen one */
#define MOE_LOGPROB_LEAST (-9999.0)     /* stands for everything below, minus infinity too */

struct moe_logprob { uint32_t id; double logprob; };

struct moe_logprobs {
    struct moe_logprob chosen;
    size_t n;
    struct moe_logprob top[MOE_LOGPROB_MAX];    /* descending, lowest id first of equal ones */
};

/* chosen < n; top <= MOE_LOGPROB_MAX. The logits hold no NaN. */
void moe_logprob_get(const float *logits, size_t n, uint32_t chosen, size_t top,
    struct moe_logprobs *out);

#endif
