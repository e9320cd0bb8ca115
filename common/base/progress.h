/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One progress line on stderr: "WHAT  42 %  1.2 GB/s  0:07 left", only when
 * stderr is a terminal and the work has lasted a second; redrawn at most ten
 * times a second and wiped at the end. Safe from several threads.
 */
#ifndef MOE_BASE_PROGRESS_H
#define MOE_BASE_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct moe_progress {
    const char *what;           /* borrowed */
    uint64_t total;             /* bytes; 0 = unknown */
    _Atomic uint64_t done;      /* bytes */
    _Atomic uint64_t drawn_ns;  /* when the line was last drawn */
    uint64_t start_ns;
    bool on;
};

/* quiet: never draw. */
void moe_progress_start(struct moe_progress *p, const char *what, uint64_t total, bool quiet);
void moe_progress_add(struct moe_progress *p, uint64_t bytes);
void moe_progress_end(struct moe_progress *p);

#endif
