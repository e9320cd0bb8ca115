/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the choice of a token from logits. Knows nothing of sequences, stop
 * conditions or text.
 */
#include <math.h>
#include <stdlib.h>

#include "common/base/random.h"
#include "common/engine/sampler.h"

int
moe_sampler_check(const struct moe_sampler_options *o, struct moe_err *e)
{
    if (!(o->temperature >= 0 && o->temperature <= 1e6))
        return moe_err_set(e, MOE_EUSAGE, "temperature: %g is not in 0 to 1e6", o->temperature);
    if (o->top_k < 0)
        return moe_err_set(e, MOE_EUSAGE, "top_k: %lld is negative", (long long)o->top_k);
    if (!(o->top_p > 0 && o->top_p <= 1))
        return moe_err_set(e, MOE_EUSAGE, "top_p: %g is not in (0, 1]", o->top_p);
    if (!(o->min_p >= 0 && o->min_p <= 1))
        return moe_err_set(e, MOE_EUSAGE, "min_p: %g is not in 0 to 1", o->min_p);
    if (!(o->repetition >= 0.01 && o->repetition <= 100))
        return moe_err_set(e, MOE_EUSAGE, "repetition penalty: %g is not in 0.01 to 100",
            o->repetition);
    if (!(fabs(o->presence) <= 100))
        return moe_err_set(e, MOE_EUSAGE, "presence penalty: %g is not in -100 to 100",
            o->presence);
    if (!(fabs(o->frequency) <= 100))
        return moe_err_set(e, MOE_EUSAGE, "frequency penalty: %g is not in -100 to 100",
            o->frequency);
    for (size_t i = 0; i < o->n_bias; i++) {
        if (!(fabs((double)o->bias[i].bias) <= 1e6))
            return moe_err_set(e, MOE_EUSAGE, "bias of token %lu: %g is not in -1e6 to 1e6",
                (unsigned long)o->bias[i].id, (double)o->bias[i].bias);
    }
    return 0;
}

/* Ascending logits, ascending ids: top_p drops from the front, as the reference does. */
static int
by_logit(const void *a, const void *b)
{
    const struct moe_candidate *x = a, *y = b;

    if (x->logit != y->logit)
        return x->logit < y->logit ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The k-th largest logit of c[0..n), 1 <= k <= n, by repeated partition. */
static float
kth_largest(float *x, size_t n, size_t k)
{
    size_t lo = 0, hi = n;
    size_t want = n - k;    /* place in ascending order */

    while (hi - lo > 1) {
        float pivot = x[lo + (hi - lo) / 2];
        size_t less = lo, i = lo, more = hi;

        while (i < more) {
            float v = x[i];

            if (v < pivot) {
                x[i++] = x[less];
                x[less++] = v;
            } else if (v > pivot) {
                x[i] = x[--more];
                x[more] = v;
            } else {
                i++;
            }
        }
        if (want < less)
            hi = less;
        else if (want >= more)
            lo = more;
        else
            return pivot;
    }
    return x[lo];   /* NOLINT(clang-analyzer-core.uninitialized.UndefReturn): n >= 1 */
}

/* p from the logits of c[0..n), which sum to 1. */
static void
softmax(struct moe_candidate *c, size_t n)
{
    float top = c[0].logit;
    double sum = 0;

    for (size_t i = 1; i < n; i++)
        top = c[i].logit > top ? c[i].logit : top;
    for (size_t i = 0; i < n; i++)
        sum += c[i].p = exp((double)c[i].logit - (double)top);
    for (size_t i = 0; i < n; i++)
        c[i].p /= sum;
}

static int
keep_top_k(struct moe_candidate *c, size_t *n, size_t k, struct moe_err *e)
{
    float *x, least;
    size_t kept = 0;

    if (k >= *n)
        return 0;
    if ((x = malloc(*n * sizeof(*x))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "sampling: out of memory");
    for (size_t i = 0; i < *n; i++)
        x[i] = c[i].logit;
    least = kth_largest(x, *n, k);
    free(x);
    for (size_t i = 0; i < *n; i++) {
        if (c[i].logit >= least)
            c[kept++] = c[i];
    }
    *n = kept;
    return 0;
}

static void
keep_top_p(struct moe_candidate *c, size_t *n, double top_p)
{
    size_t drop = 0, kept = 0;
    double sum = 0;

    qsort(c, *n, sizeof(*c), by_logit);
    softmax(c, *n);
    while (drop + 1 < *n && (sum += c[drop].p) <= 1 - top_p)
        drop++;
    for (size_t i = drop; i < *n; i++)
        c[kept++] = c[i];
    *n = kept;
}

static void
keep_min_p(struct moe_candidate *c, size_t *n, double min_p)
{
    double most = 0;
    size_t kept = 0;

    softmax(c, *n);
    for (size_t i = 0; i < *n; i++)
        most = c[i].p > most ? c[i].p : most;
    for (size_t i = 0; i < *n; i++) {
        if (c[i].p >= min_p * most)
            c[kept++] = c[i];
    }
    *n = kept;
}

int
moe_sampler_filter(const struct moe_sampler_options *o, const float *logits, size_t n,
    struct moe_candidate *c, size_t *kept, struct moe_err *e)
{
    size_t k = 0;
    int rc;

    for (size_t i = 0; i < n; i++) {
        float v = logits[i] / (float)o->temperature;

        if (v > -INFINITY)
            c[k++] = (struct moe_candidate){ (uint32_t)i, v, 0 };
        if (isnan(v) || v == INFINITY)
            return moe_err_set(e, MOE_EFORMAT, "logit %zu is not finite", i);
    }
    if (k == 0)
        return moe_err_set(e, MOE_EFORMAT, "every logit is minus infinity");
    if (o->top_k > 0 && (rc = keep_top_k(c, &k, (size_t)o->top_k, e)) != 0)
        return rc;
    if (o->top_p < 1)
        keep_top_p(c, &k, o->top_p);
    if (o->min_p > 0)
        keep_min_p(c, &k, o->min_p);
    softmax(c, k);
    *kept = k;
    return 0;
}

static int
largest(const float *logits, size_t n, uint32_t *id, struct moe_err *e)
{
    size_t best = n;

    for (size_t i = 0; i < n; i++) {
        if (isnan(logits[i]))
            return moe_err_set(e, MOE_EFORMAT, "logit %zu is not a number", i);
        if (best == n || logits[i] > logits[best])
            best = i;
    }
    if (best == n)
        return moe_err_set(e, MOE_EFORMAT, "there are no logits");
    *id = (uint32_t)best;
    return 0;
}

int
moe_sampler_draw(const struct moe_sampler_options *o, uint64_t i, const float *logits,
    size_t n, struct moe_candidate *c, uint32_t *id, struct moe_err *e)
{
    double u, sum = 0;
    size_t kept, at = 0;
    int rc;

    if (o->temperature == 0)
        return largest(logits, n, id, e);
    if ((rc = moe_sampler_filter(o, logits, n, c, &kept, e)) != 0)
        return rc;
    u = moe_random_uniform(o->seed, i);
    while (at + 1 < kept && (sum += c[at].p) <= u)
        at++;
    *id = c[at].id;
    return 0;
}
