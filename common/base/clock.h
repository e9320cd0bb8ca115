/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time. Cannot fail. */
#ifndef MOE_BASE_CLOCK_H
#define MOE_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t moe_clock_ns(void);

/* Processor time of the process in nanoseconds. */
uint64_t moe_clock_cpu_ns(void);

#endif
