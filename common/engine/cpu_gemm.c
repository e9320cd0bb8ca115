/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns matrix products on the processor: activations are made ready (rounded to
 * int8 where the arithmetic asks, rows of one product brought together), then
 * every product is cut into strips of weight rows, and workers take strips.
 * Which worker takes what, and how wide strips are, changes no result: an
 * element of the output is one call's dot product.
 */
#include <string.h>

#include "common/engine/cpu_device.h"

#define STRIP 16            /* rows a strip is a multiple of */
#define MOST_STRIP 64
#define TILE 64             /* rows of activations a strip takes at a time */

/* Rows of int8 activations that several products read. */
struct source {
    struct moe_rows x;
    size_t cols, group, n;
    int8_t *q;              /* [n][cols] */
    float *scale;           /* [n][cols / group] */
    int32_t *sum;
};

struct ready {              /* a product with its activations */
    const struct moe_product *p;
    struct source *from;    /* int8 only */
    struct moe_acts acts;
    bool gather;
    size_t strips_before;   /* of all earlier products */
};

struct gemm {
    struct moe_cpu *c;
    struct ready *ready;    /* [count] */
    struct source *sources; /* [n_sources] */
    size_t count, n_sources, strip, strips;
};

/* Cuts space into 64-byte aligned parts; with p NULL it only counts. */
struct cutter {
    unsigned char *p;
    size_t at;
};

static void *
cut(struct cutter *t, size_t n, size_t size)
{
    void *p = t->p == NULL ? NULL : t->p + t->at;

    t->at += (n * size + 63) / 64 * 64;
    return p;
}

/* Rows of x that p reads: one past the last. */
static size_t
rows_read(const struct moe_product *p)
{
    size_t n = 0;

    if (p->rows == NULL)
        return p->n;
    for (size_t i = 0; i < p->n; i++)
        n = p->rows[i] + 1 > n ? p->rows[i] + 1 : n;
    return n;
}

static struct source *
source_of(struct gemm *g, const struct moe_product *p)
{
    size_t n = rows_read(p);
    struct source *s = g->n_sources == 0 ? NULL : &g->sources[g->n_sources - 1];

    if (s == NULL || s->x.at.mem != p->x.at.mem || s->x.at.at != p->x.at.at
        || s->cols != p->w->cols || s->group != p->w->blocks.group) {
        s = &g->sources[g->n_sources++];
        *s = (struct source){ .x = p->x, .cols = p->w->cols, .group = p->w->blocks.group };
    }
    s->n = n > s->n ? n : s->n;
    return s;
}

/* Space for activations of all sources and products, in t. */
static void
lay_out(struct gemm *g, struct cutter *t)
{
    for (size_t i = 0; i < g->n_sources; i++) {
        struct source *s = &g->sources[i];

        s->q = cut(t, s->n, s->cols);
        s->scale = cut(t, s->n * (s->cols / s->group), sizeof(float));
        s->sum = cut(t, s->n * (s->cols / s->group), sizeof(int32_t));
    }
    for (size_t i = 0; i < g->count; i++) {
        struct ready *r = &g->ready[i];
        size_t n = r->p->n, cols = r->p->w->cols;

        if (r->gather && r->from != NULL) {
            r->acts.q = cut(t, n, cols);
            r->acts.scale = cut(t, n * (cols / r->from->group), sizeof(float));
            r->acts.sum = cut(t, n * (cols / r->from->group), sizeof(int32_t));
        } else if (r->gather) {
            r->acts.x = cut(t, n, r->p->x.ld * sizeof(float));
        }
    }
}

/* Point at activations that stay where they are. */
static void
in_place(struct ready *r)
{
    const struct moe_product *p = r->p;
    size_t first = p->rows == NULL ? 0 : p->rows[0];

    r->acts.ldx = p->x.ld;
    if (r->gather)
        return;
    if (r->from == NULL) {
        r->acts.x = moe_cpu_row(p->x, first);
    } else {
        size_t groups = r->from->cols / r->from->group;

        r->acts.q = r->from->q + first * r->from->cols;
        r->acts.scale = r->from->scale + first * groups;
        r->acts.sum = r->from->sum + first * groups;
    }
}

