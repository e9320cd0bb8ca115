/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the search for scales: which ones are tried, and that only a smaller
 * error counts. Errors are sums in a fixed order (kernels/grid), so the choice
 * is the same on every processor.
 */
#include <math.h>

#include "cmd/moe-quant/quant_encode.h"
#include "cmd/moe-quant/quant_search.h"
#include "kernels/kernels.h"

#define CHUNK 4096

/*
 * By how much a candidate must be better: more than the rounding of two sums,
 * so that none that only seems better is taken.
 */
#define MARGIN 0.9999f

/* Shrinking steps: 1 - i / 100 as llm-compressor's observer has them, or wider and finer. */
static const struct { int from, to; float step; } steps[] = {
    [QUANT_SEARCH_RTN] = { 0, 0, 0 },
    [QUANT_SEARCH_MSE] = { 0, 20, 0.01f },
    [QUANT_SEARCH_WIDE] = { -10, 45, 0.01f },
};

struct best { uint16_t scale; int zero; float err; };

static float
error_of(const struct quant_scheme *s, const float *x, const float *h, size_t n, uint16_t scale,
    int zero)
{
    float lo = (float)(-(1 << (s->codec->bits - 1)) - zero);
    float hi = (float)((1 << (s->codec->bits - 1)) - 1 - zero);

    return moe_kernels()->err_int(x, h, n, quant_encode_widen(scale, s->scale), lo, hi);
}

static void
try(const struct quant_scheme *s, const float *x, const float *h, size_t n, uint16_t scale,
    int zero, struct best *b)
{
    float err;

    if ((scale == b->scale && zero == b->zero) ||
        !isfinite(quant_encode_widen(scale, s->scale)))
        return;
    err = error_of(s, x, h, n, scale, zero);
    if (err < b->err * MARGIN)
        *b = (struct best){ scale, zero, err };
}

/* The scale that fits the codes of the best one by least squares. */
static void
refit(const struct quant_scheme *s, const float *x, const float *h, size_t n, struct best *b)
{
    const struct moe_kernels *k = moe_kernels();
    float lo = (float)(-(1 << (s->codec->bits - 1))), hi = -lo - 1;
    double xq[2] = { 0, 0 }, qq[2] = { 0, 0 };
    int8_t q[CHUNK];

    for (size_t at = 0; at < n; at += CHUNK) {
        size_t m = n - at < CHUNK ? n - at : CHUNK;

        k->codes_int(q, x + at, m, quant_encode_widen(b->scale, s->scale), (float)b->zero, lo,
            hi);
        for (size_t i = 0; i < m; i++) {
            double c = q[i] - b->zero, w = h != NULL ? (double)h[at + i] * c : c;

            xq[i & 1] += w * (double)x[at + i];
            qq[i & 1] += w * c;
        }
    }
    if (qq[0] + qq[1] > 0)
        try(s, x, h, n, quant_encode_round((float)((xq[0] + xq[1]) / (qq[0] + qq[1])), s->scale),
            b->zero, b);
}

uint16_t
quant_search_int(const struct quant_scheme *s, const float *x, const float *h, size_t n,
    const float mm[2], uint16_t scale)
{
    float half = (float)(1 << (s->codec->bits - 1)), most = fmaxf(-mm[0], mm[1]);
    /* The largest magnitude on the lowest code, which has no opposite: its scale has a sign. */
    float low = (-mm[0] >= mm[1] ? most : -most) / half;
    struct best b = { scale, 0, error_of(s, x, h, n, scale, 0) };
    int to = steps[s->search].to;

    for (int i = steps[s->search].from; i < to; i++) {
        float shrink = 1 - (float)i * steps[s->search].step;

        try(s, x, h, n, quant_encode_round(most / (half - 0.5f) * shrink, s->scale), 0, &b);
        if (s->both)
            try(s, x, h, n, quant_encode_round(low * shrink, s->scale), 0, &b);
    }
    for (int i = 0; i < 2; i++)
        refit(s, x, h, n, &b);
    return b.scale;
}

uint16_t
quant_search_range(const struct quant_scheme *s, float lo, float hi, int *zero)
{
    float least = (float)(-(1 << (s->codec->bits - 1))), span = 2 * -least - 1;
    float scale = quant_encode_step(quant_encode_step(hi - lo, s->scale) / span, s->scale), z;

    if (!isfinite(scale))       /* max - min over the largest float */
        scale = quant_encode_step(hi / span - lo / span, s->scale);
    z = quant_encode_step(least - quant_encode_step(lo / scale, s->scale), s->scale);
    z = isnan(z) ? 0 : fminf(fmaxf(z, least), -least - 1);
    *zero = (int)rintf(z);
    return quant_encode_round(scale, s->scale);
}

uint16_t
quant_search_asym(const struct quant_scheme *s, const float *x, const float *h, size_t n,
    const float mm[2], uint16_t scale, int *zero)
{
    struct best b = { scale, *zero, error_of(s, x, h, n, scale, *zero) };

    for (int i = steps[s->search].from; i < steps[s->search].to; i++) {
        float shrink = 1 - (float)i * steps[s->search].step;
        int z;
        uint16_t c = quant_search_range(s, mm[0] * shrink, mm[1] * shrink, &z);

        try(s, x, h, n, c, z, &b);
        if (s->search == QUANT_SEARCH_WIDE) {
            try(s, x, h, n, c, z > -(1 << (s->codec->bits - 1)) ? z - 1 : z, &b);
            try(s, x, h, n, c, z < (1 << (s->codec->bits - 1)) - 1 ? z + 1 : z, &b);
        }
    }
    for (int i = 0; i < 2; i++)
        refit(s, x, h, n, &b);
    *zero = b.zero;
    return b.scale;
}

uint8_t
quant_search_mxfp4(const float *x, const float *h, size_t n, uint8_t scale)
{
    const struct moe_kernels *k = moe_kernels();
    float best = k->err_e2m1(x, h, n, moe_dtype_e8m0_f32(scale));
    uint8_t found = scale;

    for (int e = scale - 1; e <= scale + 1; e += 2) {
        float err;

        if (e < 1 || e > 254)   /* 2^-127 has no reciprocal */
            continue;
        err = k->err_e2m1(x, h, n, moe_dtype_e8m0_f32((uint8_t)e));
        if (err < best * MARGIN) {
            best = err;
            found = (uint8_t)e;
        }
    }
    return found;
}

uint8_t
quant_search_nvfp4(const struct quant_scheme *s, const float *x, const float *h, size_t n,
    float global, uint8_t scale)
{
    const struct moe_kernels *k = moe_kernels();
    float best = k->err_e2m1(x, h, n, moe_dtype_e4m3_f32(scale) / global);
    int reach = s->search == QUANT_SEARCH_WIDE ? 12 : 6;
    uint8_t found = scale;

    for (int c = scale - reach; c <= scale + reach; c++) {
        float err;

        if (c < 1 || c > 126 || c == scale)
            continue;
        err = k->err_e2m1(x, h, n, moe_dtype_e4m3_f32((uint8_t)c) / global);
        if (err < best * MARGIN) {
            best = err;
            found = (uint8_t)c;
        }
    }
    return found;
}
