/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of lists: each form, each way to be wrong, and names that need care
 * written and read back. Whole lists of other programs are tests/cli's.
 */
#include <stdlib.h>
#include <string.h>

#include "common/trust/sumlist.h"
#include "tests/tap.h"

#define H "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static const unsigned char abc[MOE_DIGEST_LEN] = { 0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
    0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
    0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad };

/* One line that is fine, and the name in it. */
static void
good(const char *text, const char *name)
{
    static int form;
    struct moe_sumlist s;
    struct moe_sumlist_line l;
    struct moe_err e = { 0 };
    int rc;

    moe_sumlist_open(&s, text, strlen(text), false);
    rc = moe_sumlist_next(&s, &l, &e);
    if (rc != 1)
        tap_ok(false, "form %d: %d %s", form, rc, e.text);
    else
        tap_is_str(memcmp(l.sum, abc, sizeof(abc)) == 0 && l.tensor == NULL ? l.name : NULL, name,
            "form %d: digest and name", form);
    tap_is_int(moe_sumlist_next(&s, &l, &e), 0, "form %d: nothing after it", form++);
    moe_sumlist_close(&s);
}

static void
refused(const char *text, size_t n, const char *why)
{
    struct moe_sumlist s;
    struct moe_sumlist_line l;
    struct moe_err e = { 0 };

    moe_sumlist_open(&s, text, n, false);
    tap_is_int(moe_sumlist_next(&s, &l, &e), MOE_EFORMAT, "refused: %s", why);
    tap_is_str(e.text, why, "and why");
    tap_is_int((long long)l.number, 1, "in line 1");
    moe_sumlist_close(&s);
}
#define REFUSED(text, why) refused(text, sizeof(text) - 1, why)

static void
forms(void)
{
    good(H "  a\n", "a");
    good(H " *a", "a");
    good(H " a\n", "a");
    good("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD  a", "a");
    good("# comment\n\n \t" H "   a \r\n#\n", " a ");
    good("\\" H "  a\\\\b\\nc\\rd\n", "a\\b\nc\rd");
    good(H "  a\\n\n", "a\\n");
    good("SHA256 (a) = " H "\n", "a");
    good("SHA256 (a) b) = " H "\n", "a) b");
    good("\\SHA256 (a\\n) = " H "\n", "a\n");
    good("SHA256(a)= " H, "a");
    good("SHA2-256(a)= " H, "a");
}

static void
wrong(void)
{
    static const char hex[] = "no SHA-256 digest of 64 hexadecimal digits";

    REFUSED("abc  a\n", hex);
    REFUSED(H "0  a\n", hex);
    REFUSED("x" H "  a\n", hex);
    REFUSED("\xef\xbb\xbf" H "  a\n", hex);
    REFUSED("SHA256 (a) = " H " \n", hex);
    REFUSED(H "\n", "no name after the digest");
    REFUSED(H "  \n", "the name is empty");
    REFUSED(H " \n", "the name is empty");
    REFUSED("\\" H "  a\\x\n", "unknown escape in a name");
    REFUSED("\\" H "  a\\t\n", "unknown escape in a name");
    REFUSED("\\" H "  a\\\n", "unknown escape in a name");
    REFUSED(H "  a\0b\n", "NUL in a name");
    REFUSED("SHA512 (a) = " H "\n", "only SHA-256 is checked");
    REFUSED("SHA256 (a = " H "\n", "no ) after the name");
    REFUSED("SHA256 (a) " H "\n", "no = after the name");
    REFUSED(H "\ta\n", "a tensor's line has five columns: digest, file, tensor, type, shape");
    REFUSED(H "\ta\tb\tF32\t[1]\tc\n",
        "a tensor's line has five columns: digest, file, tensor, type, shape");
    REFUSED(H "\ta\t\tF32\t[1]\n", "the name is empty");
}

/* The first line says how many blanks stand before the names. */
static void
blanks(void)
{
    static const char two[] = H "  a\n" H " b\n" H "  c\n", one[] = H " a\n" H "  b\n";
    struct moe_sumlist s;
    struct moe_sumlist_line l;
    struct moe_err e = { 0 };

    moe_sumlist_open(&s, two, sizeof(two) - 1, false);
    tap_ok(moe_sumlist_next(&s, &l, &e) == 1 && moe_sumlist_next(&s, &l, &e) == MOE_EFORMAT &&
        l.number == 2, "one blank after two is refused");
    tap_ok(moe_sumlist_next(&s, &l, &e) == 1 && l.number == 3 && strcmp(l.name, "c") == 0,
        "the line after it is read");
    moe_sumlist_close(&s);
    moe_sumlist_open(&s, one, sizeof(one) - 1, false);
    tap_ok(moe_sumlist_next(&s, &l, &e) == 1 && moe_sumlist_next(&s, &l, &e) == 1 &&
        strcmp(l.name, " b") == 0, "two blanks after one: the second is the name's");
    moe_sumlist_close(&s);
}

static const char *const names[] = { "a", " a", "a ", "*a", "a\nb", "\n", "\\", "a\\n", "a\rb",
    "a\r", "\t", "a\tb", ")", "a) = 0", "SHA256 (x) = y", "\xff\xfe", "#a", H "  a" };

static void
round_trips(void)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_sumlist s;
    struct moe_sumlist_line l;
    struct moe_err e = { 0 };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (int zero = 0; zero < 2; zero++) {
            moe_buf_clear(&b);
            moe_sumlist_put(&b, abc, names[i], zero);
            moe_sumlist_open(&s, b.p, b.len, zero);
            tap_ok(moe_sumlist_next(&s, &l, &e) == 1 && strcmp(l.name, names[i]) == 0 &&
                memcmp(l.sum, abc, sizeof(abc)) == 0 && moe_sumlist_next(&s, &l, &e) == 0,
                "name %zu written and read, zero %d", i, zero);
            moe_sumlist_close(&s);
        }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
            moe_buf_clear(&b);
            moe_sumlist_put_tensor(&b, abc, names[i], names[k], "BF16", "[2,3]");
            moe_sumlist_open(&s, b.p, b.len, false);
            if (moe_sumlist_next(&s, &l, &e) != 1 || l.tensor == NULL ||
                strcmp(l.name, names[i]) != 0 || strcmp(l.tensor, names[k]) != 0 ||
                strcmp(l.type, "BF16") != 0 || strcmp(l.shape, "[2,3]") != 0)
                tap_ok(false, "tensor %zu of file %zu", k, i);
            moe_sumlist_close(&s);
        }
    moe_buf_clear(&b);
    moe_sumlist_put(&b, abc, "a\nb\\\tc", false);
    tap_is_str(b.p, "\\" H "  a\\nb\\\\\tc\n", "as coreutils writes it: TAB is not escaped");
    moe_buf_clear(&b);
    moe_sumlist_put_tensor(&b, abc, "m\t", "t", "F32", "[]");
    tap_is_str(b.p, "\\" H "\tm\\t\tt\tF32\t[]\n", "but in a tensor's line it is");
    moe_buf_fini(&b);
}

int
main(void)
{
    forms();
    wrong();
    blanks();
    round_trips();
    return tap_done();
}