/* Activations of source i to int8. */
static void
round_source(void *ctx, size_t i, int w)
{
    const struct gemm *g = ctx;
    const struct source *s = &g->sources[i];

    (void)w;
    g->c->k->quant_act_i8(s->q, s->scale, s->sum, moe_cpu_row(s->x, 0), s->x.ld, s->cols,
        s->group, s->n);
}

/* One large source, cut by rows. */
static void
round_rows(void *ctx, size_t i, int w)
{
    const struct gemm *g = ctx;
    const struct source *s = &g->sources[0];
    size_t pieces = moe_cpu_device_pieces(g->c, s->n, 4), groups = s->cols / s->group;
    size_t begin = s->n * i / pieces, end = s->n * (i + 1) / pieces;

    (void)w;
    g->c->k->quant_act_i8(s->q + begin * s->cols, s->scale + begin * groups,
        s->sum + begin * groups, moe_cpu_row(s->x, begin), s->x.ld, s->cols, s->group,
        end - begin);
}

static void
round_all(struct gemm *g)
{
    size_t work = 0;

    for (size_t i = 0; i < g->n_sources; i++)
        work += 4 * g->sources[i].n * g->sources[i].cols;
    if (g->n_sources == 1)
        moe_cpu_device_run(g->c, moe_cpu_device_pieces(g->c, g->sources[0].n, 4), work,
            round_rows, g);
    else if (g->n_sources > 1)
        moe_cpu_device_run(g->c, g->n_sources, work, round_source, g);
}

/* Bring the rows of product i together. */
static void
gather(void *ctx, size_t i, int w)
{
    const struct gemm *g = ctx;
    struct ready *r = &g->ready[i];
    const struct moe_product *p = r->p;
    size_t cols = p->w->cols;

    (void)w;
    if (!r->gather)
        return;
    for (size_t j = 0; j < p->n; j++) {
        size_t row = p->rows[j];

        if (r->from == NULL) {
            memcpy((float *)r->acts.x + j * p->x.ld, moe_cpu_row(p->x, row),
                cols * sizeof(float));
        } else {
            size_t groups = cols / r->from->group;

            memcpy((int8_t *)r->acts.q + j * cols, r->from->q + row * cols, cols);
            memcpy((float *)r->acts.scale + j * groups, r->from->scale + row * groups,
                groups * sizeof(float));
            memcpy((int32_t *)r->acts.sum + j * groups, r->from->sum + row * groups,
                groups * sizeof(int32_t));
        }
    }
}

/* Activations from row j on. */
static struct moe_acts
acts_from(const struct ready *r, size_t j)
{
    struct moe_acts a = r->acts;

    if (a.q != NULL) {
        size_t cols = r->p->w->cols, groups = cols / r->p->w->blocks.group;

        a.q += j * cols;
        a.scale += j * groups;
        a.sum += j * groups;
    } else {
        a.x += j * a.ldx;
    }
    return a;
}

static void
add_bias(const struct moe_matrix *m, size_t first, size_t rows, float *out)
{
    const float *bias = moe_cpu_at(m->bias);

    if (bias == NULL)
        return;
    for (size_t r = 0; r < rows; r++)
        out[r] += bias[first + r];
}

/* A strip of gate rows and one of up rows; up is unused when they alternate. */
struct gated {
    struct moe_strip gate, up;
    size_t first;
    float *both;            /* [TILE][2 * MOST_STRIP] */
};

