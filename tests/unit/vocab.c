/* SPDX-License-Identifier: Apache-2.0 */
/* The map between texts and ids, both ways, and what it refuses. */
#include <stdio.h>
#include <string.h>

#include "common/engine/vocab.h"
#include "tests/tap.h"

int
main(void)
{
    struct moe_vocab v = MOE_VOCAB_INIT;
    const char *p;
    char text[32];
    int wrong = 0;
    size_t n;

    tap_is_int(moe_vocab_find(&v, "a", 1), (long long)MOE_VOCAB_NONE, "empty has nothing");
    for (unsigned i = 0; i < 5000; i++) {
        n = (size_t)snprintf(text, sizeof(text), "token %u", i * 7);
        if (moe_vocab_add(&v, text, n, i * 3, 20000, NULL) != 0)
            wrong++;
    }
    for (unsigned i = 0; i < 5000; i++) {
        n = (size_t)snprintf(text, sizeof(text), "token %u", i * 7);
        if (moe_vocab_find(&v, text, n) != i * 3 || moe_vocab_find(&v, text, n - 1) == i * 3)
            wrong++;
        if (!moe_vocab_text(&v, i * 3, &p, &n) || n != strlen(text) || memcmp(p, text, n) != 0)
            wrong++;
        if (moe_vocab_text(&v, i * 3 + 1, &p, &n))
            wrong++;
    }
    tap_is_int(wrong, 0, "texts and ids find each other");
    tap_is_int(v.n, 4999 * 3 + 1, "one more than the highest id");
    tap_is_int(moe_vocab_add(&v, "token 7", 7, 1, 20000, NULL), MOE_EFORMAT, "a text twice");
    tap_is_int(moe_vocab_add(&v, "new", 3, 3, 20000, NULL), MOE_EFORMAT, "an id twice");
    tap_is_int(moe_vocab_add(&v, "new", 3, 20000, 20000, NULL), MOE_ELIMIT, "an id too large");
    tap_is_int(moe_vocab_add(&v, "", 0, 1, 20000, NULL), 0, "an empty text");
    tap_is_int(moe_vocab_add(&v, "a\0b", 3, 2, 20000, NULL), 0, "a text with NUL");
    tap_is_int(moe_vocab_find(&v, "a\0b", 3), 2, "is found");
    tap_is_int(moe_vocab_find(&v, "a\0c", 3), (long long)MOE_VOCAB_NONE, "another is not");
    moe_vocab_fini(&v);
    return tap_done();
}
