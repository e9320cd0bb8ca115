/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the stop flag. Installs no handler.
 */
#include <stdatomic.h>
#include <string.h>

#include "common/base/stop.h"

/* The one mutable variable of the library: a signal handler has no other way in. */
static atomic_int asked;

void
moe_stop_set(int sig)
{
    atomic_store(&asked, sig);
}

int
moe_stop_signal(void)
{
    return atomic_load(&asked);
}

int
moe_stop_check(struct moe_err *e)
{
    int sig = atomic_load_explicit(&asked, memory_order_relaxed);
    const char *name;

    if (sig == 0)
        return 0;
    name = sigabbrev_np(sig);
    return moe_err_set(e, MOE_ESTOP, "stopped by SIG%s", name == NULL ? "?" : name);
}
