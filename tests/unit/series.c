/* SPDX-License-Identifier: Apache-2.0 */
/* A series of 500 samples beside numpy's polyfit; forms of CSV and of times; what is refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/series.h"
#include "tests/golden.h"
#include "tests/tap.h"

static void
golden(void)
{
    size_t n;
    char *p = (char *)golden_file("ckpt/steady.csv", &n);
    struct moe_series s;
    struct moe_series_window w;
    struct moe_err e = { 0, "" };

    if (!tap_ok(moe_series_csv(p, n, "steady", "time", "train, loss", &s, &e) == 0, "read %s",
        e.text))
        return;
    moe_series_window(&s, 72 * 3600, &w);
    tap_is_int((long long)w.n, 440, "samples of 72 hours");
    tap_ok(fabs(w.jitter - 0.0015362116273241896) < 1e-12, "jitter %.17g", w.jitter);
    tap_ok(fabs(w.slope / -2.9487485395098168e-08 - 1) < 1e-6, "slope %.17g", w.slope);
    tap_ok(fabs(w.mean - 2.0950764363636365) < 1e-12, "mean");
    tap_ok(fabs(w.span - 81.93973749995232 * 3600) < 1e-3 &&
        fabs(w.gap - 899.603000164032) < 1e-6, "span and gap");
    moe_series_fini(&s);
    free(p);
}

/* Times and values of two rows. */
static void
form(const char *csv, double t0, double t1, double v1, const char *what)
{
    struct moe_series s;
    struct moe_err e = { 0, "" };
    int rc = moe_series_csv(csv, strlen(csv), "x", "time", "loss", &s, &e);

    tap_ok(rc == 0 && s.n == 2 && s.t[0] == t0 && s.t[1] == t1 &&
        (s.v[1] == v1 || (isnan(v1) && isnan(s.v[1]))), "%s %s", what, e.text);
    if (rc == 0)
        moe_series_fini(&s);
}

static void
forms(void)
{
    form("time,loss\n1,2\n2,3\n", 1, 2, 3, "plain");
    form("a,loss,time\r\n,1,1\r\n,-1e-3,2.5\r\n", 1, 2.5, -1e-3, "other order, CRLF");
    form("\"a \"\"b\n\",time,loss\n\"x,\",1,2\n\n,2,nan", 1, 2, NAN, "quotes, no last newline");
    form("time,loss\n1,2\n1.5,\n3,4\n", 1, 3, 4, "no value");
    form("time,loss\n1970-01-01T00:00:00Z,1\n1970-01-02 00:00:00.5+00:00,-inf\n", 0, 86400.5,
        -INFINITY, "dates");
    /* date -u -d ... +%s of coreutils 9.1 */
    form("time,loss\n2000-02-29T23:59:59-01:30,1\n2026-12-01T12:00:00+05:45,1\n", 951874199,
        1796105700, 1, "leap days and offsets");
}

static void
refused(void)
{
    static const struct { const char *csv, *says; } bad[] = {
        { "", "1: no header" }, { "\n\n", "3: no header" }, { "time\n1\n", "1: no column loss" },
        { "loss\n1\n", "1: no column time" }, { "time,loss,time\n", "1: two columns time" },
        { "time,loss\n", "no samples" }, { "time,loss\n1\n", "2: not as many" },
        { "time,loss\n1,2,3\n", "2: not as many" },
        { "time,loss\n1,2\n1,3\n", "3: the time is not" },
        { "time,loss\n2,2\n1,3\n", "3: the time is not" },
        { "time,loss\nx,2\n", "2: the time is neither" },
        { "time,loss\nnan,2\n", "2: the time is neither" }, { "time,loss\n1,x\n", "2: the value" },
        { "time,loss\n1,2 \n", "2: the value" },
        { "time,loss\n\"1,2\n", "2: a quote does not end" },
        { "time,loss\n1\"2,3\n", "2: a quote within" },
        { "time,loss\n\"1\"2,3\n", "2: text behind" },
        { "time,loss\n1,2\r3\n", "2: a carriage return" }, { "time,loss\n1,", "no samples" },
        { "time,loss\n2026-13-01T00:00:00Z,1\n", "neither" },
        { "time,loss\n2026-12-01T00:00:00,1\n", "neither" },
        { "time,loss\n2026-12-01T00:00:00.Z,1\n", "neither" },
        { "time,loss\n2026-12-01T00:00:00Zx,1\n", "neither" },
    };
    struct moe_series s;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct moe_err e = { 0, "" };
        int rc = moe_series_csv(bad[i].csv, strlen(bad[i].csv), "x", "time", "loss", &s, &e);

        tap_ok(rc == MOE_EFORMAT && strstr(e.text, bad[i].says) != NULL && s.t == NULL,
            "refused: %s", e.text);
    }
    tap_is_int(moe_series_csv("time,loss\n1,\0\n", 13, "x", "time", "loss", &s, NULL),
        MOE_EFORMAT, "a NUL");
}

static void
windows(void)
{
    double t[] = { 0, 10, 20, 30 }, line[] = { 1, 2, 3, 4 }, bad[] = { 1, 2, NAN, 4 };
    struct moe_series s = { t, line, 4 };
    struct moe_series_window w;

    moe_series_window(&s, 100, &w);
    tap_ok(w.n == 4 && w.jitter < 1e-15 && fabs(w.slope - 0.1) < 1e-15, "a trend is no jitter");
    moe_series_window(&s, 5, &w);
    tap_ok(w.n == 1 && w.jitter == 0 && w.gap == 5, "one sample in the window");
    s.v = bad;
    moe_series_window(&s, 100, &w);
    tap_ok(isinf(w.jitter), "NaN is endless jitter");
}

int
main(void)
{
    golden();
    forms();
    refused();
    windows();
    return tap_done();
}
