/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring: the order of runs, statistics against exact sums, the lines.
 * No time is judged but that a nap takes as long as it must.
 */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/stop.h"
#include "common/system/measure.h"
#include "tests/tap.h"

static char trace[200];

static void
note(void *ctx)
{
    size_t n = strlen(trace);

    if (n + 1 < sizeof(trace))
        trace[n] = *(const char *)ctx;
}

static void
nap(void *ctx)
{
    usleep(*(const unsigned *)ctx);
}

static void
stop(void *ctx)
{
    (void)ctx;
    moe_stop_set(SIGINT);
}

static void
turns(void)
{
    char name[] = "abc";
    struct moe_measure_case c[] = { { "a", note, NULL, name, 0, 0 },
        { "b", note, note, name + 1, 0, 0 }, { "c", note, NULL, name + 2, 0, 0 } };
    struct moe_measure_plan plan = { 3, 0 };
    struct moe_measure m;
    struct moe_err e = { 0, "" };

    tap_is_int(moe_measure_run(c, 3, &plan, &m, &e), 0, "three cases in three rounds");
    tap_is_str(trace, "aabbbbcc" "abbc" "cbba" "abbc", "warm-up, then in turns");
    tap_ok(m.cases == 3 && m.rounds == 3, "the table");
    moe_measure_fini(&m);
    memset(trace, 0, sizeof(trace));
    plan.rounds = 0;
    moe_measure_run(c, 1, &plan, &m, &e);
    tap_ok(m.rounds == 15 && strlen(trace) == 17, "15 rounds unless said");
    moe_measure_fini(&m);
    tap_is_int(moe_measure_run(c, 0, &plan, &m, &e), MOE_ELIMIT, "no case");
    plan.rounds = MOE_MEASURE_MAX_ROUNDS + 1;
    tap_is_int(moe_measure_run(c, 1, &plan, &m, &e), MOE_ELIMIT, "too many rounds");
    plan.rounds = 100;
    c[0].run = stop;
    tap_is_int(moe_measure_run(c, 1, &plan, &m, &e), MOE_ESTOP, "stopped");
    tap_ok(m.ns == NULL, "with nothing to free");
    moe_stop_set(0);
}

static void
naps(void)
{
    unsigned one = 1000, four = 4000;
    struct moe_measure_case c[] = { { "short", nap, NULL, &one, 10, 3 },
        { "long", nap, NULL, &four, 80, 3 } };
    struct moe_measure_plan plan = { 5, 3000000 };
    struct moe_measure m;
    int bad = 0;

    moe_measure_run(c, 2, &plan, &m, NULL);
    for (size_t r = 0; r < 5; r++)
        bad += m.ns[r] < 1e6 || m.ns[5 + r] < 4e6;
    tap_is_int(bad, 0, "a run's time is its own, however often it is repeated");
    moe_measure_fini(&m);
}

/* n, how many are left out at each end, and the confidence. */
static void
intervals(void)
{
    /* 1 - 2 P(B <= out), B binomial (n, 1/2), by Python's math.comb. */
    static const struct { size_t n, out; double confidence; } row[] = { { 1, 0, 0 },
        { 2, 0, 0.5 }, { 5, 0, 0.9375 }, { 6, 0, 0.96875 }, { 7, 0, 0.984375 },
        { 8, 0, 0.9921875 }, { 9, 1, 0.9609375 }, { 15, 3, 0.96484375 },
        { 20, 5, 0.958610534667969 }, { 25, 7, 0.956714749336243 }, { 100, 39, 0.964799799782295 },
        { 2000, 955, 0.953447179508217 } };

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        size_t n = row[i].n;
        double *x = malloc(n * sizeof(*x));
        struct moe_measure_interval at;

        for (size_t k = 0; k < n; k++)
            x[k] = (double)(n - k);     /* 1..n, the other way round */
        at = moe_measure_interval(x, n, 0.95);
        tap_ok(at.median == (double)(n + 1) / 2, "median of 1..%zu", n);
        tap_ok(at.lo == (double)(row[i].out + 1) && at.hi == (double)(n - row[i].out),
            "its interval is %g to %g", at.lo, at.hi);
        tap_ok(fabs(at.confidence - row[i].confidence) < 1e-7, "which is worth %.9f",
            at.confidence);
        free(x);
    }
}

