/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of the machine, and the library's machinery: forking and joining
 * with a busy neighbour and without, streams against memory, the scanner against
 * jansson. The lines are those of common/system/measure.h.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/pool.h"
#include "common/base/scan.h"
#include "common/base/stream.h"
#include "common/system/measure.h"

#define FILE_BYTES ((size_t)128 << 20)
#define TENSORS 20000

static void
check(int rc, const struct moe_err *e)
{
    if (rc == 0)
        return;
    fprintf(stderr, "bench: base: %s\n", e->text);
    exit(2);
}

static void
report(const char *op, const char *shape, const struct moe_measure_case *c, size_t n,
    size_t limit, enum moe_measure_by by)
{
    /* Longer than a slice of the scheduler, so that a neighbour gets its turns. */
    struct moe_measure_plan plan = { 11, 20000000 };
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    struct moe_measure m;

    check(moe_measure_run(c, n, &plan, &m, &e), &e);
    check(moe_measure_lines(&b, op, shape, c, n, &m, limit, by, &e), &e);
    fputs(b.p, stdout);
    fflush(stdout);
    moe_buf_fini(&b);
    moe_measure_fini(&m);
}

/* ---- The pool ---------------------------------------------------------------------------- */

struct team {
    struct moe_pool *pool;
    size_t jobs;
    uint64_t job_ns;
    atomic_int hog;     /* 1: the neighbour is to work, 2: to end */
    atomic_int does;    /* what it does */
};

static void
job(void *ctx, size_t i, int w)
{
    const struct team *t = ctx;
    uint64_t start = t->job_ns > 0 ? moe_clock_ns() : 0;

    (void)i;
    (void)w;
    while (t->job_ns > 0 && moe_clock_ns() - start < t->job_ns)
        continue;
}

static void
run_jobs(void *ctx)
{
    struct team *t = ctx;

    moe_pool_run(t->pool, t->jobs, job, t);
}

/* Have the neighbour work or rest, and wait until it does. */
static void
set_hog(struct team *t, int what)
{
    atomic_store(&t->hog, what);
    while (atomic_load(&t->does) != what)
        usleep(100);
}

static void
hog_on(void *ctx)
{
    set_hog(ctx, 1);
}

static void
hog_off(void *ctx)
{
    set_hog(ctx, 0);
}

static void *
hog(void *arg)
{
    struct team *t = arg;
    int now;

    while ((now = atomic_load(&t->hog)) != 2) {
        atomic_store_explicit(&t->does, now, memory_order_relaxed);
        if (now == 0)
            usleep(500);
    }
    return NULL;
}

static void
bench_pool(struct moe_pool *pool)
{
    struct team t = { pool, (size_t)moe_pool_size(pool), 0, 0, 0 };
    struct moe_measure_case empty = { "pool", run_jobs, NULL, &t, 0, t.jobs };
    struct moe_measure_case c[] = { { "alone", run_jobs, hog_off, &t, 0, 0 },
        { "neighbour", run_jobs, hog_on, &t, 0, 0 } };
    pthread_t thread;
    char shape[32];

    (void)snprintf(shape, sizeof(shape), "%zu", t.jobs);
    report("fork_join", shape, &empty, 1, 1, MOE_MEASURE_TIME);
    if (pthread_create(&thread, NULL, hog, &t) != 0)
        return;
    /* As a layer of a model has it: jobs of some microseconds, a join, again. */
    t.jobs *= 8;
    t.job_ns = 10000;
    (void)snprintf(shape, sizeof(shape), "%zux10us", t.jobs);
    report("fork_join", shape, c, 2, 0, MOE_MEASURE_TIME);
    atomic_store(&t.hog, 2);
    pthread_join(thread, NULL);
}

/* ---- Streams ----------------------------------------------------------------------------- */

struct file {
    int fd;
    bool direct;
};

static void
read_file(void *ctx)
{
    const struct file *f = ctx;
    struct moe_stream *s;
    struct moe_err e = { 0, "" };
    uint64_t sum = 0;
    const void *p;
    size_t n;

    (void)lseek(f->fd, 0, SEEK_SET);
    check(moe_stream_open(f->fd, "bench", f->direct, &s, &e), &e);
    do {
        check(moe_stream_next(s, &p, &n, &e), &e);
        for (size_t i = 0; i + 8 <= n; i += 8) {
            uint64_t v;

            memcpy(&v, (const char *)p + i, 8);
            sum += v;
        }
    } while (n > 0);
    moe_stream_close(s);
    if (sum == 1)
        fputs("", stderr);  /* it is used */
}

