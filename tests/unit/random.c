/* SPDX-License-Identifier: Apache-2.0 */
/* The generator against its published output. */
#include "common/base/random.h"
#include "tests/tap.h"

int
main(void)
{
    /* First outputs for seed 1234567, as published with many implementations. */
    static const uint64_t want[5] = { UINT64_C(6457827717110365317),
        UINT64_C(3203168211198807973), UINT64_C(9817491932198370423),
        UINT64_C(4593380528125082431), UINT64_C(16408922859458223821) };

    for (uint64_t i = 0; i < 5; i++)
        tap_ok(moe_random_bits(1234567, i) == want[i], "SplitMix64 output %d", (int)i);
    tap_ok(moe_random_uniform(1234567, 0) == (double)(want[0] >> 11) / 9007199254740992.0,
        "as a part of one");
    return tap_done();
}
