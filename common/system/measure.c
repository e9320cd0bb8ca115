/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the order of runs, the statistics of their times, and the lines they are
 * told in. Does not know what is measured.
 */
#include <math.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/base/stop.h"
#include "common/system/measure.h"
#include "kernels/kernels.h"

#define DEFAULT_ROUNDS 15
#define MAX_REPEATS 100000000U
#define CONFIDENCE 0.95

/* A huge page, and a job of the reader. */
#define CHUNK ((size_t)2 << 20)
#define MIN_READ ((size_t)256 << 20)
#define MAX_READ ((size_t)4 << 30)

/* A job of the adder is some 50 us, and a few of them keep all threads busy. */
#define ADD_STEPS 20000
#define ADD_JOBS 4

/* ---- Runs in turns --------------------------------------------------------------------- */

/* The time of one run in ns, from `times` of them. */
static double
stretch(const struct moe_measure_case *c, size_t times)
{
    uint64_t start, sum = 0;

    if (c->prepare == NULL) {
        start = moe_clock_ns();
        for (size_t i = 0; i < times; i++)
            c->run(c->ctx);
        sum = moe_clock_ns() - start;
    } else {
        for (size_t i = 0; i < times; i++) {
            c->prepare(c->ctx);
            start = moe_clock_ns();
            c->run(c->ctx);
            sum += moe_clock_ns() - start;
        }
    }
    return (double)sum / (double)times;
}

/* How often a case is run in a stretch: doubled until that lasts long enough. */
static size_t
repeats(const struct moe_measure_case *c, uint64_t stretch_ns)
{
    size_t times = 1;

    (void)stretch(c, 1);
    for (;;) {
        double one = stretch(c, times);

        if (one * (double)times >= (double)stretch_ns || times >= MAX_REPEATS)
            return times;
        times *= 2;
    }
}

int
moe_measure_run(const struct moe_measure_case *c, size_t n, const struct moe_measure_plan *plan,
    struct moe_measure *m, struct moe_err *e)
{
    size_t times[MOE_MEASURE_MAX_CASES], rounds;
    int rc = 0;

