/* SPDX-License-Identifier: Apache-2.0 */
/* The pull scanner: grammar, strings, numbers, containers, places of errors. */
#include <locale.h>
#include <math.h>
#include <string.h>

#include "common/base/scan.h"
#include "tests/tap.h"

/* Whether text is accepted as one value; the code and text of the error go to e. */
static int
check(const char *text, size_t n, struct moe_err *e)
{
    struct moe_scan s;
    int rc;

    moe_scan_init(&s, text, n, "t");
    if ((rc = moe_scan_skip(&s, e)) == 0)
        rc = moe_scan_end(&s, e);
    moe_scan_fini(&s);
    return rc;
}

static void
grammar(void)
{
    static const char *const good[] = {
        "0", "-0", "-0.0e-0", "1E+2", "\"\"", "[]", "{}", "[[],{}]", " \t\r\n null ", "true",
        "{\"\":\"\"}", "\"\\ud834\\udd1e\"", "\"\\/\\b\\f\\n\\r\\t\\\"\\\\\"",
        "\"\x7f\xc2\x80\xef\xbf\xbf\xf4\x8f\xbf\xbf\"", "1e-400",
        "123456789012345678901234567890", "{\"a\":1,\"a\":1}", "\"\\u0000\""
    };
    static const char *const bad[] = {
        "", " ", "01", "-", "+1", ".5", "1.", "1e", "1e+", "0x1", "1e400", "-1e400", "NaN",
        "Infinity", "-Infinity", "nul", "nulll", "True", "[1,]", "[,1]", "[1 2]", "[1", "[1}",
        "{\"a\":1,}", "{\"a\"}", "{\"a\" 1}", "{a:1}", "{1:1}", "{\"a\":}", "{,}",
        "{\"a\":1 \"b\":2}", "]", "}", "\"", "\"\\\"", "\"\\x41\"", "\"\\u12\"", "\"\\u12g4\"",
        "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"", "\"\\ud800\\ud800\"", "\"\\ud800x\"",
        "\"\t\"", "\"\n\"", "\"\x01\"", "'a'", "\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"", "\"\xe2\x82\"", "\xef\xbb\xbf{}", "{} {}", "1 // x", "/* x */ 1",
        "[1]\v", "\xc2\xa0" "1"
    };
    struct moe_err e = { 0, "" };

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        if (!tap_is_int(check(good[i], strlen(good[i]), &e), 0, "good %zu: %s", i,
                i == 8 ? "blanks" : good[i]))
            tap_diag("%s", e.text);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        tap_is_int(check(bad[i], strlen(bad[i]), &e), MOE_EFORMAT, "bad %zu", i);
    tap_is_int(check("1\0", 2, &e), MOE_EFORMAT, "NUL after the value");
    tap_is_int(check("\"a\0b\"", 5, &e), MOE_EFORMAT, "raw NUL in a string");
}

static void
depth(void)
{
    char text[2 * MOE_SCAN_MAX_DEPTH + 2];
    struct moe_err e = { 0, "" };

    memset(text, '[', MOE_SCAN_MAX_DEPTH + 1);
    memset(text + MOE_SCAN_MAX_DEPTH, ']', MOE_SCAN_MAX_DEPTH);
    tap_is_int(check(text, (size_t)2 * MOE_SCAN_MAX_DEPTH, &e), 0, "as deep as allowed");
    text[MOE_SCAN_MAX_DEPTH] = '[';
    tap_is_int(check(text, MOE_SCAN_MAX_DEPTH + 1, &e), MOE_ELIMIT, "one deeper");
    tap_is_str(e.text, "t:1:129: nested too deep", "and where");
}

static void
places(void)
{
    struct moe_err e = { 0, "" };
    static const struct { const char *text, *want; } row[] = {
        { "{\n  \"a\": 1,\n  \"b\" 2}", "t:3:7: : is expected" },
        { "[1,\n2,]", "t:2:3: a value is expected" },
        { "[1, 01]", "t:1:5: a number does not begin with 0" },
        { "[\"\xc3\xa9\xc3\xa9\", x]", "t:1:8: a value is expected" },
        { "[\"ab\\q\"]", "t:1:5: unknown escape" },
        { "[1e999]", "t:1:2: number out of range" },
        { "{\"a\":1", "t:1:7: , or } is expected" },
        { "{} \n x", "t:2:2: text after the value" },
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        check(row[i].text, strlen(row[i].text), &e);
        tap_is_str(e.text, row[i].want, "place %zu", i);
    }
}

static void
strings(void)
{
    static const char text[] = "\"a\\u00e9\\ud83d\\ude00\\u0000\\n\\/\xe2\x98\x83\"";
    static const char want[] = "a\xc3\xa9\xf0\x9f\x98\x80\0\n/\xe2\x98\x83";
    struct moe_scan s;

    moe_scan_init(&s, text, sizeof(text) - 1, "t");
    tap_is_int(moe_scan_str(&s, NULL), 0, "a string");
    tap_ok(s.text.len == sizeof(want) - 1, "its length");
    tap_is_mem(s.text.p, want, sizeof(want), "unescaped, NUL included");
    moe_scan_fini(&s);
}