/* g * sigmoid(alpha * g) * (u + 1), both clamped, in place of the gate's numbers. */
static void
join_clamped(const struct gemm *g, const struct moe_product *p, float *out, float *gate,
    float *up, size_t rows)
{
    for (size_t r = 0; r < rows; r++) {
        float u = up[r] > p->limit ? p->limit : up[r] < -p->limit ? -p->limit : up[r];

        gate[r] = p->alpha * (gate[r] > p->limit ? p->limit : gate[r]);
        up[r] = u + 1;
    }
    /* silu(alpha g) is alpha times what is wanted. */
    g->c->k->silu_mul_f32(out, gate, up, rows);
    for (size_t r = 0; r < rows; r++)
        out[r] /= p->alpha;
}

/* The same of packed blocks, 16 gate rows beside their 16 up rows. */
static void
join_paired(const struct gemm *g, const struct moe_product *p, size_t first, float *out,
    float *both, size_t rows)
{
    const struct moe_matrix up = { .bias = p->w->up_bias };
    size_t blocks = (rows + STRIP - 1) / STRIP;

    for (size_t b = 0; b < blocks; b++) {
        size_t at = b * STRIP, n = rows - at < STRIP ? rows - at : STRIP;

        add_bias(p->w, first + at, n, both + 2 * at);
        add_bias(&up, first + at, n, both + 2 * at + STRIP);
        if (p->act == MOE_ACT_CLAMPED)
            join_clamped(g, p, out + at, both + 2 * at, both + 2 * at + STRIP, n);
    }
    if (p->act != MOE_ACT_CLAMPED)
        g->c->k->silu_mul_16(out, both, blocks);
}

/* Gate and up joined for n rows of activations. */
static void
multiply_gated(const struct gemm *g, const struct moe_product *p, const struct gated *t,
    const struct moe_acts *a, size_t n, float *out)
{
    size_t width = 2 * MOST_STRIP, rows = t->gate.rows;

    moe_matrix_multiply(&t->gate, a, n, t->both, width);
    if (!p->w->paired)
        moe_matrix_multiply(&t->up, a, n, t->both + MOST_STRIP, width);
    for (size_t j = 0; j < n; j++) {
        float *row = t->both + j * width;

        if (p->w->paired) {
            join_paired(g, p, t->first, out + j * p->out.ld, row, rows);
            continue;
        }
        add_bias(p->w, t->first, rows, row);
        add_bias(p->up, t->first, rows, row + MOST_STRIP);
        if (p->act == MOE_ACT_CLAMPED)
            join_clamped(g, p, out + j * p->out.ld, row, row + MOST_STRIP, rows);
        else
            g->c->k->silu_mul_f32(out + j * p->out.ld, row, row + MOST_STRIP, rows);
    }
}

/* Rows of weights from `first` on with all activations, a tile of them at a time. */
static void
multiply(const struct gemm *g, const struct ready *r, size_t first, size_t rows, float *space)
{
    const struct moe_product *p = r->p;
    struct gated t = { .first = first, .both = space };

    space += p->act != MOE_ACT_NONE ? TILE * 2 * MOST_STRIP : 0;
    t.gate = moe_matrix_strip(p->w, moe_cpu_at(p->w->data), first, rows, space);
    if (p->up != NULL)
        t.up = moe_matrix_strip(p->up, moe_cpu_at(p->up->data), first, rows,
            space + moe_matrix_scratch(p->w, rows));
    for (size_t j = 0; j < p->n; j += TILE) {
        size_t n = p->n - j < TILE ? p->n - j : TILE;
        struct moe_acts a = acts_from(r, j);
        float *out = moe_cpu_row(p->out, j) + first;

        if (p->act != MOE_ACT_NONE) {
            multiply_gated(g, p, &t, &a, n, out);
            continue;
        }
        moe_matrix_multiply(&t.gate, &a, n, out, p->out.ld);
        for (size_t k = 0; k < n; k++)
            add_bias(p->w, first, rows, out + k * p->out.ld);
    }
}

