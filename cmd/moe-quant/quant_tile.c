/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the work on one tile: from input to values to codes, the fast way where
 * a kernel goes from one to the other, and the figures of the report.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_calib.h"
#include "cmd/moe-quant/quant_tile.h"
#include "kernels/kernels.h"

uint64_t
quant_tile_rows(const struct quant_plan_item *x)
{
    uint64_t strip = quant_scheme_strip(&x->scheme), own = quant_input_strip(&x->in);
    uint64_t rows = QUANT_TILE_VALUES / x->cols;

    strip = strip > own ? strip : own;  /* powers of two */
    rows -= rows % strip;
    rows = rows < strip ? strip : rows;
    return rows < x->rows ? rows : x->rows;
}

static void
raise(size_t *to, uint64_t n)
{
    if (*to < n)
        *to = (size_t)n;
}

void
quant_tile_need(struct quant_tile_caps *c, const struct quant_plan_item *x)
{
    uint64_t rows, scales;

    if (x->scheme.codec == NULL) {
        raise(&c->in, x->len < QUANT_TILE_BYTES ? x->len : QUANT_TILE_BYTES);
        return;
    }
    rows = quant_tile_rows(x);
    scales = quant_scheme_scales(&x->scheme, rows, x->cols);
    if (quant_input_direct(&x->in))
        raise(&c->in, rows * x->cols * moe_dtype_bits(x->in.m.dtype) / 8);
    raise(&c->data, rows * quant_encode_row(&x->scheme, x->cols));
    raise(&c->scale, scales * quant_encode_scale(&x->scheme));
    raise(&c->zero, x->scheme.asym ? scales : 0);
    raise(&c->values, rows * x->cols);
    raise(&c->cols, x->cols);
}

