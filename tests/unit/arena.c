/* SPDX-License-Identifier: Apache-2.0 */
/* Arena: nothing overlaps, nothing moves, everything is freed (asan tells). */
#include <stdint.h>
#include <string.h>

#include "common/base/arena.h"
#include "tests/tap.h"

int
main(void)
{
    struct moe_arena a = MOE_ARENA_INIT;
    unsigned char *p[2000];
    size_t bad = 0, odd = 0;

    for (size_t i = 0; i < 2000; i++) {
        if ((p[i] = moe_arena_get(&a, i)) == NULL)
            break;
        odd += (uintptr_t)p[i] % 8 != 0;
        memset(p[i], (int)(i & 255), i);
    }
    for (size_t i = 0; i < 2000; i++) {
        for (size_t k = 0; k < i; k++)
            bad += p[i][k] != (i & 255);
    }
    tap_is_int((long long)bad, 0, "2000 pieces keep their bytes");
    tap_is_int((long long)odd, 0, "aligned to 8");
    tap_is_str(moe_arena_text(&a, "abcdef", 3), "abc", "text gets a NUL");
    tap_is_str(moe_arena_text(&a, NULL, 0), "", "empty text");
    tap_ok(moe_arena_get(&a, (size_t)1 << 20) != NULL, "more than a block");
    tap_ok(moe_arena_get(&a, SIZE_MAX) == NULL, "no memory for everything");
    tap_ok(moe_arena_text(&a, "", SIZE_MAX) == NULL, "nor for such a text");
    moe_arena_fini(&a);
    tap_ok(a.last == NULL && moe_arena_get(&a, 1) != NULL, "usable again");
    moe_arena_fini(&a);
    return tap_done();
}
