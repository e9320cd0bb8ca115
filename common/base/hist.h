/* SPDX-License-Identifier: Apache-2.0 */
/*
 * High dynamic range histogram of unsigned values (HdrHistogram's layout:
 * buckets of powers of two, cut into equal parts), relative error at most
 * 10^-digits. Values above the top are counted in the last bucket and flagged.
 * _new/_free own heap; a histogram belongs to one thread, merge to combine.
 */
#ifndef MOE_BASE_HIST_H
#define MOE_BASE_HIST_H

#include <stdbool.h>
#include <stdint.h>

struct moe_hist;

/* Values 0..top (top >= 2), digits 1..5 significant. NULL: no memory or bad range. */
struct moe_hist *moe_hist_new(uint64_t top, int digits);
void moe_hist_free(struct moe_hist *h);

void moe_hist_add(struct moe_hist *h, uint64_t value, uint64_t times);

/* Add all of b to a; false (a unchanged) unless top and digits are the same. */
bool moe_hist_merge(struct moe_hist *a, const struct moe_hist *b);

uint64_t moe_hist_count(const struct moe_hist *h);
bool moe_hist_saturated(const struct moe_hist *h);

/*
 * Smallest value with at least q (0..1) of the counts at or below its bucket:
 * the highest value of that bucket, never above the exact maximum. 0 if empty.
 */
uint64_t moe_hist_quantile(const struct moe_hist *h, double q);
uint64_t moe_hist_min(const struct moe_hist *h);
uint64_t moe_hist_max(const struct moe_hist *h);
double moe_hist_mean(const struct moe_hist *h);

#endif
