/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring: what several cases take when they are run in turns, what is between
 * two of them with its confidence, and what this machine could read at most.
 *
 * Figures of different processes, or of one after the other, are not compared:
 * the memory of a machine has moods that last for seconds. So the limit is a
 * case like the others, run in the same rounds, and a ratio is taken round by
 * round. Nothing here prints; one thread uses a measurement.
 */
#ifndef MOE_SYSTEM_MEASURE_H
#define MOE_SYSTEM_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/pool.h"
#include "kernels/kernels.h"

/* ---- Runs in turns ---- */

typedef void moe_measure_fn(void *ctx);

struct moe_measure_case {
    const char *variant;        /* its name in the lines */
    moe_measure_fn *run;        /* do the work once */
    moe_measure_fn *prepare;    /* before each run, not timed; or NULL */
    void *ctx;
    uint64_t bytes, ops;        /* of one run; 0 = not counted */
};

struct moe_measure_plan {
    int rounds;                 /* 1..MOE_MEASURE_MAX_ROUNDS; 0 = 15 */
    uint64_t stretch_ns;        /* repeat a case in a round until it lasts this long */
};

#define MOE_MEASURE_MAX_ROUNDS 10000
#define MOE_MEASURE_MAX_CASES 64

/* Times of `cases` cases in `rounds` rounds: ns[c * rounds + r] is one run's, in ns. */
struct moe_measure {
    size_t cases, rounds;
    double *ns;
};

#define MOE_MEASURE_INIT { 0, 0, NULL }

/*
 * Run each case once to warm up and to see how long it takes, then rounds of
 * all cases, every other one in reverse. On 0 m is the caller's, to be ended
 * with moe_measure_fini(). Errors: MOE_ELIMIT, MOE_ENOMEM, MOE_ESTOP.
 */
int moe_measure_run(const struct moe_measure_case *c, size_t n,
    const struct moe_measure_plan *plan, struct moe_measure *m, struct moe_err *e);

void moe_measure_fini(struct moe_measure *m);

/* ---- What they tell ---- */

struct moe_measure_stat {
    double min, median, max;
};

/* Of n >= 1 values, which are sorted. */
struct moe_measure_stat moe_measure_stat(double *x, size_t n);

/*
 * The median of n >= 1 values, which are sorted, with the interval that holds the
 * true median with at least the confidence asked for, from order statistics:
 * nothing is assumed about the distribution. n < 6 cannot give 0.95: the interval
 * is then from the smallest to the largest, and `confidence` tells its worth.
 */
struct moe_measure_interval {
    double median, lo, hi, confidence;
};

struct moe_measure_interval moe_measure_interval(double *x, size_t n, double confidence);

/* What a ratio of two cases is of: > 1 means that the first does better. */
enum moe_measure_by {
    MOE_MEASURE_TIME,   /* time of limit / time of case */
    MOE_MEASURE_BYTES,  /* bytes a second of case / of limit */
    MOE_MEASURE_OPS     /* operations a second of case / of limit */
};

/* Case a against case b, round by round, with 95 % confidence. Errors: MOE_ENOMEM. */
int moe_measure_ratio(const struct moe_measure *m, const struct moe_measure_case *c, size_t a,
    size_t b, enum moe_measure_by by, struct moe_measure_interval *out, struct moe_err *e);

/*
 * Add one JSON line a case to b:
 *   op, shape, variant   the names
 *   ns, ns_min, ns_max   median, smallest and largest time of a run
 *   bytes, ops           of one run, null when not counted
 *   ratio, limit         against the variant named in limit; null without one,
 *   ratio_lo, ratio_hi, confidence    and its interval
 *   rounds
 * limit is the index of the case that the others are held against, or n for
 * none; its own line has no ratio. Errors: MOE_ENOMEM.
 */
int moe_measure_lines(struct moe_buf *b, const char *op, const char *shape,
    const struct moe_measure_case *c, size_t n, const struct moe_measure *m, size_t limit,
    enum moe_measure_by by, struct moe_err *e);

/* ---- Limits of the machine ---- */

/*
 * Each is a case like the others: its line tells what the machine gave in the
 * rounds in which the others ran, and they can be held against it.
 */

/* Reads of a buffer larger than the caches, by all threads of a pool. */
struct moe_measure_reader;

#define MOE_MEASURE_MAX_READ ((size_t)64 << 30)

/*
 * bytes 0: four times the last cache, at least 256 MiB. pool is borrowed.
 * Errors: MOE_ELIMIT, MOE_ENOMEM.
 */
int moe_measure_reader_new(struct moe_pool *pool, size_t bytes, struct moe_measure_reader **out,
    struct moe_err *e);

/* As a case: named "read", one run reads the buffer once. */
struct moe_measure_case moe_measure_reader_case(struct moe_measure_reader *r);

void moe_measure_reader_free(struct moe_measure_reader *r);

/* Multiply-adds of floats in registers, by all threads of a pool. */
struct moe_measure_adder;

/* pool and k are borrowed; k is the tier whose peak is wanted. Errors: MOE_ENOMEM. */
int moe_measure_adder_new(struct moe_pool *pool, const struct moe_kernels *k,
    struct moe_measure_adder **out, struct moe_err *e);

/* As a case: named "fma"; a multiply-add is two operations. */
struct moe_measure_case moe_measure_adder_case(struct moe_measure_adder *a);

void moe_measure_adder_free(struct moe_measure_adder *a);

#endif