static void
whole(const char *text, int rc_uint, uint64_t u, int rc_int, int64_t i)
{
    struct moe_scan s;
    struct moe_err e = { 0, "" };
    uint64_t gu = 0;
    int64_t gi = 0;
    const char *before;

    moe_scan_init(&s, text, strlen(text), "t");
    tap_is_int(moe_scan_uint(&s, &gu, &e), rc_uint, "uint %s", text);
    tap_ok(rc_uint != 0 || gu == u, "its value");
    moe_scan_init(&s, text, strlen(text), "t");
    before = s.p;
    tap_is_int(moe_scan_int(&s, &gi, &e), rc_int, "int %s", text);
    tap_ok(rc_int != 0 ? s.p == before : gi == i, "its value");
    moe_scan_fini(&s);
}

static void
real(const char *text, double want)
{
    struct moe_scan s;
    double v = 0;

    moe_scan_init(&s, text, strlen(text), "t");
    tap_ok(moe_scan_real(&s, &v, NULL) == 0 && v == want, "real %.40s is %.17g", text, want);
    moe_scan_fini(&s);
}

static void
numbers(void)
{
    char big[400];

    whole("0", 0, 0, 0, 0);
    whole("-0", MOE_EFORMAT, 0, 0, 0);
    whole("18446744073709551615", 0, UINT64_MAX, MOE_EFORMAT, 0);
    whole("18446744073709551616", MOE_EFORMAT, 0, MOE_EFORMAT, 0);
    whole("9223372036854775807", 0, INT64_MAX, 0, INT64_MAX);
    whole("9223372036854775808", 0, (uint64_t)INT64_MAX + 1, MOE_EFORMAT, 0);
    whole("-9223372036854775808", MOE_EFORMAT, 0, 0, INT64_MIN);
    whole("-9223372036854775809", MOE_EFORMAT, 0, MOE_EFORMAT, 0);
    whole("-17", MOE_EFORMAT, 0, 0, -17);
    whole("1.0", MOE_EFORMAT, 0, MOE_EFORMAT, 0);
    whole("1e0", MOE_EFORMAT, 0, MOE_EFORMAT, 0);
    whole("007", MOE_EFORMAT, 0, MOE_EFORMAT, 0);
    whole("\"1\"", MOE_EFORMAT, 0, MOE_EFORMAT, 0);
    real("1.5", 1.5);
    real("-12", -12);
    real("1e-400", 0);
    real("1.7976931348623157e308", 1.7976931348623157e308);
    real("0.1", 0.1);
    memset(big, '9', sizeof(big));
    tap_is_int(check(big, 308, NULL), 0, "as many digits as a double has");
    tap_is_int(check(big, 310, NULL), MOE_EFORMAT, "more");
    memset(big, '0', sizeof(big));
    memcpy(big, "0.", 2);
    memcpy(big + 390, "125e388", 8);
    real(big, 0.125);
    /* A locale with a decimal comma changes nothing; not every machine has one. */
    if (setlocale(LC_ALL, "de_DE.UTF-8") != NULL)
        real("2.5", 2.5);
    setlocale(LC_ALL, "C");
}

static void
containers(void)
{
    static const char text[] = "{\"a\": [1, 2, 3], \"skip\": {\"x\": [null, {}], \"y\": \"z\"}, "
                               "\"t\": true, \"n\": null, \"s\": \"str\"}";
    struct moe_scan s;
    struct moe_err e = { 0, "" };
    enum moe_scan_kind kind;
    uint64_t v, sum = 0;
    bool more, yes = false;
    struct moe_buf keys = MOE_BUF_INIT;
    int n = 0;

    moe_scan_init(&s, text, sizeof(text) - 1, "t");
    tap_is_int(moe_scan_enter(&s, MOE_SCAN_OBJECT, &e), 0, "enter the object");
    while (moe_scan_next(&s, &more, &e) == 0 && more) {
        moe_buf_add(&keys, s.text.p, s.text.len);
        switch (n++) {
        case 0:
            tap_ok(moe_scan_kind(&s, &kind, &e) == 0 && kind == MOE_SCAN_ARRAY, "an array next");
            moe_scan_enter(&s, MOE_SCAN_ARRAY, &e);
            while (moe_scan_next(&s, &more, &e) == 0 && more && moe_scan_uint(&s, &v, &e) == 0)
                sum += v;
            break;
        case 1:
            moe_scan_skip(&s, &e);
            tap_is_str(s.text.p, "skip", "skipping leaves the key");
            break;
        case 2: moe_scan_bool(&s, &yes, &e); break;
        case 3: moe_scan_null(&s, &e); break;
        default: moe_scan_str(&s, &e); break;
        }
    }
    tap_is_int(e.code, 0, "no error");
    tap_is_str(keys.p, "askiptns", "keys in order");
    moe_buf_fini(&keys);
    tap_ok(sum == 6 && yes, "values");
    tap_is_str(s.text.p, "str", "the string");
    tap_is_int(moe_scan_end(&s, &e), 0, "the end");
    moe_scan_fini(&s);
    moe_scan_init(&s, "[]", 2, "t");
    tap_is_int(moe_scan_enter(&s, MOE_SCAN_OBJECT, &e), MOE_EFORMAT, "an array is no object");
    tap_is_str(e.text, "t:1:1: an object is expected", "said so");
    tap_is_int(moe_scan_null(&s, &e), MOE_EFORMAT, "nor null");
    tap_is_int(moe_scan_bool(&s, &yes, &e), MOE_EFORMAT, "nor a truth value");
    tap_is_int(moe_scan_str(&s, &e), MOE_EFORMAT, "nor a string");
    moe_scan_fini(&s);
}

int
main(void)
{
    grammar();
    depth();
    places();
    strings();
    numbers();
    containers();
    return tap_done();
}
