/* SPDX-License-Identifier: Apache-2.0 */
/* The stop flag. */
#include <signal.h>

#include "common/base/stop.h"
#include "tests/tap.h"

int
main(void)
{
    struct moe_err e = { 0, "" };

    tap_is_int(moe_stop_check(&e), 0, "nothing was asked");
    moe_stop_set(SIGINT);
    tap_is_int(moe_stop_signal(), SIGINT, "the signal is remembered");
    tap_is_int(moe_stop_check(&e), MOE_ESTOP, "work has to end");
    tap_is_str(e.text, "stopped by SIGINT", "and says why");
    tap_is_int(moe_stop_check(NULL), MOE_ESTOP, "without a place for words, too");
    moe_stop_set(0);
    tap_is_int(moe_stop_check(&e), 0, "cleared");
    return tap_done();
}
