/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8: every code point both ways, and the bad forms of RFC 3629. */
#include <string.h>

#include "common/base/utf8.h"
#include "tests/tap.h"

static void
is_shown(const char *text, const char *want, const char *what)
{
    char got[64];
    size_t at = 0, used;

    for (size_t n = strlen(text); n > 0; text += used, n -= used)
        at += moe_utf8_show(got + at, text, n, &used);
    got[at] = '\0';
    tap_is_str(got, want, "%s", what);
}

int
main(void)
{
    static const struct { const char *p; size_t n, bad; bool cut; } forms[] = {
        { "\x80", 1, 1, false }, { "\xc0\x80", 2, 1, false },
        { "\xe0\x80\x80", 3, 1, false }, { "\xed\xa0\x80", 3, 1, false },
        { "\xf4\x90\x80\x80", 4, 1, false }, { "\xff", 1, 1, false },
        { "\xe2\x98", 2, 2, true }, { "\xf0\x9f\x98", 3, 3, true },
        { "\xf0\x9f\x98x", 4, 3, false }, { "\xc3", 1, 1, true },
    };
    int wrong = 0;
    char b[4];

    for (uint32_t c = 0; c < 0x120000; c++) {
        size_t n = moe_utf8_put(b, c);
        uint32_t back = 0;
        bool is = c <= 0x10ffff && !(c >= 0xd800 && c < 0xe000);

        if (!is ? n != 0 : moe_utf8_get(b, n, &back) != n || back != c)
            wrong++;
    }
    tap_is_int(wrong, 0, "every code point goes both ways");
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        bool cut;

        tap_is_int((long long)moe_utf8_len(forms[i].p, forms[i].n), 0,
            "form %zu is no character", i);
        tap_is_int((long long)moe_utf8_bad(forms[i].p, forms[i].n, &cut),
            (long long)forms[i].bad, "form %zu: length of the bad part", i);
        tap_ok(cut == forms[i].cut, "form %zu: cut or not", i);
    }
    tap_ok(moe_utf8_valid("a\0b", 3), "NUL is a character");
    tap_ok(!moe_utf8_valid("a\xc3", 2), "a cut character is not valid");
    is_shown("a\n\x1b[31m", "a\\x0a\\x1b[31m", "control characters are shown as such");
    is_shown("\xc2\x9b\x7f", "\\xc2\\x9b\\x7f", "those of Latin-1 too");
    is_shown("\xe2\x80\xae" "gpj", "\\xe2\\x80\\xaegpj", "no turn of the direction");
    is_shown("\xc3\xa9\xff\xe6\x9d\x83", "\xc3\xa9\\xff\xe6\x9d\x83",
        "other characters as they are");
    return tap_done();
}