static void
stats(void)
{
    double odd[] = { 3, 1, 2 }, even[] = { 4, 1, 3, 2 };
    struct moe_measure_stat s = moe_measure_stat(odd, 3);

    tap_ok(s.min == 1 && s.median == 2 && s.max == 3, "of three");
    s = moe_measure_stat(even, 4);
    tap_ok(s.min == 1 && s.median == 2.5 && s.max == 4, "of four");
}

/* A table made up: the second case takes twice as long, over three times the bytes. */
static void
lines(void)
{
    double ns[] = { 100, 120, 80, 1000.004, 100, 90, 200, 240, 160, 2000, 200, 180 };
    struct moe_measure m = { 2, 6, ns };
    struct moe_measure_case c[] = { { "mine", NULL, NULL, NULL, 1000, 5 },
        { "read", NULL, NULL, NULL, 3000, 0 } };
    struct moe_measure_interval at;
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };

    moe_measure_ratio(&m, c, 0, 1, MOE_MEASURE_TIME, &at, &e);
    tap_ok(fabs(at.median - 2) < 1e-9 && at.lo < at.median && at.hi == 2, "half the time");
    moe_measure_ratio(&m, c, 0, 1, MOE_MEASURE_BYTES, &at, &e);
    tap_ok(fabs(at.median - 2.0 / 3) < 1e-9, "two thirds of the rate");
    tap_is_int(moe_measure_lines(&b, "op", "1x2", c, 2, &m, 1, MOE_MEASURE_BYTES, &e), 0, "lines");
    tap_is_str(b.p,
        "{\"op\":\"op\",\"shape\":\"1x2\",\"variant\":\"mine\",\"ns\":100,\"ns_min\":80,"
        "\"ns_max\":1000,\"bytes\":1000,\"ops\":5,\"ratio\":0.66667,\"limit\":\"read\","
        "\"ratio_lo\":0.66666,\"ratio_hi\":0.66667,\"confidence\":0.96875,\"rounds\":6}\n"
        "{\"op\":\"op\",\"shape\":\"1x2\",\"variant\":\"read\",\"ns\":200,\"ns_min\":160,"
        "\"ns_max\":2000,\"bytes\":3000,\"ops\":null,\"ratio\":null,\"limit\":null,"
        "\"ratio_lo\":null,\"ratio_hi\":null,\"confidence\":null,\"rounds\":6}\n",
        "the schema");
    moe_buf_fini(&b);
}

static void
reader(void)
{
    struct moe_pool *pool;
    struct moe_measure_reader *r;
    struct moe_measure_case c;
    struct moe_measure m;
    struct moe_measure_plan plan = { 2, 0 };
    struct moe_err e = { 0, "" };

    moe_pool_new(2, &pool, NULL);
    tap_is_int(moe_measure_reader_new(pool, 5000000, &r, &e), 0, "a small reader");
    c = moe_measure_reader_case(r);
    tap_ok(c.bytes == (uint64_t)6 << 20 && strcmp(c.variant, "read") == 0, "reads whole pages");
    tap_ok(moe_measure_run(&c, 1, &plan, &m, &e) == 0 && m.ns[0] > 0 && m.ns[1] > 0, "takes time");
    moe_measure_fini(&m);
    moe_measure_reader_free(r);
    tap_is_int(moe_measure_reader_new(pool, SIZE_MAX, &r, &e), MOE_ELIMIT, "too large a one");
    tap_is_str(e.text, "16.0 EiB to read: more than 64.0 GiB", "said so");
    moe_measure_reader_free(NULL);
    moe_pool_free(pool);
}

static void
adder(void)
{
    struct moe_pool *pool;
    struct moe_measure_adder *a;
    struct moe_measure_case c;
    struct moe_measure m;
    struct moe_measure_plan plan = { 2, 0 };
    struct moe_err e = { 0, "" };

    moe_pool_new(2, &pool, NULL);
    tap_is_int(moe_measure_adder_new(pool, moe_kernels(), &a, &e), 0, "an adder");
    c = moe_measure_adder_case(a);
    tap_ok(c.ops > 0 && c.bytes == 0 && strcmp(c.variant, "fma") == 0, "counts operations");
    tap_ok(moe_measure_run(&c, 1, &plan, &m, &e) == 0 && m.ns[0] > 0 && m.ns[1] > 0, "takes time");
    moe_measure_fini(&m);
    moe_measure_adder_free(a);
    moe_measure_adder_free(NULL);
    moe_pool_free(pool);
}

int
main(void)
{
    turns();
    naps();
    stats();
    intervals();
    lines();
    reader();
    adder();
    return tap_done();
}
