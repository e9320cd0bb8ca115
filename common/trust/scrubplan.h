/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which part of a model is read next, when not all of it can be read at once:
 * what was wrong before, then what has not been read for a whole period, hot
 * parts before others, then hot parts that are due, then the oldest. Knows no
 * files and no clock, so that years can be tried in a test.
 *
 * The units are the caller's; the plan owns only its order.
 */
#ifndef MOE_TRUST_SCRUBPLAN_H
#define MOE_TRUST_SCRUBPLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define MOE_SCRUBPLAN_NONE SIZE_MAX
#define MOE_SCRUBPLAN_WIDEN 16      /* neighbours on each side that a hit brings forward */
#define MOE_SCRUBPLAN_HOT 7         /* hot parts are due after a seventh of the period */

struct moe_scrubplan_unit {
    int64_t last;           /* when it was last found well, in seconds; 0: never */
    size_t group;           /* units of one file, neighbours in the array, share it */
    bool hot;
    bool suspect;           /* was not well when it was last read */
    bool taken;             /* has been handed out, the plan's */
};

struct moe_scrubplan {
    struct moe_scrubplan_unit *u;
    size_t n;
    size_t *order, at;
    size_t *soon, n_soon, at_soon;      /* brought forward by hits */
};

#define MOE_SCRUBPLAN_INIT { NULL, 0, NULL, 0, NULL, 0, 0 }

/* period in seconds, > 0. Errors: MOE_ENOMEM. */
int moe_scrubplan_init(struct moe_scrubplan *p, struct moe_scrubplan_unit *u, size_t n,
    int64_t period, int64_t now, struct moe_err *e);

/* The next unit, each once; MOE_SCRUBPLAN_NONE after the last. */
size_t moe_scrubplan_next(struct moe_scrubplan *p);

/* Unit i was read. Not well brings its neighbours forward. */
void moe_scrubplan_tell(struct moe_scrubplan *p, size_t i, bool well, int64_t now);

void moe_scrubplan_fini(struct moe_scrubplan *p);

#endif
