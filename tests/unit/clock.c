/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks go forward and count nanoseconds. */
#include <time.h>

#include "common/base/clock.h"
#include "tests/tap.h"

int
main(void)
{
    struct timespec nap = { 0, 20000000 };
    uint64_t wall = moe_clock_ns(), cpu = moe_clock_cpu_ns();

    (void)nanosleep(&nap, NULL);
    tap_ok(moe_clock_ns() - wall >= 20000000, "a nap of 20 ms takes that long");
    tap_ok(moe_clock_cpu_ns() >= cpu, "processor time does not go back");
    tap_ok(cpu > 0, "processor time was used");
    return tap_done();
}
