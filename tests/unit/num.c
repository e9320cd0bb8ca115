/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers: whole, sizes, reals, for people; arithmetic that overflows. */
#include <string.h>

#include "common/base/num.h"
#include "tests/tap.h"

static void
ints(void)
{
    static const char *const bad[] = { "", "-", "+1", " 1", "1 ", "0x10", "1.0", "1e3", "--1",
        "9223372036854775808", "-9223372036854775809", "99999999999999999999999" };
    struct moe_err e;
    int64_t v = 7;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        tap_is_int(moe_num_int(bad[i], INT64_MIN, INT64_MAX, "-N", &v, &e), MOE_EUSAGE,
            "'%s' is refused", bad[i]);
    tap_is_int(v, 7, "a refusal leaves the value alone");
    tap_ok(moe_num_int("9223372036854775807", 0, INT64_MAX, "-N", &v, &e) == 0 && v == INT64_MAX,
        "the largest");
    tap_ok(moe_num_int("-9223372036854775808", INT64_MIN, 0, "-N", &v, &e) == 0 && v == INT64_MIN,
        "the smallest");
    tap_ok(moe_num_int("007", 0, 10, "-N", &v, &e) == 0 && v == 7, "zeros may lead");
    tap_is_int(moe_num_int("11", 0, 10, "-N", &v, &e), MOE_EUSAGE, "above the range");
    tap_is_str(e.text, "-N: '11' is not between 0 and 10", "the range is told");
    tap_is_int(moe_num_int("-1", 0, 10, "-N", &v, &e), MOE_EUSAGE, "below the range");
}

static void
sizes(void)
{
    static const struct {
        const char *s;
        uint64_t want;
    } good[] = {
        { "0", 0 }, { "17", 17 }, { "17B", 17 }, { "4k", 4000 }, { "4kB", 4000 }, { "2M", 2000000 },
        { "3GB", 3000000000 }, { "1T", 1000000000000 }, { "4Ki", 4096 }, { "4KiB", 4096 },
        { "1.5MiB", 1572864 }, { "0.1Gi", 107374182 }, { "1.9999", 1 }, { "2.5TiB", 2748779069440 },
        { "0.000000000000000000001T", 0 }, { "0.999999999999999999999999Ti", 1099511627775 },
        { "18446744073709551615", UINT64_MAX },
    };
    static const char *const bad[] = { "", "k", "-1", "+1", "1.", ".5", "1..2", "1 k", "1K", "1ki",
        "1MiBB", "1X", "18446744073709551616", "16777216Ti", "99999999999999999999", "1e3" };
    struct moe_err e;
    uint64_t v;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        tap_ok(moe_num_size(good[i].s, 0, UINT64_MAX, "-m", &v, &e) == 0 && v == good[i].want,
            "'%s' is %llu", good[i].s, (unsigned long long)good[i].want);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        tap_is_int(moe_num_size(bad[i], 0, UINT64_MAX, "-m", &v, &e), MOE_EUSAGE,
            "'%s' is refused", bad[i]);
    tap_is_int(moe_num_size("2Ki", 0, 1024, "-m", &v, &e), MOE_EUSAGE, "above the range");
    tap_is_str(e.text, "-m: '2Ki' is not between 0 B and 1.0 KiB", "the range is told");
}

static void
reals(void)
{
    static const char *const bad[] = { "", "nan", "inf", "0x1p3", " 1", "1 ", "+1", "1e", "1e999",
        "1,5", "-", ".", "1.5.2" };
    struct moe_err e;
    double v;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        tap_is_int(moe_num_real(bad[i], -1e308, 1e308, "--temp", &v, &e), MOE_EUSAGE,
            "'%s' is refused", bad[i]);
    tap_ok(moe_num_real("0.75", 0, 1, "--temp", &v, &e) == 0 && v == 0.75, "0.75");
    tap_ok(moe_num_real("-2.5e-1", -1, 1, "--temp", &v, &e) == 0 && v == -0.25, "-2.5e-1");
    tap_is_int(moe_num_real("1.01", 0, 1, "--temp", &v, &e), MOE_EUSAGE, "above the range");
    tap_is_str(e.text, "--temp: '1.01' is not between 0 and 1", "the range is told");
}

static void
people(void)
{
    static const struct {
        uint64_t n;
        const char *want;
    } t[] = {
        { 0, "0 B" }, { 1023, "1023 B" }, { 1024, "1.0 KiB" }, { 1536, "1.5 KiB" },
        { 1048575, "1.0 MiB" }, { 15309733, "14.6 MiB" }, { (uint64_t)5 << 40, "5.0 TiB" },
        { UINT64_MAX, "16.0 EiB" },
    };
    char s[16];

    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
        tap_is_str(moe_num_human(s, sizeof(s), t[i].n), t[i].want, "%s", t[i].want);
}

static void
arithmetic(void)
{
    uint64_t v;

    tap_ok(moe_num_add(UINT64_MAX - 1, 1, &v) && v == UINT64_MAX, "a sum that just fits");
    tap_ok(!moe_num_add(UINT64_MAX, 1, &v), "a sum that does not");
    tap_ok(moe_num_mul(UINT64_MAX / 3, 3, &v) && v == UINT64_MAX, "a product that just fits");
    tap_ok(!moe_num_mul((uint64_t)1 << 32, (uint64_t)1 << 32, &v), "a product that does not");
    tap_ok(moe_num_mul(0, UINT64_MAX, &v) && v == 0, "a product with zero");
    tap_ok(moe_num_align(0, 4096, &v) && v == 0, "zero is aligned");
    tap_ok(moe_num_align(4097, 4096, &v) && v == 8192, "rounded up");
    tap_ok(moe_num_align(8, 8, &v) && v == 8, "already aligned");
    tap_ok(!moe_num_align(UINT64_MAX - 1, 4096, &v), "no room to round up");
}

int
main(void)
{
    ints();
    sizes();
    reals();
    people();
    arithmetic();
    return tap_done();
}
