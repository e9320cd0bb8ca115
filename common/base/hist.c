/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the buckets of a high dynamic range histogram (layout after Gil Tene,
 * HdrHistogram, with 1 as the lowest discernible value).
 *
 * Bucket 0 holds 0..size-1 one by one; each further bucket covers twice the
 * range of the one before with the same number of slots, of which only the
 * upper half is new. So a value's slot is its leading bits.
 */
#include <math.h>
#include <stdlib.h>

#include "common/base/hist.h"

struct moe_hist {
    uint64_t top;
    int digits;
    int half_bits;              /* log2 of half the slots of a bucket */
    size_t n;                   /* slots in all */
    uint64_t count, min, max;
    double sum;
    bool saturated;
    uint64_t slot[];
};

/* Bits of v, 0 for 0. */
static int
bits(uint64_t v)
{
    int n = 0;

    for (; v != 0; v >>= 1)
        n++;
    return n;
}

static size_t
slot_of(int half_bits, uint64_t v)
{
    int bucket = bits(v | (((uint64_t)2 << half_bits) - 1)) - (half_bits + 1);

    return ((size_t)bucket << half_bits) + (size_t)(v >> bucket);
}

/* The highest value that falls into slot i. */
static uint64_t
highest(const struct moe_hist *h, size_t i)
{
    int bucket = (int)(i >> h->half_bits) - 1;
    uint64_t low;

    if (bucket < 0)
        bucket = 0;
    low = (i - ((size_t)bucket << h->half_bits)) << bucket;
    return low + (((uint64_t)1 << bucket) - 1);
}

struct moe_hist *
moe_hist_new(uint64_t top, int digits)
{
    struct moe_hist *h;
    uint64_t resolution = 2;
    int half_bits;
    size_t n;

    if (top < 2 || digits < 1 || digits > 5)
        return NULL;
    for (int i = 0; i < digits; i++)
        resolution *= 10;
    half_bits = bits(resolution - 1) - 1;
    n = slot_of(half_bits, top) + 1;
    if ((h = calloc(1, sizeof(*h) + n * sizeof(h->slot[0]))) == NULL)
        return NULL;
    h->top = top;
    h->digits = digits;
    h->half_bits = half_bits;
    h->n = n;
    h->min = UINT64_MAX;
    return h;
}

void
moe_hist_free(struct moe_hist *h)
{
    free(h);
}

void
moe_hist_add(struct moe_hist *h, uint64_t value, uint64_t times)
{
    if (times == 0)
        return;
    if (value > h->top) {
        value = h->top;
        h->saturated = true;
    }
    h->slot[slot_of(h->half_bits, value)] += times;
    h->count += times;
    h->sum += (double)value * (double)times;
    if (value < h->min)
        h->min = value;
    if (value > h->max)
        h->max = value;
}

bool
moe_hist_merge(struct moe_hist *a, const struct moe_hist *b)
{
    if (a->top != b->top || a->digits != b->digits)
        return false;
    for (size_t i = 0; i < a->n; i++)
        a->slot[i] += b->slot[i];
    a->count += b->count;
    a->sum += b->sum;
    a->min = b->min < a->min ? b->min : a->min;
    a->max = b->max > a->max ? b->max : a->max;
    a->saturated = a->saturated || b->saturated;
    return true;
}

uint64_t
moe_hist_count(const struct moe_hist *h)
{
    return h->count;
}

bool
moe_hist_saturated(const struct moe_hist *h)
{
    return h->saturated;
}

uint64_t
moe_hist_quantile(const struct moe_hist *h, double q)
{
    uint64_t want, seen = 0;
    double exact;

    if (h->count == 0)
        return 0;
    exact = ceil(q * (double)h->count);
    want = exact < 1 ? 1 : exact >= (double)h->count ? h->count : (uint64_t)exact;
    for (size_t i = 0; i < h->n; i++)
        if ((seen += h->slot[i]) >= want)
            return highest(h, i) < h->max ? highest(h, i) : h->max;
    return h->max;
}

uint64_t
moe_hist_min(const struct moe_hist *h)
{
    return h->count == 0 ? 0 : h->min;
}

uint64_t
moe_hist_max(const struct moe_hist *h)
{
    return h->max;
}

double
moe_hist_mean(const struct moe_hist *h)
{
    return h->count == 0 ? 0 : h->sum / (double)h->count;
}
