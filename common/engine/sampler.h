/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One token from one row of logits. The order is: repetition, presence and
 * frequency penalty, bias (a row of logits is changed by these, chooser.h), then
 * temperature, top_k, top_p, min_p, draw; each as transformers 4.57 does it (top_k
 * keeps ties of the k-th). Temperature 0 takes the largest logit, the lowest id
 * of equal ones.
 *
 * The draw of token number i of a request is a function of (seed, i) alone, so
 * neither batching nor preemption changes a text. The generator is SplitMix64
 * (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators",
 * OOPSLA 2014), whose i-th output needs no state but seed and i.
 */
#ifndef MOE_ENGINE_SAMPLER_H
#define MOE_ENGINE_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct moe_sampler_bias { uint32_t id; float bias; };

struct moe_sampler_options {
    double temperature;     /* >= 0 */
    int64_t top_k;          /* 0 = all */
    double top_p;           /* 1 = all */
    double min_p;           /* 0 = all */
    uint64_t seed;
    double repetition;      /* tokens of prompt and output: l / r where l > 0, else l * r */
    double presence;        /* l - p for tokens of the output */
    double frequency;       /* l - f * how often the output has it */
    const struct moe_sampler_bias *bias;    /* [n_bias], added to logits; borrowed */
    size_t n_bias;
};

#define MOE_SAMPLER_GREEDY { 0.0, 0, 1.0, 0.0, 0, 1.0, 0.0, 0.0, NULL, 0 }

struct moe_candidate {
    uint32_t id;
    float logit;            /* after temperature */
    double p;               /* what is left sums to 1 */
};

/* Errors: MOE_EUSAGE naming the option that is out of range. */
int moe_sampler_check(const struct moe_sampler_options *o, struct moe_err *e);

/*
 * The candidates that pass, with their probabilities, in a fixed order. c has
 * room for n; *kept >= 1. o has been checked and temperature is not 0.
 * Errors: MOE_EFORMAT when no logit is a number above minus infinity.
 */
int moe_sampler_filter(const struct moe_sampler_options *o, const float *logits, size_t n,
    struct moe_candidate *c, size_t *kept, struct moe_err *e);

/* Token number i of the request. c as above; unused when temperature is 0. */
int moe_sampler_draw(const struct moe_sampler_options *o, uint64_t i, const float *logits,
    size_t n, struct moe_candidate *c, uint32_t *id, struct moe_err *e);

#endif
