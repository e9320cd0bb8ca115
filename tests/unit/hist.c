/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms. The bucket bounds and quantiles come from hdrhistogram 0.10 (Python). */
#include "common/base/hist.h"
#include "tests/tap.h"

static const uint64_t values[] = { 0, 1, 9, 10, 31, 32, 33, 1000, 2047, 2048, 2049, 4095, 4096,
    65535, 65537, 1000000, 99999999 };

enum { N = sizeof(values) / sizeof(values[0]) };

static const struct {
    int digits;
    uint64_t top, highest[N];
} layouts[] = {
    { 1, 3600000000,
        { 0, 1, 9, 10, 31, 33, 33, 1023, 2047, 2175, 2175, 4095, 4351, 65535, 69631, 1015807,
            100663295 } },
    { 2, 3600000000,
        { 0, 1, 9, 10, 31, 32, 33, 1003, 2047, 2063, 2063, 4095, 4127, 65535, 66047, 1003519,
            100139007 } },
    { 3, 3600000000,
        { 0, 1, 9, 10, 31, 32, 33, 1000, 2047, 2049, 2049, 4095, 4099, 65535, 65599, 1000447,
            100007935 } },
    { 5, 4000000000,
        { 0, 1, 9, 10, 31, 32, 33, 1000, 2047, 2048, 2049, 4095, 4096, 65535, 65537, 1000003,
            100000255 } },
};

static void
bounds(void)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
        for (int k = 0; k < N; k++) {
            struct moe_hist *h = moe_hist_new(layouts[i].top, layouts[i].digits);

            moe_hist_add(h, values[k], 1);
            moe_hist_add(h, layouts[i].top, 1);
            tap_is_int((long long)moe_hist_quantile(h, 0.5), (long long)layouts[i].highest[k],
                "%d digits: bucket of %llu", layouts[i].digits, (unsigned long long)values[k]);
            moe_hist_free(h);
        }
}

/* 10,000 values of a known generator into one histogram, or into two that are merged. */
static void
quantiles(bool split)
{
    static const struct {
        double q;
        long long want;
    } t[] = { { 0.01, 163071 }, { 0.25, 4192255 }, { 0.5, 8396799 }, { 0.9, 15089663 },
        { 0.99, 16613375 }, { 0.999, 16760831 } };
    struct moe_hist *a = moe_hist_new(3600000000, 3), *b = moe_hist_new(3600000000, 3);
    uint64_t x = 12345, min = UINT64_MAX, max = 0, sum = 0;

    for (int i = 0; i < 10000; i++) {
        uint64_t v;

        x = (x * 1103515245 + 12345) % 2147483648;
        v = x >> 7;
        min = v < min ? v : min;
        max = v > max ? v : max;
        sum += v;
        moe_hist_add(split && i % 3 == 0 ? b : a, v, 1);
    }
    if (split)
        tap_ok(moe_hist_merge(a, b), "two of a kind merge");
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
        tap_is_int((long long)moe_hist_quantile(a, t[i].q), t[i].want, "quantile %g%s", t[i].q,
            split ? ", merged" : "");
    tap_is_int((long long)moe_hist_quantile(a, 1), (long long)max, "quantile 1 is the maximum");
    tap_is_int((long long)moe_hist_count(a), 10000, "count");
    tap_is_int((long long)moe_hist_min(a), (long long)min, "minimum is exact");
    tap_is_int((long long)moe_hist_max(a), (long long)max, "maximum is exact");
    tap_ok(moe_hist_mean(a) == (double)sum / 10000, "mean is exact");
    tap_ok(!moe_hist_saturated(a), "not saturated");
    moe_hist_free(a);
    moe_hist_free(b);
}

static void
edges(void)
{
    struct moe_hist *h = moe_hist_new(1000, 2), *other = moe_hist_new(1000, 3);

    tap_ok(moe_hist_new(1, 2) == NULL, "top below 2");
    tap_ok(moe_hist_new(10, 0) == NULL && moe_hist_new(10, 6) == NULL, "digits out of range");
    tap_is_int((long long)moe_hist_quantile(h, 0.5), 0, "empty: quantile");
    tap_is_int((long long)moe_hist_min(h), 0, "empty: minimum");
    tap_ok(moe_hist_mean(h) == 0, "empty: mean");
    moe_hist_add(h, 500, 0);
    tap_is_int((long long)moe_hist_count(h), 0, "zero times adds nothing");
    tap_ok(!moe_hist_merge(h, other), "other digits do not merge");
    moe_hist_add(h, 5, 3);
    moe_hist_add(h, 1000, 1);
    tap_ok(!moe_hist_saturated(h), "the top itself fits");
    moe_hist_add(h, 1001, 1);
    tap_ok(moe_hist_saturated(h), "above the top is flagged");
    tap_is_int((long long)moe_hist_max(h), 1000, "and counted at the top");
    tap_is_int((long long)moe_hist_quantile(h, 0.6), 5, "quantile 0.6 of 5 5 5 1000 1000");
    tap_is_int((long long)moe_hist_quantile(h, 0.61), 1000, "quantile 0.61");
    tap_is_int((long long)moe_hist_quantile(h, -1), 5, "quantile below 0 is the minimum's");
    moe_hist_free(h);
    moe_hist_free(other);
}

int
main(void)
{
    bounds();
    quantiles(false);
    quantiles(true);
    edges();
    return tap_done();
}