    *m = (struct moe_measure)MOE_MEASURE_INIT;
    if (n < 1 || n > MOE_MEASURE_MAX_CASES)
        return moe_err_set(e, MOE_ELIMIT, "%zu cases: not within 1 to %d", n,
            MOE_MEASURE_MAX_CASES);
    if (plan->rounds < 0 || plan->rounds > MOE_MEASURE_MAX_ROUNDS)
        return moe_err_set(e, MOE_ELIMIT, "%d rounds: not within 1 to %d", plan->rounds,
            MOE_MEASURE_MAX_ROUNDS);
    rounds = plan->rounds == 0 ? DEFAULT_ROUNDS : (size_t)plan->rounds;
    if ((m->ns = calloc(n * rounds, sizeof(*m->ns))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%zu rounds: out of memory", rounds);
    m->cases = n;
    m->rounds = rounds;
    for (size_t i = 0; i < n && rc == 0; i++) {
        times[i] = repeats(&c[i], plan->stretch_ns);
        rc = moe_stop_check(e);
    }
    for (size_t r = 0; r < rounds; r++)
        for (size_t k = 0; k < n && rc == 0; k++) {
            size_t i = r % 2 == 0 ? k : n - 1 - k;

            m->ns[i * rounds + r] = stretch(&c[i], times[i]);
            rc = moe_stop_check(e);
        }
    if (rc != 0)
        moe_measure_fini(m);
    return rc;
}

void
moe_measure_fini(struct moe_measure *m)
{
    free(m->ns);
    *m = (struct moe_measure)MOE_MEASURE_INIT;
}

/* ---- What they tell -------------------------------------------------------------------- */

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double
middle(const double *sorted, size_t n)
{
    return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/*
 * How many values are left out at each end of n sorted ones: the most for which
 * 1 - 2 P(B <= out) is still the confidence asked for, where B counts heads in n
 * tosses of a coin: the values below the true median (Conover, Practical
 * Nonparametric Statistics, 3.2). *got is the confidence.
 */
static size_t
left_out(size_t n, double confidence, double *got)
{
    /* P(B = 0), then P(B <= out): in logarithms, because 2^-n leaves the doubles. */
    double log_p = -(double)n * log(2), tail = exp(log_p);
    size_t out = 0;

    *got = 1 - 2 * tail;
    for (size_t k = 1; k < (n + 1) / 2; k++) {
        log_p += log((double)(n - k + 1) / (double)k);
        tail += exp(log_p);
        if (1 - 2 * tail < confidence)
            break;
        out = k;
        *got = 1 - 2 * tail;
    }
    return out;
}

struct moe_measure_stat
moe_measure_stat(double *x, size_t n)
{
    qsort(x, n, sizeof(*x), by_value);
    return (struct moe_measure_stat){ x[0], middle(x, n), x[n - 1] };
}

struct moe_measure_interval
moe_measure_interval(double *x, size_t n, double confidence)
{
    struct moe_measure_interval at;
    size_t out;

    qsort(x, n, sizeof(*x), by_value);
    out = left_out(n, confidence, &at.confidence);
    at.median = middle(x, n);
    at.lo = x[out];
    at.hi = x[n - 1 - out];
    return at;
}

/* What one run of a case counts as. */
static double
amount(const struct moe_measure_case *c, enum moe_measure_by by)
{
    switch (by) {
    case MOE_MEASURE_BYTES: return (double)c->bytes;
    case MOE_MEASURE_OPS: return (double)c->ops;
    default: return 1;
    }
}

int
moe_measure_ratio(const struct moe_measure *m, const struct moe_measure_case *c, size_t a,
    size_t b, enum moe_measure_by by, struct moe_measure_interval *out, struct moe_err *e)
{
    const double *x = m->ns + a * m->rounds, *y = m->ns + b * m->rounds;
    double scale = amount(&c[a], by) / amount(&c[b], by);
    double *ratio = malloc(m->rounds * sizeof(*ratio));

    if (ratio == NULL)
        return moe_err_set(e, MOE_ENOMEM, "measuring: out of memory");
    for (size_t r = 0; r < m->rounds; r++)
        ratio[r] = scale * y[r] / x[r];
    *out = moe_measure_interval(ratio, m->rounds, CONFIDENCE);
    free(ratio);
    return 0;
}

/* ---- Lines ----------------------------------------------------------------------------- */

static void
name_and_text(struct moe_jsonw *w, const char *name, const char *text)
{
    moe_jsonw_key(w, name);
    if (text == NULL)
        moe_jsonw_null(w);
    else
        moe_jsonw_str(w, text, strlen(text));
}

static void
name_and_real(struct moe_jsonw *w, const char *name, double v)
{
    moe_jsonw_key(w, name);
    moe_jsonw_real(w, v);
}

static void
name_and_count(struct moe_jsonw *w, const char *name, uint64_t v)
{
    moe_jsonw_key(w, name);
    if (v == 0)
        moe_jsonw_null(w);
    else
        moe_jsonw_uint(w, v);
}

/* Five digits: more would be noise. */
static double
rounded(double x)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%.5g", x);
    return strtod(text, NULL);
}

/* limit: the name of what ratio is against, or NULL. */
static void
line(struct moe_buf *b, const char *op, const char *shape, const struct moe_measure_case *c,
    struct moe_measure_stat ns, const char *limit, struct moe_measure_interval ratio,
    size_t rounds)
{
    struct moe_jsonw w = { b, false };

    moe_jsonw_open(&w, '{');
    name_and_text(&w, "op", op);
    name_and_text(&w, "shape", shape);
    name_and_text(&w, "variant", c->variant);
    name_and_real(&w, "ns", rounded(ns.median));
    name_and_real(&w, "ns_min", rounded(ns.min));
    name_and_real(&w, "ns_max", rounded(ns.max));
    name_and_count(&w, "bytes", c->bytes);
    name_and_count(&w, "ops", c->ops);
    name_and_real(&w, "ratio", rounded(ratio.median));
    name_and_text(&w, "limit", limit);
    name_and_real(&w, "ratio_lo", rounded(ratio.lo));
    name_and_real(&w, "ratio_hi", rounded(ratio.hi));
    name_and_real(&w, "confidence", rounded(ratio.confidence));
    name_and_count(&w, "rounds", rounds);
    moe_jsonw_close(&w, '}');
    moe_buf_byte(b, '\n');
}

int
moe_measure_lines(struct moe_buf *b, const char *op, const char *shape,
    const struct moe_measure_case *c, size_t n, const struct moe_measure *m, size_t limit,
    enum moe_measure_by by, struct moe_err *e)
{
    double *x = malloc(m->rounds * sizeof(*x));
    int rc = 0;

    for (size_t i = 0; x != NULL && rc == 0 && i < n; i++) {
        struct moe_measure_interval ratio = { NAN, NAN, NAN, NAN };
        bool against = limit < n && limit != i;

        memcpy(x, m->ns + i * m->rounds, m->rounds * sizeof(*x));
        if (against)
            rc = moe_measure_ratio(m, c, i, limit, by, &ratio, e);
        if (rc == 0)
            line(b, op, shape, &c[i], moe_measure_stat(x, m->rounds),
                against ? c[limit].variant : NULL, ratio, m->rounds);
    }
    if (rc == 0 && (x == NULL || b->bad))
        rc = moe_err_set(e, MOE_ENOMEM, "measuring: out of memory");
    free(x);
    return rc;
}

/* ---- Limits of the machine --------------------------------------------------------------- */

struct moe_measure_reader {
    struct moe_pool *pool;
    unsigned char *p;
    size_t len;                     /* a multiple of CHUNK */
    uint64_t sum[MOE_POOL_MAX][8];  /* what was read goes somewhere; a cache line each */
};

/* Touch chunk i: the pages are made by a thread that will read some of them. */
static void
fill_chunk(void *ctx, size_t i, int w)
{
    struct moe_measure_reader *r = ctx;
    uint64_t *p = (uint64_t *)(void *)(r->p + i * CHUNK);

    (void)w;
    for (size_t k = 0; k < CHUNK / sizeof(*p); k++)
        p[k] = i + k;
}

/* By the widest loads that the kernels have, which come nearer to the memory than a plain loop. */
static void
read_chunk(void *ctx, size_t i, int w)
{
    struct moe_measure_reader *r = ctx;
    const uint64_t *p = (const uint64_t *)(const void *)(r->p + i * CHUNK);

    r->sum[w][0] ^= moe_kernels()->xor_u64(p, CHUNK / sizeof(*p));
}

static void
read_all(void *ctx)
{
    struct moe_measure_reader *r = ctx;

    moe_pool_run(r->pool, r->len / CHUNK, read_chunk, r);
}

int
moe_measure_reader_new(struct moe_pool *pool, size_t bytes, struct moe_measure_reader **out,
    struct moe_err *e)
{
    struct moe_measure_reader *r;
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    char human[32], most[32];

    *out = NULL;
    if (bytes == 0) {
        bytes = cache > 0 ? 4 * (size_t)cache : 0;
        bytes = bytes < MIN_READ ? MIN_READ : bytes;
        bytes = bytes > MAX_READ ? MAX_READ : bytes;
    }
    if (bytes > MOE_MEASURE_MAX_READ)
        return moe_err_set(e, MOE_ELIMIT, "%s to read: more than %s",
            moe_num_human(human, sizeof(human), bytes),
            moe_num_human(most, sizeof(most), MOE_MEASURE_MAX_READ));
    if ((r = calloc(1, sizeof(*r))) != NULL) {
        r->pool = pool;
        r->len = (bytes + CHUNK - 1) / CHUNK * CHUNK;
        r->p = aligned_alloc(CHUNK, r->len);
    }
    if (r == NULL || r->p == NULL) {
        free(r);
        return moe_err_set(e, MOE_ENOMEM, "%s to read: out of memory",
            moe_num_human(human, sizeof(human), bytes));
    }
    (void)madvise(r->p, r->len, MADV_HUGEPAGE);
    moe_pool_run(pool, r->len / CHUNK, fill_chunk, r);
    *out = r;
    return 0;
}

struct moe_measure_case
moe_measure_reader_case(struct moe_measure_reader *r)
{
    return (struct moe_measure_case){ .variant = "read", .run = read_all, .ctx = r,
        .bytes = r->len };
}

void
moe_measure_reader_free(struct moe_measure_reader *r)
{
    if (r == NULL)
        return;
    free(r->p);
    free(r);
}

struct moe_measure_adder {
    struct moe_pool *pool;
    const struct moe_kernels *k;
    alignas(64) float x[MOE_POOL_MAX][MOE_CHAINS];
};

static void
add_chains(void *ctx, size_t i, int w)
{
    struct moe_measure_adder *a = ctx;

    (void)i;
    /* To 2, from wherever: nothing grows, and nothing becomes subnormal. */
    a->k->chains_f32(a->x[w], 0.5f, 1.0f, ADD_STEPS);
}

static size_t
add_jobs(const struct moe_measure_adder *a)
{
    return ADD_JOBS * (size_t)moe_pool_size(a->pool);
}

static void
add_all(void *ctx)
{
    struct moe_measure_adder *a = ctx;

    moe_pool_run(a->pool, add_jobs(a), add_chains, a);
}

int
moe_measure_adder_new(struct moe_pool *pool, const struct moe_kernels *k,
    struct moe_measure_adder **out, struct moe_err *e)
{
    struct moe_measure_adder *a = aligned_alloc(alignof(struct moe_measure_adder), sizeof(*a));

    *out = NULL;
    if (a == NULL)
        return moe_err_set(e, MOE_ENOMEM, "measuring: out of memory");
    memset(a, 0, sizeof(*a));
    a->pool = pool;
    a->k = k;
    *out = a;
    return 0;
}

struct moe_measure_case
moe_measure_adder_case(struct moe_measure_adder *a)
{
    return (struct moe_measure_case){ .variant = "fma", .run = add_all, .ctx = a,
        .ops = (uint64_t)add_jobs(a) * 2 * MOE_CHAINS * ADD_STEPS };
}

void
moe_measure_adder_free(struct moe_measure_adder *a)
{
    free(a);
}
