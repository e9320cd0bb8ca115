/* SPDX-License-Identifier: Apache-2.0 */
/* The alphabet of bytes: 256 different printable characters, and back. */
#include <string.h>

#include "common/base/utf8.h"
#include "common/engine/bytelevel.h"
#include "tests/tap.h"

int
main(void)
{
    struct moe_buf b = MOE_BUF_INIT, back = MOE_BUF_INIT;
    char all[256];
    bool seen[0x144] = { false };
    int wrong = 0;
    uint32_t c = 0;

    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    moe_bytelevel_map(all, 256, &b);
    for (size_t at = 0, k; at < b.len; at += k) {
        k = moe_utf8_get(b.p + at, b.len - at, &c);
        if (k == 0 || c >= 0x144 || seen[c])
            break;
        seen[c] = true;
    }
    for (uint32_t i = 0; i < 0x144; i++)
        wrong += seen[i] != ((i > 32 && i < 127) || (i > 160 && i != 173 && i < 256) || i >= 256);
    tap_is_int(wrong, 0, "the characters are those of the alphabet");
    moe_bytelevel_unmap(b.p, b.len, &back);
    tap_ok(back.len == 256 && memcmp(back.p, all, 256) == 0, "all bytes come back");
    moe_buf_clear(&back);
    moe_buf_str(&back, "x");
    moe_bytelevel_unmap("\xc4\xa0 y", 4, &back);
    tap_is_str(back.p, "x\xc4\xa0 y", "text with another character stays as it is");
    moe_buf_fini(&b);
    moe_buf_fini(&back);
    return tap_done();
}
