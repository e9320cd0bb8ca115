/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The team of threads: each job once, in order, by a worker that exists; what
 * jobs write is seen; idle workers sleep; more threads than processors work.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/pool.h"
#include "tests/tap.h"

#define MOST 1000

struct job {
    int size;
    unsigned done[MOST];        /* how often; plain, so that a race is one for tsan */
    int by[MOST];
    size_t last[MOE_POOL_MAX];  /* the last job of a worker, plus 1 */
    int bad[MOE_POOL_MAX];
};

static void
count(void *ctx, size_t i, int w)
{
    struct job *j = ctx;

    j->done[i]++;
    j->by[i] = w;
    if (w < 0 || w >= j->size || i + 1 <= j->last[w])
        j->bad[w < 0 || w >= j->size ? 0 : w]++;
    else
        j->last[w] = i + 1;
}

static void
all_once(int threads)
{
    static struct job j;
    struct moe_pool *p;
    struct moe_err e = { 0, "" };
    int bad = 0;

    tap_is_int(moe_pool_new(threads, &p, &e), 0, "%d threads", threads);
    tap_is_int(moe_pool_size(p), threads, "as many as asked for");
    for (size_t n = 0; n <= MOST; n = n < 20 ? n + 1 : n * 3 / 2) {
        memset(&j, 0, sizeof(j));
        j.size = threads;
        moe_pool_run(p, n, count, &j);
        for (size_t i = 0; i < MOST; i++)
            bad += j.done[i] != (i < n);
        for (int w = 0; w < threads; w++)
            bad += j.bad[w];
    }
    tap_is_int(bad, 0, "each job once, in order, by a worker that exists");
    moe_pool_free(p);
}

static void
add(void *ctx, size_t i, int w)
{
    (void)w;
    ((long *)ctx)[i]++;
}

/* Very many short runs, each of which reads what the one before wrote. */
static void
many_runs(int threads, int times)
{
    static long sum[64];
    struct moe_pool *p;
    int bad = 0;

    memset(sum, 0, sizeof(sum));
    moe_pool_new(threads, &p, NULL);
    for (int t = 1; t <= times; t++) {
        size_t n = (size_t)(t % 64);

        moe_pool_run(p, n, add, sum);
        for (size_t i = 0; i < n; i++)
            bad += sum[i] < 1;
        if (t % 1000 == 0)
            usleep(200);    /* long enough to fall asleep */
    }
    for (int i = 0; i < 64; i++)
        bad += sum[i] != times / 64 * (63 - i);
    tap_is_int(bad, 0, "%d runs of %d threads", times, threads);
    moe_pool_free(p);
}

static void
nap(void *ctx, size_t i, int w)
{
    (void)ctx;
    (void)i;
    (void)w;
    usleep(1000);
}

static void
sleeping(void)
{
    struct moe_pool *p;
    uint64_t cpu, wall;

    moe_pool_new(4, &p, NULL);
    moe_pool_run(p, 8, nap, NULL);
    usleep(20000);
    cpu = moe_clock_cpu_ns();
    wall = moe_clock_ns();
    usleep(200000);
    cpu = moe_clock_cpu_ns() - cpu;
    wall = moe_clock_ns() - wall;
    tap_ok(cpu < wall / 10, "idle workers sleep (%llu us of %llu)", (unsigned long long)cpu / 1000,
        (unsigned long long)wall / 1000);
    /* The caller waits for jobs of a millisecond: asleep, not spinning. */
    cpu = moe_clock_cpu_ns();
    wall = moe_clock_ns();
    moe_pool_run(p, 400, nap, NULL);
    cpu = moe_clock_cpu_ns() - cpu;
    wall = moe_clock_ns() - wall;
    tap_ok(wall > 90000000 && cpu < wall, "so do those that wait for jobs");
    moe_pool_free(p);
}

int
main(void)
{
    struct moe_err e = { 0, "" };
    struct moe_pool *p;

    all_once(1);
    all_once(2);
    all_once(3);
    all_once(9);
    all_once(64);
    many_runs(2, 64000);
    many_runs(5, 6400);
    sleeping();
    tap_ok(moe_pool_new(0, &p, &e) == 0 && moe_pool_size(p) >= 1 &&
        moe_pool_size(p) <= (int)sysconf(_SC_NPROCESSORS_CONF), "as many as there are processors");
    moe_pool_free(p);
    tap_is_int(moe_pool_new(-1, &p, &e), MOE_ELIMIT, "-1 threads");
    tap_is_int(moe_pool_new(MOE_POOL_MAX + 1, &p, &e), MOE_ELIMIT, "too many threads");
    tap_ok(p == NULL, "none are started");
    moe_pool_free(NULL);
    return tap_done();
}
