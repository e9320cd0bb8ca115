/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the factor and the adjusting. What inputs are is quant_calib.c's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_gptq.h"
#include "kernels/kernels.h"

/* ---- The factor ---------------------------------------------------------------------- */

struct ranked { float moment; uint32_t col; };

static int
larger(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    return x->moment > y->moment ? -1 : x->moment < y->moment ? 1 : x->col < y->col ? -1 :
        x->col > y->col;
}

static float
moment(const float *h, size_t cols, size_t i, size_t j)
{
    return i < j ? h[i * cols + j] : h[j * cols + i];
}

uint64_t
quant_gptq_space(size_t cols)
{
    return (uint64_t)cols * cols * sizeof(double) + (uint64_t)cols * sizeof(struct ranked);
}

/* sum of a[k] * b[k], in four lanes. */
static double
dot(const double *a, const double *b, size_t n)
{
    double s[4] = { 0, 0, 0, 0 };
    size_t k = 0;

    for (; k + 4 <= n; k += 4) {
        for (size_t l = 0; l < 4; l++)
            s[l] += a[k + l] * b[k + l];
    }
    for (; k < n; k++)
        s[0] += a[k] * b[k];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/* a [d][d], of which the upper triangle is A, becomes R, upper, with A = R R^T. */
static bool
reverse_cholesky(double *a, size_t d)
{
    for (size_t j = d; j-- > 0;) {
        double *rj = a + j * d, v = rj[j] - dot(rj + j + 1, rj + j + 1, d - j - 1);

        if (!(v > 0) || !isfinite(v))
            return false;
        rj[j] = sqrt(v);
        for (size_t i = 0; i < j; i++) {
            double *ri = a + i * d;

            ri[j] = (ri[j] - dot(ri + j + 1, rj + j + 1, d - j - 1)) / rj[j];
        }
    }
    return true;
}

/* R to its inverse U, in place, from the last row up. */
static void
invert(double *r, size_t d)
{
    for (size_t i = d; i-- > 0;) {
        double *ri = r + i * d, inv = 1 / ri[i];

        /* Row i of U: -(row i of R right of the diagonal) U / R[i][i]; U is there below it. */
        for (size_t k = i + 1; k < d; k++)
            ri[k] *= -inv;
        for (size_t k = d; k-- > i + 1;) {
            double c = ri[k];
            const double *uk = r + k * d;

            ri[k] = c * uk[k];
            for (size_t j = k + 1; j < d; j++)
                ri[j] += c * uk[j];
        }
        ri[i] = inv;
    }
}

int
quant_gptq_factor(const float *h, size_t cols, float *u, uint32_t *order, struct moe_err *e)
{
    struct ranked *rank = malloc((cols + 1) * sizeof(*rank));
    double *a = malloc((cols * cols + 1) * sizeof(*a)), mean = 0;
    int rc = 0;

    if (rank == NULL || a == NULL) {
        rc = moe_err_set(e, MOE_ENOMEM, "calibration: out of memory");
        goto out;
    }
    for (size_t i = 0; i < cols; i++) {
        rank[i] = (struct ranked){ h[i * cols + i], (uint32_t)i };
        mean += (double)h[i * cols + i] / (double)cols;
    }
    if (!(mean > 0) || !isfinite(mean)) {
        rc = moe_err_set(e, MOE_EFORMAT, "calibration: inputs that are no numbers");
        goto out;
    }
    qsort(rank, cols, sizeof(*rank), larger);
    for (size_t i = 0; i < cols; i++) {
        order[i] = rank[i].col;
        for (size_t j = i; j < cols; j++)
            a[i * cols + j] = moment(h, cols, rank[i].col, rank[j].col) / mean;
        /* What never came in has a moment of its own, so that there is an inverse. */
        a[i * cols + i] += a[i * cols + i] > 0 ? QUANT_GPTQ_DAMP : 1;
    }
    for (size_t i = 0; i < cols; i++) {
        for (size_t j = 0; j < i; j++)
            a[i * cols + j] = 0;
    }
    if (!reverse_cholesky(a, cols))
        rc = moe_err_set(e, MOE_EFORMAT, "calibration: moments that are not positive definite");
    if (rc == 0) {
        invert(a, cols);
        for (size_t i = 0; i < cols * cols; i++)
            u[i] = (float)a[i];
    }
out:
    free(rank);
    free(a);
    return rc;
}

/* ---- Adjusting ------------------------------------------------------------------------- */

/* The value that x decodes to by a scale. */
static float
rounded(float x, float scale, float zero, float half)
{
    float q = x / scale + zero;

    q = q > half - 1 ? half - 1 : q;
    q = q < -half ? -half : q;
    return (rintf(q) - zero) * scale;
}

static void
adjust_row(const struct quant_gptq *g, const struct quant_encode *w, uint64_t r, float *x,
    float *work)
{
    uint64_t group = w->s->group == 0 ? w->cols : w->s->group, per_row = w->cols / group;
    float half = (float)(1 << (w->s->codec->bits - 1));
    const struct moe_kernels *k = moe_kernels();
    size_t n = g->cols;

    for (size_t j = 0; j < n; j++)
        work[j] = x[g->order[j]];
    for (size_t j = 0; j < n; j++) {
        const float *u = g->u + j * n;
        size_t at = (size_t)(r * per_row + g->order[j] / group);
        float zero = w->s->asym ? (float)w->zero[at] : 0;
        float y = rounded(work[j], quant_encode_scale_at(w, at), zero, half);

        x[g->order[j]] = work[j];
        k->axpy_f32(work + j + 1, u + j + 1, -(work[j] - y) / u[j], n - j - 1);
    }
}

void
quant_gptq_adjust(const struct quant_gptq *g, const struct quant_encode *w, float *x, float *work)
{
    for (uint64_t r = 0; r < w->rows; r++)
        adjust_row(g, w, r, x + r * w->cols, work);
}