static void
bench_stream(struct moe_measure_reader *reader)
{
    char path[] = P_tmpdir "/moe-bench-XXXXXX";
    int fd = mkstemp(path);
    char *data = malloc(FILE_BYTES);
    struct file cached = { fd, false }, direct = { fd, true };
    struct moe_measure_case c[] = { moe_measure_reader_case(reader),
        { "cached", read_file, NULL, &cached, FILE_BYTES, 0 },
        { "direct", read_file, NULL, &direct, FILE_BYTES, 0 } };

    unlink(path);
    if (data != NULL && fd >= 0) {
        memset(data, 'x', FILE_BYTES);
        if (write(fd, data, FILE_BYTES) == (ssize_t)FILE_BYTES && fsync(fd) == 0)
            report("stream", "128MiB", c, 3, 0, MOE_MEASURE_BYTES);
    }
    free(data);
    close(fd);
}

/* ---- JSON -------------------------------------------------------------------------------- */

static void
scan(void *ctx)
{
    const struct moe_buf *b = ctx;
    struct moe_err e = { 0, "" };
    struct moe_scan s;

    moe_scan_init(&s, b->p, b->len, "bench");
    check(moe_scan_skip(&s, &e), &e);
    moe_scan_fini(&s);
}

static void
tree(void *ctx)
{
    const struct moe_buf *b = ctx;

    json_decref(json_loadb(b->p, b->len, JSON_REJECT_DUPLICATES, NULL));
}

static void
tree_checked(void *ctx)
{
    const struct moe_buf *b = ctx;
    struct moe_err e = { 0, "" };
    json_t *t;

    check(moe_json_parse(b->p, b->len, "bench", &t, &e), &e);
    json_decref(t);
}

static void
bench_json(void)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_measure_case c[] = { { "jansson", tree, NULL, &b, 0, 0 },
        { "moe_json", tree_checked, NULL, &b, 0, 0 }, { "moe_scan", scan, NULL, &b, 0, 0 } };
    char shape[32];

    moe_buf_byte(&b, '{');
    for (int i = 0; i < TENSORS; i++)
        moe_buf_fmt(&b, "%s\"model.layers.%d.mlp.experts.%d.down_proj.weight\":{\"dtype\":\"BF16\","
            "\"shape\":[768,2048],\"data_offsets\":[%lld,%lld]}", i > 0 ? "," : "", i / 128,
            i % 128, i * 3145728LL, (i + 1) * 3145728LL);
    moe_buf_byte(&b, '}');
    for (size_t i = 0; i < 3; i++)
        c[i].bytes = b.len;
    (void)snprintf(shape, sizeof(shape), "header of %d", TENSORS);
    report("json", shape, c, 3, 0, MOE_MEASURE_BYTES);
    moe_buf_fini(&b);
}

static void
bench_limits(struct moe_pool *pool, struct moe_measure_reader *reader)
{
    struct moe_measure_case read = moe_measure_reader_case(reader), fma;
    struct moe_measure_adder *adder;
    struct moe_err e = { 0, "" };
    char shape[32];

    check(moe_measure_adder_new(pool, moe_kernels(), &adder, &e), &e);
    fma = moe_measure_adder_case(adder);
    (void)snprintf(shape, sizeof(shape), "%d threads", moe_pool_size(pool));
    report("limit", shape, &read, 1, 1, MOE_MEASURE_TIME);
    report("limit", shape, &fma, 1, 1, MOE_MEASURE_TIME);
    moe_measure_adder_free(adder);
}

int
main(void)
{
    struct moe_measure_reader *reader;
    struct moe_err e = { 0, "" };
    struct moe_pool *pool;

    check(moe_pool_new(0, &pool, &e), &e);
    check(moe_measure_reader_new(pool, 0, &reader, &e), &e);
    bench_limits(pool, reader);
    bench_pool(pool);
    bench_stream(reader);
    bench_json();
    moe_measure_reader_free(reader);
    moe_pool_free(pool);
    return fflush(stdout) != 0;
}
