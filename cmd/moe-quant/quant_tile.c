/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the arithmetic of one tile: the kernels called, and the figures of the
 * report. Reads and writes no files.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_tile.h"
#include "kernels/kernels.h"

#define CHUNK 4096              /* values measured at a time, a multiple of every group */

int
quant_tile_init(struct quant_tile *t, size_t cap, struct moe_err *e)
{
    *t = (struct quant_tile){ .rc = 0 };
    t->in = malloc(cap);
    t->codes = malloc(cap / 2 + 1);
    t->scales = malloc((cap / 64 + 1) * sizeof(*t->scales));
    if (t->in != NULL && t->codes != NULL && t->scales != NULL)
        return 0;
    quant_tile_fini(t);
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

void
quant_tile_fini(struct quant_tile *t)
{
    free(t->in);
    free(t->codes);
    free(t->scales);
    *t = (struct quant_tile){ .rc = 0 };
}

size_t
quant_tile_codes(const struct quant_tile *t, int bits)
{
    return (size_t)(t->rows * t->item->cols * (uint64_t)bits / 8);
}

size_t
quant_tile_scales(const struct quant_tile *t)
{
    return (size_t)(t->rows * (t->item->cols / t->item->group));
}

static size_t
quantise(struct quant_tile *t, int bits)
{
    const struct moe_kernels *k = moe_kernels();
    size_t n = (size_t)(t->rows * t->item->cols), g = (size_t)t->item->group;
    const uint16_t *half = (const uint16_t *)(const void *)t->in;
    const float *single = (const float *)(const void *)t->in;
    int8_t *q = (int8_t *)t->codes;

    switch (t->item->dtype) {
    case MOE_BF16:
        return bits == 4 ? k->quant_i4_bf16(t->codes, t->scales, half, n, g) :
            k->quant_i8_bf16(q, t->scales, half, n, g);
    case MOE_F16:
        return bits == 4 ? k->quant_i4_f16(t->codes, t->scales, half, n, g) :
            k->quant_i8_f16(q, t->scales, half, n, g);
    default:
        return bits == 4 ? k->quant_i4_f32(t->codes, t->scales, single, n, g) :
            k->quant_i8_f32(q, t->scales, single, n, g);
    }
}

/* n values of the input from value `at`, as float. */
static void
values(const struct quant_tile *t, size_t at, size_t n, float *x)
{
    const struct moe_kernels *k = moe_kernels();
    const uint16_t *half = (const uint16_t *)(const void *)t->in + at;

    if (t->item->dtype == MOE_BF16)
        k->bf16_f32(x, half, n);
    else if (t->item->dtype == MOE_F16)
        k->f16_f32(x, half, n);
    else
        memcpy(x, t->in + at * sizeof(*x), n * sizeof(*x));
}

/*
 * One group: zero or not, what was clipped, the range of its scale. A value is
 * clipped when the nearest code does not exist: x >= 7.5 scale, or x < -8.5
 * scale (127.5 and -128.5). n is a multiple of 32; lanes let the compiler work
 * on several values at once.
 */
static void
measure_group(struct quant_tile_stats *s, const float *x, size_t n, float scale, int bits)
{
    float lo = -((float)(1 << (bits - 1)) + 0.5f) * scale;
    float hi = ((float)(1 << (bits - 1)) - 0.5f) * scale;
    uint32_t clipped[16] = { 0 }, any[16] = { 0 };

    for (size_t i = 0; i < n; i += 16) {
        for (size_t l = 0; l < 16; l++) {
            float v = x[i + l];

            clipped[l] += (uint32_t)(v >= hi) + (uint32_t)(v < lo);
            any[l] |= (uint32_t)(v != 0);
        }
    }
    for (size_t l = 1; l < 16; l++) {
        clipped[0] += clipped[l];
        any[0] |= any[l];
    }
    s->groups++;
    s->zero_groups += any[0] == 0;
    s->clipped += clipped[0];
    s->scale_min = scale < s->scale_min ? scale : s->scale_min;
    s->scale_max = scale > s->scale_max ? scale : s->scale_max;
}

static void
measure(struct quant_tile *t, int bits)
{
    const struct moe_kernels *k = moe_kernels();
    size_t n = (size_t)(t->rows * t->item->cols), g = (size_t)t->item->group;
    bool f16 = t->item->dtype == MOE_F16;
    float x[CHUNK], y[CHUNK], scale[CHUNK / 32];
    double err[3] = { 0, 0, 0 };

    t->stats = (struct quant_tile_stats){ .values = n, .scale_min = INFINITY };
    for (size_t at = 0; at < n; at += CHUNK) {
        size_t m = n - at < CHUNK ? n - at : CHUNK;
        const uint16_t *s = t->scales + at / g;

        values(t, at, m, x);
        if (f16)
            k->f16_f32(scale, s, m / g);
        else
            k->bf16_f32(scale, s, m / g);
        if (bits == 4) {
            k->dequant_i4(y, t->codes + at / 2, s, m, g, f16);
        } else {
            for (size_t i = 0; i < m; i++)
                y[i] = (float)(int8_t)t->codes[at + i] * scale[i / g];
        }
        k->err_f32(err, x, y, m);
        for (size_t i = 0; i < m; i += g)
            measure_group(&t->stats, x + i, g, scale[i / g], bits);
    }
    t->stats.xx = err[0];
    t->stats.ee = err[1];
    t->stats.max_err = err[2];
}

void
quant_tile_work(struct quant_tile *t, int bits, bool want_stats)
{
    size_t n = (size_t)(t->rows * t->item->cols);

    t->bad = quantise(t, bits);
    if (t->bad == 0 && want_stats)
        measure(t, bits);
    for (size_t i = 0; bits == 8 && i < n; i += 8) {    /* groups are multiples of 32 */
        uint64_t w;

        memcpy(&w, t->codes + i, 8);
        w ^= UINT64_C(0x8080808080808080);              /* stored as q + 128 */
        memcpy(t->codes + i, &w, 8);
    }
}

void
quant_tile_merge(struct quant_tile_stats *a, const struct quant_tile_stats *b)
{
    if (b->values == 0)
        return;
    a->scale_min = a->values == 0 ? b->scale_min : fminf(a->scale_min, b->scale_min);
    a->scale_max = fmaxf(a->scale_max, b->scale_max);
    a->xx += b->xx;
    a->ee += b->ee;
    a->max_err = fmax(a->max_err, b->max_err);
    a->values += b->values;
    a->groups += b->groups;
    a->zero_groups += b->zero_groups;
    a->clipped += b->clipped;
}

size_t
quant_tile_first_bad(const struct quant_tile *t)
{
    size_t n = (size_t)(t->rows * t->item->cols), i = 0;
    float x = 0;

    for (; i < n; i++) {
        values(t, i, 1, &x);
        if (!isfinite(x))
            break;
    }
    return i;
}
