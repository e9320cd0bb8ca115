/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two models of a link, fitted by least squares, and the times of collectives
 * that follow from one (Thakur, Rabenseifner and Gropp, IJHPCA 2005).
 *
 *   alpha-beta   t = alpha + bytes / bandwidth
 *   contention   bw = base / (1 + k n)
 */
#ifndef MOE_SHARD_CURVE_H
#define MOE_SHARD_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define SHARD_CURVE_POINTS 4096     /* of a fit */

/* y = a + b x with the standard errors of both; NAN with two points. */
struct shard_curve_line { double a, b, se_a, se_b, rss; };

/*
 * Least squares over n points (1 to SHARD_CURVE_POINTS); relative: each row divided by y. Errors:
 * MOE_EUNSUP (fewer than two different x: a and b cannot be told apart).
 */
int shard_curve_line(const double *x, const double *y, size_t n, bool relative,
    struct shard_curve_line *out, struct moe_err *e);

/* base and k: through 1 / bw = 1 / base + k / base n, then least squares on bw itself. */
struct shard_curve_contention { double base, k, se_base, se_k, rss; };

int shard_curve_contention(const double *n, const double *bw, size_t points, bool refine,
    struct shard_curve_contention *out, struct moe_err *e);

/* Seconds of collectives among n ranks over S bytes, each rank's whole buffer. */
struct shard_curve_times { double ring_all_reduce, tree_all_reduce, ring_all_gather, all_to_all; };

struct shard_curve_times shard_curve_times(uint64_t n, double bytes, double alpha,
    double bandwidth);

/* Nodes that the k experts of a token are on, on the mean, when they are chosen alike. */
double shard_curve_nodes(uint64_t experts, uint64_t top_k, uint64_t nodes);

#endif
