/* SPDX-License-Identifier: Apache-2.0 */
/* Base64: the vectors of RFC 4648, section 10, and texts that are none. */
#include <string.h>

#include "common/trust/base64.h"
#include "tests/tap.h"

static const char *const good[][2] = {
    { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foo", "Zm9v" }, { "foob", "Zm9vYg==" },
    { "fooba", "Zm9vYmE=" }, { "foobar", "Zm9vYmFy" },
};

static const char *const bad[] = { "Z", "Zg", "Zg=", "Zg==Zg==", "Zh==", "Zm9=", "Zm9v\n", "Z===",
    "====", "Zm 9", "Zm9*", "=m9v" };

int
main(void)
{
    struct moe_buf b = MOE_BUF_INIT;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        moe_buf_clear(&b);
        moe_base64_put(&b, good[i][0], strlen(good[i][0]));
        tap_is_str(b.p != NULL ? b.p : "", good[i][1], "put \"%s\"", good[i][0]);
        moe_buf_clear(&b);
        tap_ok(moe_base64_get(&b, good[i][1], strlen(good[i][1])), "get \"%s\"", good[i][1]);
        tap_is_str(b.p != NULL ? b.p : "", good[i][0], "and it is that");
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        moe_buf_clear(&b);
        tap_ok(!moe_base64_get(&b, bad[i], strlen(bad[i])), "text %zu is refused", i);
    }
    moe_buf_clear(&b);
    tap_ok(moe_base64_get(&b, "-_-_", 4) && memcmp(b.p, "\xfb\xff\xbf", 3) == 0, "URL-safe");
    moe_buf_fini(&b);
    return tap_done();
}
