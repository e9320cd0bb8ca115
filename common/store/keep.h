/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which saves of a store stay: those that any of the rules names. Only decides;
 * reads nothing but the list it is given.
 */
#ifndef MOE_STORE_KEEP_H
#define MOE_STORE_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The rules; 0 or NULL: not given. */
struct moe_keep {
    uint64_t last;              /* the newest so many */
    uint64_t every;             /* those whose number is a multiple of this */
    uint64_t within;            /* made at most so many seconds before now */
    uint64_t now;
    const char *best;           /* the pair whose lowest value counts */
};

/* Why a save stays; the first that holds. */
enum moe_keep_why {
    MOE_KEEP_NO, MOE_KEEP_LATEST, MOE_KEEP_TAG, MOE_KEEP_LAST, MOE_KEEP_EVERY, MOE_KEEP_WITHIN,
    MOE_KEEP_BEST
};

struct moe_keep_save {
    uint64_t id, time;
    bool latest, tagged;
    const char *value;          /* of the pair `best`, or NULL */
    enum moe_keep_why why;      /* set by moe_keep_judge() */
};

/* Judge n saves, ascending by id. The one with the highest number always stays. */
void moe_keep_judge(const struct moe_keep *k, struct moe_keep_save *v, size_t n);

/* A word for it: "latest", "tag" ...; never NULL. */
const char *moe_keep_word(enum moe_keep_why why);

#endif
