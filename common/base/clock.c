/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns reading the clocks.
 */
#include <time.h>

#include "common/base/clock.h"

static uint64_t
read_clock(clockid_t id)
{
    struct timespec t = { 0, 0 };

    (void)clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t
moe_clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t
moe_clock_cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}
