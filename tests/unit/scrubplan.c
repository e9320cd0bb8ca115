/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a scrub over a simulated clock: what comes first, what a hit
 * brings forward, and that over a hundred nights no part waits longer than the
 * period whenever the nights are long enough for that.
 */
#include <string.h>

#include "common/trust/scrubplan.h"
#include "tests/tap.h"

#define DAY 86400
#define WEEK (7 * DAY)
#define N 1000

static struct moe_scrubplan_unit u[N];

static void
ranks(void)
{
    static const size_t want[] = { 4, 2, 0, 3, 1, 5 };
    struct moe_scrubplan p;
    const int64_t now = 100 * DAY;

    memset(u, 0, sizeof(u));
    u[0].last = now - 8 * DAY;                      /* overdue */
    u[1].last = now - 6 * DAY;                      /* oldest of the rest */
    u[2].hot = true;                                /* never read */
    u[3].hot = true, u[3].last = now - 2 * DAY;     /* due */
    u[4].suspect = true, u[4].last = now - 1;
    u[5].hot = true, u[5].last = now - 60;          /* not due */
    tap_is_int(moe_scrubplan_init(&p, u, 6, WEEK, now, NULL), 0, "a plan");
    for (size_t i = 0; i < 6; i++)
        tap_is_int((long long)moe_scrubplan_next(&p), (long long)want[i], "place %zu", i);
    tap_ok(moe_scrubplan_next(&p) == MOE_SCRUBPLAN_NONE, "and no more");
    moe_scrubplan_fini(&p);
    u[0].last = now + DAY;
    u[0].suspect = false;
    u[1].last = now - WEEK;
    moe_scrubplan_init(&p, u, 2, WEEK, now, NULL);
    tap_is_int((long long)moe_scrubplan_next(&p), 0, "a time in the future is none");
    moe_scrubplan_fini(&p);
}

static void
widens(void)
{
    struct moe_scrubplan p;
    size_t i, seen = 0;
    bool once = true, near = true;

    memset(u, 0, sizeof(u));
    for (i = 0; i < 100; i++)
        u[i].group = i >= 40;
    u[45].suspect = true;
    moe_scrubplan_init(&p, u, 100, WEEK, DAY, NULL);
    tap_is_int((long long)moe_scrubplan_next(&p), 45, "the suspect first");
    moe_scrubplan_tell(&p, 45, false, DAY);
    for (int k = 0; k < 21; k++) {      /* 40 .. 44 and 46 .. 61 */
        i = moe_scrubplan_next(&p);
        near = near && i >= 40 && i <= 61;
        moe_scrubplan_tell(&p, i, true, DAY);
        seen++;
    }
    tap_ok(near, "then its neighbours of the same group");
    tap_is_int((long long)moe_scrubplan_next(&p), 0, "then the others");
    for (seen += 2; (i = moe_scrubplan_next(&p)) != MOE_SCRUBPLAN_NONE; seen++)
        once = once && i < 100 && !(i >= 40 && i <= 61);
    tap_ok(once && seen == 100, "each once: %zu", seen);
    moe_scrubplan_fini(&p);
}

/* Nights that read `night` units of N, `hot` of them hot: the longest wait of each kind in days. */
static void
nights(size_t night, size_t hot, int *all, int *of_hot)
{
    uint32_t x = 1;

    memset(u, 0, sizeof(u));
    for (size_t i = 0; i < N; i++)
        u[i].hot = i % (N / hot) == 0;
    *all = *of_hot = 0;
    for (int day = 1; day <= 100; day++) {
        int64_t now = (int64_t)day * DAY + (x = x * 1664525 + 1013904223) % 3600;
        struct moe_scrubplan p;
        moe_scrubplan_init(&p, u, N, WEEK, now, NULL);
        for (size_t k = 0; k < night; k++) {
            size_t i = moe_scrubplan_next(&p);
            if (i == MOE_SCRUBPLAN_NONE)
                break;
            moe_scrubplan_tell(&p, i, true, now + (int64_t)k);
        }
        moe_scrubplan_fini(&p);
        for (size_t i = 0; i < N && day > 14; i++) {
            int wait = day - (int)(u[i].last / DAY);
            *all = wait > *all ? wait : *all;
            if (u[i].hot)
                *of_hot = wait > *of_hot ? wait : *of_hot;
        }
    }
}

int
main(void)
{
    int all, hot;

    ranks();
    widens();
    nights(N, 10, &all, &hot);
    tap_ok(all == 0 && hot == 0, "long nights: everything each night");
    nights(N / 5, 20, &all, &hot);
    tap_ok(all <= 7, "a fifth a night: nothing waits longer than a week: %d", all);
    tap_ok(hot <= 2, "hot parts hardly more than a day: %d", hot);
    nights(N / 4, 100, &all, &hot);
    tap_ok(all <= 7 && hot <= 2, "a tenth of it hot: %d, %d", all, hot);
    nights(N / 10, 50, &all, &hot);
    tap_ok(all <= 11, "nights that are too short: all in turn, none starves: %d", all);
    return tap_done();
}