int
quant_tile_init(struct quant_tile *t, const struct quant_tile_caps *c, struct moe_err *e)
{
    *t = (struct quant_tile){ .rc = 0 };
    t->in = malloc(c->in + 8);
    t->data = malloc(c->data + 8);
    t->scale = malloc(c->scale + 8);
    t->zero = malloc(c->zero + 8);
    if (t->in != NULL && t->data != NULL && t->scale != NULL && t->zero != NULL)
        return 0;
    quant_tile_fini(t);
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

void
quant_tile_fini(struct quant_tile *t)
{
    free(t->in);
    free(t->data);
    free(t->scale);
    free(t->zero);
    *t = (struct quant_tile){ .rc = 0 };
}

int
quant_tile_desk(struct quant_desk *d, const struct quant_tile_caps *c, bool measure,
    struct moe_err *e)
{
    *d = (struct quant_desk){ .x = malloc((c->values + 1) * sizeof(float)) };
    if (measure)
        d->y = malloc((c->values + 1) * sizeof(float));
    d->h = malloc((c->cols + 1) * sizeof(float));
    d->work = malloc((c->cols + 1) * sizeof(float));
    d->adjusted = malloc((c->values + 1) * sizeof(float));
    if (d->x != NULL && d->h != NULL && d->work != NULL && d->adjusted != NULL &&
        (d->y != NULL || !measure))
        return 0;
    quant_tile_desk_fini(d);
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

void
quant_tile_desk_fini(struct quant_desk *d)
{
    free(d->x);
    free(d->y);
    free(d->h);
    free(d->work);
    free(d->adjusted);
    quant_input_scratch_fini(&d->scratch);
    quant_input_scratch_fini(&d->lora);
    *d = (struct quant_desk){ .x = NULL };
}

/* ---- The fast way ------------------------------------------------------------- */

static bool
is_fast(const struct quant_plan_item *x)
{
    const struct quant_scheme *s = &x->scheme;

    return quant_input_direct(&x->in) && s->codec->grid == QUANT_GRID_INT && !s->asym &&
        s->search == QUANT_SEARCH_RTN && !x->redeal && x->lora == 0 && x->cols % 8 == 0;
}

/* Straight from the input to codes: RTN of symmetric whole numbers. */
static size_t
fast(struct quant_tile *t)
{
    const struct quant_plan_item *x = t->item;
    const struct moe_kernels *k = moe_kernels();
    size_t n = (size_t)(t->rows * x->cols), g = (size_t)x->scheme.group, bad;
    const uint16_t *half = (const uint16_t *)(const void *)t->in;
    const float *single = (const float *)(const void *)t->in;
    uint16_t *scale = (uint16_t *)(void *)t->scale;
    int8_t *q = (int8_t *)t->data;
    bool four = x->scheme.codec->bits == 4;

    g = g == 0 ? (size_t)x->cols : g;
    switch (x->in.m.dtype) {
    case MOE_BF16:
        bad = four ? k->quant_i4_bf16(t->data, scale, half, n, g) :
            k->quant_i8_bf16(q, scale, half, n, g);
        break;
    case MOE_F16:
        bad = four ? k->quant_i4_f16(t->data, scale, half, n, g) :
            k->quant_i8_f16(q, scale, half, n, g);
        break;
    default:
        bad = four ? k->quant_i4_f32(t->data, scale, single, n, g) :
            k->quant_i8_f32(q, scale, single, n, g);
    }
    for (size_t i = 0; !four && x->scheme.codec->packed && i < n; i += 8) {
        uint64_t w;

        memcpy(&w, t->data + i, 8);
        w ^= UINT64_C(0x8080808080808080);              /* stored as q + 128 */
        memcpy(t->data + i, &w, 8);
    }
    return bad;
}

/* ---- The general way ---------------------------------------------------------- */

static void
widen(const struct quant_tile *t, size_t n, float *x)
{
    const struct moe_kernels *k = moe_kernels();
    const uint16_t *half = (const uint16_t *)(const void *)t->in;

    if (t->item->in.m.dtype == MOE_BF16)
        k->bf16_f32(x, half, n);
    else if (t->item->in.m.dtype == MOE_F16)
        k->f16_f32(x, half, n);
    else
        memcpy(x, t->in, n * sizeof(*x));
}

int
quant_tile_load(struct quant_tile *t, struct moe_source *s, const struct quant_plan *p,
    struct quant_desk *d)
{
    size_t n = (size_t)(t->rows * t->item->cols), bad = 0;
    float mm[2];

    if (quant_input_direct(&t->item->in))
        widen(t, n, d->x);
    else
        t->rc = quant_input_rows(s, &t->item->in, t->item->name, t->row, t->rows, &d->scratch,
            d->x, &t->err);
    t->bad = 0;
    if (t->rc == 0 && t->item->lora != 0)
        t->rc = quant_lora_apply(p->lora, t->item->lora, t->row, t->rows, t->item->cols, &d->lora,
            d->x, &t->err);
    if (t->rc != 0 || (bad = moe_kernels()->range_f32(mm, d->x, n)) == 0)
        return t->rc;
    for (size_t i = n; i-- > 0;) {
        if (isfinite(d->x[i]))
            continue;
        t->first_bad = i;
        if (p->opt.nan_zero)
            d->x[i] = 0;
    }
    t->bad = p->opt.nan_zero ? 0 : bad;
    t->stats.nan_zeroed = p->opt.nan_zero ? bad : 0;
    return 0;
}

static void
measure_values(struct quant_tile *t, const float *h, const struct quant_desk *d)
{
    const struct moe_kernels *k = moe_kernels();
    size_t n = (size_t)(t->rows * t->item->cols);
    double err[3] = { 0, 0, 0 }, own[3] = { 0, 0, 0 };

    k->err_f32(err, d->x, d->y, n);
    k->err_f32(own, d->y, d->y, n);
    t->stats.values = n;
    t->stats.xx = err[0];
    t->stats.ee = err[1];
    t->stats.max_err = err[2];
    t->stats.yy = own[0];
    for (size_t i = 0; h != NULL && i < n; i++) {
        double e = (double)d->x[i] - (double)d->y[i], v = (double)d->x[i];

        t->stats.we += (double)h[i % t->item->cols] * e * e;
        t->stats.wx += (double)h[i % t->item->cols] * v * v;
    }
}

/* The codes once more, by the scales that are there, of values that make good what is lost. */
static void
compensate(struct quant_encode *w, const struct quant_gptq *g, struct quant_desk *d)
{
    memcpy(d->adjusted, d->x, (size_t)(w->rows * w->cols) * sizeof(*d->x));
    quant_gptq_adjust(g, w, d->adjusted, d->work);
    w->x = d->adjusted;
    w->given = true;
    w->stats = (struct quant_stats){ .nan_zeroed = w->stats.nan_zeroed };
    quant_encode_run(w);
}

void
quant_tile_work(struct quant_tile *t, struct moe_source *s, const struct quant_plan *p,
    bool measure, struct quant_desk *d)
{
    const struct quant_plan_item *x = t->item;
    struct quant_encode w = { .s = &x->scheme, .rows = t->rows, .cols = x->cols };
    struct quant_gptq g;

    if (!measure && p->calib == NULL && is_fast(x) && fast(t) == 0)
        return;
    if (quant_tile_load(t, s, p, d) != 0 || t->bad > 0)
        return;
    if (x->found == QUANT_IMATRIX_HERE) {
        if ((t->rc = quant_imatrix_read(p->imatrix, &x->weights, x->cols, d->h, &t->err)) != 0)
            return;
        w.h = d->h;
    }
    w.x = d->x;
    w.y = measure ? d->y : NULL;
    w.data = t->data;
    w.scale = t->scale;
    w.zero = t->zero;
    w.given = x->redeal;
    w.global = x->in.m.global;
    if (x->redeal)
        quant_input_scales(&x->in, &x->scheme, t->row, t->rows, &d->scratch, t->scale, t->zero);
    else if (quant_scheme_needs_range(&x->scheme))
        w.range = p->ranges[x->range];
    w.stats.nan_zeroed = t->stats.nan_zeroed;
    quant_encode_run(&w);
    if (p->calib != NULL && quant_calib_find(p->calib, x, &g))
        compensate(&w, &g, d);
    t->stats = w.stats;
    if (measure)
        measure_values(t, w.h, d);
}