static void
strip(void *ctx, size_t i, int worker)
{
    const struct gemm *g = ctx;
    const struct ready *r;
    size_t lo = 0, hi = g->count, first, rows;

    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;

        if (g->ready[mid].strips_before <= i)
            lo = mid;
        else
            hi = mid;
    }
    r = &g->ready[lo];
    first = (i - r->strips_before) * g->strip;
    rows = r->p->w->rows - first < g->strip ? r->p->w->rows - first : g->strip;
    multiply(g, r, first, rows, g->c->own[worker].p);
}

/* Choose the strip and count strips; the whole work in about flops. */
static size_t
cut_strips(struct gemm *g)
{
    size_t rows = 0, work = 0;

    for (size_t i = 0; i < g->count; i++) {
        const struct moe_product *p = g->ready[i].p;

        rows += p->w->rows;
        work += 2 * p->w->rows * p->w->cols * p->n;
    }
    g->strip = rows / (8 * (size_t)g->c->workers) / STRIP * STRIP;
    g->strip = g->strip < STRIP ? STRIP : g->strip > MOST_STRIP ? MOST_STRIP : g->strip;
    g->strips = 0;
    for (size_t i = 0; i < g->count; i++) {
        g->ready[i].strips_before = g->strips;
        g->strips += (g->ready[i].p->w->rows + g->strip - 1) / g->strip;
    }
    return work;
}

/* Floats that a worker needs beside the outputs. */
static size_t
worker_space(const struct gemm *g)
{
    size_t most = 0;

    for (size_t i = 0; i < g->count; i++) {
        const struct moe_product *p = g->ready[i].p;
        size_t n = moe_matrix_scratch(p->w, g->strip);

        n += p->up != NULL ? moe_matrix_scratch(p->up, g->strip) : 0;
        n += p->act != MOE_ACT_NONE ? TILE * 2 * MOST_STRIP : 0;
        most = n > most ? n : most;
    }
    return most;
}

/* Everything but the products themselves; false: out of memory. */
static bool
make_ready(struct gemm *g, const struct moe_product *p, enum moe_arith arith)
{
    struct cutter t = { NULL, 0 };
    size_t lists = (g->count * (sizeof(struct ready) + sizeof(struct source)) + 63) / 64 * 64;
    bool any = false;
    size_t work = 0;

    /* The lists first, alone: their content says how much room activations take. */
    if ((g->ready = moe_cpu_device_shared(g->c, lists)) == NULL)
        return false;
    for (int pass = 0; pass < 2; pass++) {
        g->sources = (struct source *)(void *)(g->ready + g->count);
        g->n_sources = 0;
        for (size_t i = 0; i < g->count; i++) {
            struct ready *r = &g->ready[i];

            *r = (struct ready){ .p = &p[i], .gather = p[i].rows != NULL && p[i].n > 1 };
            if (moe_matrix_int8(p[i].w, arith))
                r->from = source_of(g, &p[i]);
            any = any || r->gather;
        }
        t.at = lists;
        lay_out(g, &t);
        if (pass == 0) {    /* growing may move the lists: build them again in place */
            if ((t.p = moe_cpu_device_shared(g->c, t.at)) == NULL)
                return false;
            g->ready = (struct ready *)(void *)t.p;
        }
    }
    for (size_t i = 0; i < g->count; i++) {
        in_place(&g->ready[i]);
        work += g->ready[i].gather ? p[i].n * p[i].w->cols : 0;
    }
    round_all(g);
    if (any)
        moe_cpu_device_run(g->c, g->count, work, gather, g);
    return true;
}

void
moe_cpu_gemm_run(struct moe_backend *b, const struct moe_product *p, size_t count,
    enum moe_arith arith)
{
    struct gemm g = { .c = (struct moe_cpu *)b, .count = count };
    size_t work;

    if (g.c->failed.code != 0 || count == 0 || !make_ready(&g, p, arith))
        return;
    work = cut_strips(&g);
    if (!moe_cpu_device_own(g.c, worker_space(&g) * sizeof(float)))
        return;
    moe_cpu_device_run(g.c, g.strips, work, strip, &g);
}
