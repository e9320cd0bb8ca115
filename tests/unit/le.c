/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/le.h"
#include "tests/tap.h"

int
main(void)
{
    static const unsigned char want[] = { 0xEE, 8, 7, 6, 5, 4, 3, 2, 1, 0xEE };
    unsigned char p[10];

    for (int i = 0; i < 10; i++)
        p[i] = 0xEE;
    moe_le_put64(p + 1, UINT64_C(0x0102030405060708));
    tap_is_mem(p, want, 10, "eight bytes, the lowest first, and no more");
    tap_ok(moe_le_get64(p + 1) == UINT64_C(0x0102030405060708), "read back");
    tap_ok(moe_le_get32(p + 1) == 0x05060708 && moe_le_get16(p + 8) == 0xEE01, "parts of it");
    moe_le_put32(p + 1, UINT32_MAX);
    moe_le_put16(p + 5, 0x1234);
    tap_ok(moe_le_get64(p + 1) == UINT64_C(0x01021234FFFFFFFF), "four and two bytes");
    return tap_done();
}
