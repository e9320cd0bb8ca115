/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of code points against a table of them. */
#include <string.h>

#include "common/engine/codeset.h"
#include "tests/tap.h"

#define N 64

int
main(void)
{
    struct moe_codeset s = MOE_CODESET_INIT, b = MOE_CODESET_INIT;
    bool in[N] = { false }, same = true, apart = true;
    unsigned x = 1;

    for (int round = 0; round < 200; round++) {
        uint32_t lo, hi;

        x = x * 1103515245 + 12345;
        lo = x >> 16 & 63;
        hi = lo + (x >> 24 & 7);
        hi = hi < N ? hi : N - 1;
        if (round % 40 == 0) {
            moe_codeset_fini(&s);
            memset(in, 0, sizeof(in));
        }
        (void)moe_codeset_add(&s, lo, hi, NULL);
        for (uint32_t c = lo; c <= hi; c++)
            in[c] = true;
        for (uint32_t c = 0; c < N; c++)
            same = same && moe_codeset_has(&s, c) == in[c];
        for (size_t i = 1; i < s.n; i++)
            apart = apart && s.r[i].lo > s.r[i - 1].hi + 1;
    }
    tap_ok(same, "what was added is there, nothing else");
    tap_ok(apart, "ranges neither touch nor overlap");
    (void)moe_codeset_invert(&s, NULL);
    for (uint32_t c = 0; c < N; c++)
        same = same && moe_codeset_has(&s, c) == !in[c];
    tap_ok(same && moe_codeset_has(&s, 0x10FFFF) && !moe_codeset_has(&s, 0xD800)
        && !moe_codeset_has(&s, 0xDFFF), "the others, but no surrogate");
    (void)moe_codeset_add(&b, 0, 0x10FFFF, NULL);
    tap_ok(b.n == 2 && !moe_codeset_has(&b, 0xDBFF) && moe_codeset_has(&b, 0xE000),
        "all is all but surrogates");
    (void)moe_codeset_invert(&b, NULL);
    tap_is_int((long long)b.n, 0, "inverted: nothing");
    (void)moe_codeset_add(&b, 0xD900, 0xDA00, NULL);
    tap_is_int((long long)b.n, 0, "surrogates are not taken");
    (void)moe_codeset_join(&b, &s, NULL);
    tap_ok(b.n == s.n, "joined to nothing: the same");
    moe_codeset_fini(&s);
    moe_codeset_fini(&b);
    return tap_done();
}
