/* SPDX-License-Identifier: Apache-2.0 */
/* Growing buffers: content, terminator, remembered failure. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "tests/tap.h"

int
main(void)
{
    struct moe_buf b = MOE_BUF_INIT;
    char *s;

    for (int i = 0; i < 1000; i++)
        moe_buf_fmt(&b, "%d,", i % 10);
    tap_is_int((long long)b.len, 2000, "length");
    tap_ok(memcmp(b.p, "0,1,2,3,4,5,6,7,8,9,0,", 22) == 0, "content");
    tap_is_int(b.p[b.len], 0, "terminated");
    s = moe_buf_take(&b);
    tap_ok(s != NULL && b.p == NULL, "taken");
    free(s);
    s = moe_buf_take(&b);
    tap_is_str(s, "", "an empty buffer gives an empty string");
    free(s);
    tap_ok(moe_buf_room(&b, SIZE_MAX - 10) == NULL && b.bad, "too much is remembered");
    moe_buf_str(&b, "x");
    tap_is_int((long long)b.len, 0, "nothing is added after a failure");
    moe_buf_fini(&b);
    return tap_done();
}
