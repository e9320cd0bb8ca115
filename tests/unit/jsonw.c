/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON: commas, escapes, reals that read back; jansson reads it all. */
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/jsonw.h"
#include "tests/tap.h"

static void
structure(void)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_jsonw w = { &b, false };

    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "a");
    moe_jsonw_open(&w, '[');
    moe_jsonw_int(&w, INT64_MIN);
    moe_jsonw_uint(&w, UINT64_MAX);
    moe_jsonw_null(&w);
    moe_jsonw_open(&w, '[');
    moe_jsonw_close(&w, ']');
    moe_jsonw_open(&w, '{');
    moe_jsonw_close(&w, '}');
    moe_jsonw_close(&w, ']');
    moe_jsonw_key(&w, "b");
    moe_jsonw_bool(&w, true);
    moe_jsonw_key(&w, "c");
    moe_jsonw_str(&w, "x", 1);
    moe_jsonw_close(&w, '}');
    tap_is_str(b.p,
        "{\"a\":[-9223372036854775808,18446744073709551615,null,[],{}],\"b\":true,\"c\":\"x\"}",
        "commas by themselves");
    moe_buf_fini(&b);
}

static void
string(const char *s, size_t n, const char *want)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_jsonw w = { &b, false };

    moe_jsonw_str(&w, s, n);
    tap_is_str(b.p, want, "string %s", want);
    moe_buf_fini(&b);
}

static void
real(double v, const char *want)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_jsonw w = { &b, false };

    moe_jsonw_real(&w, v);
    tap_is_str(b.p, want, "real %s", want);
    moe_buf_fini(&b);
}

static void
read_back(void)
{
    uint64_t x = 88172645463325252U;
    int bad = 0;

    for (int i = 0; i < 20000; i++) {
        struct moe_buf b = MOE_BUF_INIT;
        struct moe_jsonw w = { &b, false };
        json_t *t;
        double v;

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(&v, &x, sizeof(v));
        if (!isfinite(v))
            continue;
        moe_jsonw_real(&w, v);
        t = json_loads(b.p, JSON_DECODE_ANY, NULL);
        if (t == NULL || json_number_value(t) != v)
            bad++;
        json_decref(t);
        moe_buf_fini(&b);
    }
    tap_is_int(bad, 0, "random reals read back the same");
}

int
main(void)
{
    structure();
    string("", 0, "\"\"");
    string("a\"b\\c/\b\f\n\r\t", 11, "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\"");
    string("\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\\u007f\"");
    string("\xc3\xa9\xf0\x9f\x98\x80", 6, "\"\xc3\xa9\xf0\x9f\x98\x80\"");
    string("a\xff\xc3", 3, "\"a\\udcff\\udcc3\"");
    string("\xed\xa0\x80", 3, "\"\\udced\\udca0\\udc80\"");
    real(0, "0");
    real(-0.0, "-0.0");
    real(1, "1");
    real(0.1, "0.1");
    real(1.0 / 3, "0.3333333333333333");
    real(0.1 + 0.2, "0.30000000000000004");
    real(1e300, "1e+300");
    real(DBL_MAX, "1.7976931348623157e+308");
    real(5e-324, "5e-324");
    real(DBL_MIN, "2.2250738585072014e-308");
    real((double)NAN, "null");
    real(-(double)INFINITY, "null");
    read_back();
    return tap_done();
}
