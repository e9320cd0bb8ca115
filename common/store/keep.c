/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the rules of retention. */
#include "common/base/num.h"
#include "common/store/keep.h"

/* The save with the lowest value of the pair, the newest of equals; n if none has a number. */
static size_t
best_of(const struct moe_keep_save *v, size_t n)
{
    size_t best = n;
    double lowest = 0, x;

    for (size_t i = 0; i < n; i++)
        if (v[i].value != NULL && moe_num_real(v[i].value, -1e300, 1e300, "", &x, NULL) == 0 &&
            (best == n || x <= lowest)) {
            best = i;
            lowest = x;
        }
    return best;
}

void
moe_keep_judge(const struct moe_keep *k, struct moe_keep_save *v, size_t n)
{
    size_t best = k->best != NULL ? best_of(v, n) : n;

    for (size_t i = 0; i < n; i++) {
        struct moe_keep_save *s = &v[i];

        s->why = s->latest || i == n - 1                               ? MOE_KEEP_LATEST
            : s->tagged                                                ? MOE_KEEP_TAG
            : k->last > 0 && n - i <= k->last                          ? MOE_KEEP_LAST
            : k->every > 0 && s->id % k->every == 0                    ? MOE_KEEP_EVERY
            : k->within > 0 && (s->time >= k->now || k->now - s->time <= k->within)
                                                                       ? MOE_KEEP_WITHIN
            : i == best                                                ? MOE_KEEP_BEST
                                                                       : MOE_KEEP_NO;
    }
}

const char *
moe_keep_word(enum moe_keep_why why)
{
    switch (why) {
    case MOE_KEEP_LATEST: return "latest";
    case MOE_KEEP_TAG: return "tag";
    case MOE_KEEP_LAST: return "keep-last";
    case MOE_KEEP_EVERY: return "keep-every";
    case MOE_KEEP_WITHIN: return "keep-within";
    case MOE_KEEP_BEST: return "keep-best";
    case MOE_KEEP_NO: break;
    }
    return "no rule";
}
