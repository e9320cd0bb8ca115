/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the arithmetic of fits and of collectives.
 */
#include <math.h>

#include "cmd/moe-shard/shard_curve.h"

#define STEPS 200       /* of the refinement, at most */

int
shard_curve_line(const double *x, const double *y, size_t n, bool relative,
    struct shard_curve_line *out, struct moe_err *e)
{
    double w = 0, mx = 0, my = 0, sxx = 0, sxy = 0, var;

    /* Weighted means first: what is left is small, and rounding with it. */
    for (size_t i = 0; i < n; i++) {
        double v = relative ? 1 / (y[i] * y[i]) : 1;

        w += v;
        mx += v * x[i];
        my += v * y[i];
    }
    mx /= w;
    my /= w;
    for (size_t i = 0; i < n; i++) {
        double v = relative ? 1 / (y[i] * y[i]) : 1;

        sxx += v * (x[i] - mx) * (x[i] - mx);
        sxy += v * (x[i] - mx) * (y[i] - my);
    }
    if (n < 2 || !(sxx > 1e-18 * w * (mx * mx + 1)))
        return moe_err_set(e, MOE_EUNSUP, "all points are at one place: the two numbers cannot be"
            " told apart");
    out->b = sxy / sxx;
    out->a = my - out->b * mx;
    out->rss = 0;
    for (size_t i = 0; i < n; i++) {
        double r = y[i] - out->a - out->b * x[i];

        out->rss += r * r * (relative ? 1 / (y[i] * y[i]) : 1);
    }
    var = n > 2 ? out->rss / (double)(n - 2) : NAN;
    out->se_b = sqrt(var / sxx);
    out->se_a = sqrt(var * (1 / w + mx * mx / sxx));
    return 0;
}

static double
residual(const double *n, const double *bw, size_t points, double base, double k)
{
    double rss = 0;

    for (size_t i = 0; i < points; i++) {
        double r = bw[i] - base / (1 + k * n[i]);

        rss += r * r;
    }
    return rss;
}

/* Gauss and Newton, the step halved until it helps. */
static void
refine_fit(const double *n, const double *bw, size_t points, struct shard_curve_contention *c)
{
    double a = 0, b = 0, d = 0, det;

    c->rss = residual(n, bw, points, c->base, c->k);
    for (int step = 0; step < STEPS; step++) {
        double p = 0, q = 0, db, dk;

        a = b = d = 0;
        for (size_t i = 0; i < points; i++) {
            double f = 1 / (1 + c->k * n[i]), jb = f, jk = -c->base * n[i] * f * f;
            double r = bw[i] - c->base * f;

            a += jb * jb;
            b += jb * jk;
            d += jk * jk;
            p += jb * r;
            q += jk * r;
        }
        det = a * d - b * b;
        if (!(fabs(det) > 0))
            return;
        db = (d * p - b * q) / det;
        dk = (a * q - b * p) / det;
        for (int half = 0; half < 30; half++) {
            double scale = ldexp(1, -half);
            double rss = residual(n, bw, points, c->base + scale * db, c->k + scale * dk);

            if (rss < c->rss) {
                c->base += scale * db;
                c->k += scale * dk;
                c->rss = rss;
                break;
            }
        }
        if (fabs(db) <= 1e-13 * fabs(c->base) && fabs(dk) <= 1e-13 * (fabs(c->k) + 1e-6))
            break;
    }
    det = a * d - b * b;
    if (points > 2) {
        double var = c->rss / (double)(points - 2);

        c->se_base = sqrt(var * d / det);
        c->se_k = sqrt(var * a / det);
    }
}

int
shard_curve_contention(const double *n, const double *bw, size_t points, bool refine,
    struct shard_curve_contention *out, struct moe_err *e)
{
    double inverse[SHARD_CURVE_POINTS];
    struct shard_curve_line l;
    int rc;

    for (size_t i = 0; i < points; i++)
        inverse[i] = 1 / bw[i];
    if ((rc = shard_curve_line(n, inverse, points, false, &l, e)) != 0)
        return rc;
    if (!(l.a > 0))
        return moe_err_set(e, MOE_EUNSUP, "the points are not of a link that is shared: bandwidth"
            " grows without end as n falls");
    *out = (struct shard_curve_contention){ 1 / l.a, l.b / l.a, NAN, NAN, l.rss };
    if (refine && points > 2)
        refine_fit(n, bw, points, out);
    return 0;
}

struct shard_curve_times
shard_curve_times(uint64_t n, double bytes, double alpha, double bandwidth)
{
    double k = (double)n, part = bytes / bandwidth;
    uint64_t levels = 0;

    while ((UINT64_C(1) << levels) < n)
        levels++;
    return (struct shard_curve_times){
        .ring_all_reduce = 2 * (k - 1) * alpha + 2 * (k - 1) / k * part,
        .tree_all_reduce = 2 * (double)levels * alpha + (n > 1 ? 2 * part : 0),
        .ring_all_gather = (k - 1) * alpha + (k - 1) / k * part,
        .all_to_all = (k - 1) * (alpha + part / k),
    };
}

double
shard_curve_nodes(uint64_t experts, uint64_t top_k, uint64_t nodes)
{
    double none = 1;    /* that a token has nothing on one node */

    if (nodes == 1)
        return 1;
    for (uint64_t i = 0; i < top_k; i++) {
        double left = (double)(experts - experts / nodes) - (double)i;

        none *= (left > 0 ? left : 0) / (double)(experts - i);
    }
    return (double)nodes * (1 - none);
}
