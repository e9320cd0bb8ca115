/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processor as a device: each operation against a plain computation in
 * double, and bit for bit against itself with other batches and threads.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/backend.h"
#include "common/formats/packed.h"
#include "tests/tap.h"

static struct moe_backend *dev;
static uint64_t seed = 1;

static float
noise(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(int32_t)(seed >> 32) * 0x1p-31f;
}

static struct moe_rows
rows_new(size_t n, size_t width)
{
    struct moe_rows r = { { NULL, 0 }, moe_backend_ld(width) };
    struct moe_err e;

    if (dev->ops->alloc(dev, n * r.ld * sizeof(float), &r.at.mem, &e) != 0)
        abort();
    return r;
}

static struct moe_rows
rows_random(size_t n, size_t width)
{
    struct moe_rows r = rows_new(n, width);
    float *v = malloc(n * r.ld * sizeof(*v));

    for (size_t i = 0; i < n * r.ld; i++)
        v[i] = noise();
    dev->ops->write(dev, r.at, v, n * r.ld * sizeof(*v));
    free(v);
    return r;
}

static float *
rows_read(struct moe_rows r, size_t n)
{
    float *v = malloc(n * r.ld * sizeof(*v));

    dev->ops->read(dev, v, r.at, n * r.ld * sizeof(*v));
    return v;
}

static void
drop(struct moe_rows r)
{
    dev->ops->release(dev, r.at.mem);
}

/* ---- Products ---- */

struct weights {            /* a matrix, and its values in double */
    struct moe_matrix m;
    double *v;
    void *held;             /* adopted memory */
};

static void
fill_plain(struct weights *w, enum moe_matrix_format f, size_t bytes)
{
    unsigned char *p = malloc(w->m.rows * w->m.cols * bytes);

    for (size_t i = 0; i < w->m.rows * w->m.cols; i++) {
        float x = noise();
        uint16_t h = f == MOE_MATRIX_BF16 ? moe_dtype_f32_bf16(x) : moe_dtype_f32_f16(x);

        if (f == MOE_MATRIX_F32)
            memcpy(p + i * bytes, &x, bytes);
        else
            memcpy(p + i * bytes, &h, bytes);
        w->v[i] = f == MOE_MATRIX_F32 ? x
            : f == MOE_MATRIX_BF16 ? moe_dtype_bf16_f32(h) : moe_dtype_f16_f32(h);
    }
    w->held = p;
}

/* Codes and scales laid out as the kernels want them; 64-byte aligned. */
static void
fill_i4(struct weights *w, size_t group)
{
    struct moe_packed p = { .kind = MOE_PACKED_I4, .scale_dtype = MOE_BF16, .rows = w->m.rows,
        .cols = w->m.cols, .group = group };
    size_t n = w->m.rows * w->m.cols, blocks = (w->m.rows + 15) / 16;
    int8_t *codes = malloc(n);
    uint16_t *scales = malloc(n / group * sizeof(*scales));
    uint64_t bytes = 0;

    for (size_t i = 0; i < n; i++)
        codes[i] = (int8_t)(floorf(noise() * 8));
    for (size_t i = 0; i < n / group; i++)
        scales[i] = moe_dtype_f32_bf16(0.1f + 0.05f * noise());
    for (size_t i = 0; i < n; i++)
        w->v[i] = codes[i] * (double)moe_dtype_bf16_f32(scales[i / group]);
    tap_ok(moe_packed_block_bytes(&p, &bytes), "a shape for the packed layout");
    w->m.blocks = moe_packed_form(&p);
    w->m.block_bytes = bytes;
    w->held = aligned_alloc(64, blocks * bytes);
    for (size_t b = 0; b < blocks; b++)
        moe_packed_block(&p, b, codes, scales, (unsigned char *)w->held + b * bytes);
    free(codes);
    free(scales);
}

static struct weights
weights_new(enum moe_matrix_format f, size_t rows, size_t cols, size_t group)
{
    struct weights w = { .m = { .format = f, .rows = rows, .cols = cols } };
    struct moe_err e;

    w.v = malloc(rows * cols * sizeof(*w.v));
    if (f == MOE_MATRIX_PACKED)
        fill_i4(&w, group);
    else
        fill_plain(&w, f, f == MOE_MATRIX_F32 ? 4 : 2);
    if (dev->ops->adopt(dev, w.held, moe_matrix_bytes(&w.m), &w.m.data.mem, &e) != 0)
        abort();
    return w;
}

static void
weights_free(struct weights *w)
{
    dev->ops->release(dev, w->m.data.mem);
    free(w->held);
    free(w->v);
}

static double
dot(const double *w, const float *x, size_t n)
{
    double s = 0;

    for (size_t i = 0; i < n; i++)
        s += w[i] * (double)x[i];
    return s;
}

/* Largest error of a product, as a part of the largest possible value. */
static double
product_error(const struct moe_product *p, const struct weights *w, const struct weights *up,
    const float *bias)
{
    float *x = rows_read(p->x, 64), *out = rows_read(p->out, p->n);
    double worst = 0;

    for (size_t j = 0; j < p->n; j++) {
        const float *in = x + (p->rows == NULL ? j : p->rows[j]) * p->x.ld;

        for (size_t r = 0; r < w->m.rows; r++) {
            double want = dot(w->v + r * w->m.cols, in, w->m.cols) + (bias ? bias[r] : 0);

            if (up != NULL)
                want = want / (1 + exp(-want)) * dot(up->v + r * w->m.cols, in, w->m.cols);
            worst = fmax(worst, fabs(want - out[j * p->out.ld + r]));
        }
    }
    free(x);
    free(out);
    return worst;
}

static const char *const format_names[] = { "F32", "BF16", "F16", "INT4" };

static void
check_product(enum moe_matrix_format f, enum moe_arith arith, size_t rows, size_t cols, size_t n)
{
    static const uint32_t pick[7] = { 63, 0, 5, 5, 17, 2, 40 };
    struct weights w = weights_new(f, rows, cols, 64), up = weights_new(f, rows, cols, 64);
    struct moe_rows x = rows_random(64, cols), out = rows_new(64, rows), again = rows_new(64, rows);
    struct moe_product p = { .w = &w.m, .x = x, .out = out, .n = n };
    double limit = arith == MOE_ARITH_FAST ? 0.02 * sqrt((double)cols) : 1e-5 * (double)cols;
    const char *name = format_names[f];
    float *a, *b;
    double err;

    if (n == 7)
        p.rows = pick;
    dev->ops->gemm(dev, &p, 1, arith);
    err = product_error(&p, &w, NULL, NULL);
    tap_ok(err < limit, "%s %zux%zu, %zu rows, arith %d: %.1e", name, rows, cols, n, arith, err);
    a = rows_read(out, n);
    for (size_t j = 0; j < n; j++) {    /* one row at a time */
        const uint32_t row = p.rows == NULL ? (uint32_t)j : pick[j];
        struct moe_product one = { .w = &w.m, .x = x, .rows = &row, .n = 1,
            .out = { moe_backend_view(again.at, j * again.ld), again.ld } };

        dev->ops->gemm(dev, &one, 1, arith);
    }
    b = rows_read(again, n);
    err = 0;
    for (size_t j = 0; j < n; j++)
        err += memcmp(a + j * out.ld, b + j * out.ld, rows * sizeof(*a)) != 0;
    tap_ok(err == 0, "%s: the same bits row by row", name);
    free(a);
    free(b);
    p.up = &up.m;
    p.act = MOE_ACT_SILU;
    dev->ops->gemm(dev, &p, 1, arith);
    err = product_error(&p, &w, &up, NULL);
    tap_ok(err < 20 * limit, "%s gated: %.1e", name, err);
    drop(x);
    drop(out);
    drop(again);
    weights_free(&w);
    weights_free(&up);
}

static void
check_bias(void)
{
    struct weights w = weights_new(MOE_MATRIX_BF16, 50, 32, 0);
    struct moe_rows x = rows_random(64, 32), out = rows_new(64, 50), bias = rows_random(1, 50);
    struct moe_product p = { .w = &w.m, .x = x, .out = out, .n = 40 };
    float *v = rows_read(bias, 1);

    w.m.bias = bias.at;
    dev->ops->gemm(dev, &p, 1, MOE_ARITH_F32);
    tap_ok(product_error(&p, &w, NULL, v) < 1e-4, "bias is added");
    free(v);
    drop(x);
    drop(out);
    drop(bias);
    weights_free(&w);
}

/* Many products in one call: as experts of a step. */
static void
check_many(void)
{
    struct weights w[12];
    struct moe_product p[12];
    struct moe_rows x = rows_random(64, 128), out = rows_new(12 * 9, 96);
    uint32_t pick[12][9];
    double worst = 0;

    for (size_t i = 0; i < 12; i++) {
        w[i] = weights_new(i % 2 ? MOE_MATRIX_PACKED : MOE_MATRIX_F32, 96, 128, 32);
        for (size_t j = 0; j < 9; j++)
            pick[i][j] = (uint32_t)(i * 7 + j * 5) % 64;
        p[i] = (struct moe_product){ .w = &w[i].m, .x = x, .rows = pick[i], .n = 1 + i % 9,
            .out = { moe_backend_view(out.at, i * 9 * out.ld), out.ld } };
    }
    dev->ops->gemm(dev, p, 12, MOE_ARITH_F32);
    for (size_t i = 0; i < 12; i++) {
        worst = fmax(worst, product_error(&p[i], &w[i], NULL, NULL));
    }
    tap_ok(worst < 1e-3, "twelve products in one call: %.1e", worst);
    dev->ops->gemm(dev, p, 12, MOE_ARITH_FAST);
    for (size_t i = 0, j = 1; j < 12; i++, j += 2)
        worst = fmax(worst, product_error(&p[j], &w[j], NULL, NULL));
    tap_ok(worst < 0.3, "and with int8 activations: %.1e", worst);
    for (size_t i = 0; i < 12; i++)
        weights_free(&w[i]);
    drop(x);
    drop(out);
}

/* ---- Attention ---- */

#define LAYERS 2
#define LEN 100

struct sequence {
    struct moe_mem *pages[(LEN + MOE_KV_PAGE - 1) / MOE_KV_PAGE];
    struct moe_place places[LEN];
    struct moe_rows q, k, v;
};

static void
sequence_new(struct sequence *s, const struct moe_kv_shape *shape, size_t heads)
{
    struct moe_err e;

    for (size_t i = 0; i < sizeof(s->pages) / sizeof(s->pages[0]); i++) {
        if (dev->ops->alloc(dev, moe_backend_page(shape), &s->pages[i], &e) != 0)
            abort();
    }
    for (size_t i = 0; i < LEN; i++)
        s->places[i] = (struct moe_place){ s->pages, (uint32_t)i };
    s->q = rows_random(LEN, heads * shape->k_dim);
    s->k = rows_random(LEN, shape->heads * shape->k_dim);
    s->v = rows_random(LEN, shape->heads * shape->v_dim);
}

static void
sequence_free(struct sequence *s)
{
    for (size_t i = 0; i < sizeof(s->pages) / sizeof(s->pages[0]); i++)
        dev->ops->release(dev, s->pages[i]);
    drop(s->q);
    drop(s->k);
    drop(s->v);
}

/* Attention of one query in double. */
static void
naive(const struct moe_attend *a, size_t pos, const float *q, const float *k, size_t ldk,
    const float *v, size_t ldv, double *out)
{
    size_t kd = a->kv.shape->k_dim, vd = a->kv.shape->v_dim;
    size_t from = a->window != 0 && pos + 1 > a->window ? pos + 1 - a->window : 0;
    double s[LEN], sum = 0, top = -1e300;

    for (size_t p = from; p <= pos; p++) {
        s[p] = 0;
        for (size_t i = 0; i < kd; i++)
            s[p] += (double)q[i] * (double)k[p * ldk + i];
        s[p] *= (double)a->scale;
        top = fmax(top, s[p]);
    }
    for (size_t p = from; p <= pos; p++)
        sum += s[p] = exp(s[p] - top);
    memset(out, 0, vd * sizeof(*out));
    for (size_t p = from; p <= pos; p++) {
        for (size_t i = 0; i < vd; i++)
            out[i] += s[p] / sum * (double)v[p * ldv + i];
    }
}

static void
check_attention(size_t heads, size_t window)
{
    const struct moe_kv_shape shape = { LAYERS, 2, 24, 40 };
    struct sequence s, other;
    struct moe_rows out = rows_new(LEN, heads * 40), one = rows_new(LEN, heads * 40);
    struct moe_attend a = { .kv = { &shape, 1, s.places, LEN }, .heads = heads, .window = window,
        .scale = 0.3f, .out = out };
    float *q, *k, *v, *got, *single;
    double want[40], worst = 0;
    bool same = true;

    sequence_new(&s, &shape, heads);
    sequence_new(&other, &shape, heads);
    a.q = s.q;
    dev->ops->store(dev, &a.kv, s.k, s.v);
    dev->ops->attend(dev, &a);
    q = rows_read(s.q, LEN);
    k = rows_read(s.k, LEN);
    v = rows_read(s.v, LEN);
    got = rows_read(out, LEN);
    for (size_t p = 0; p < LEN; p++) {
        for (size_t h = 0; h < heads; h++) {
            size_t kh = h / (heads / 2);

            naive(&a, p, q + p * s.q.ld + h * 24, k + kh * 24, s.k.ld, v + kh * 40, s.v.ld, want);
            for (size_t i = 0; i < 40; i++)
                worst = fmax(worst, fabs(want[i] - got[p * out.ld + h * 40 + i]));
        }
    }
    tap_ok(worst < 1e-5, "attention, %zu heads, window %zu: %.1e", heads, window, worst);
    /* One row at a time, between rows of another sequence. */
    for (size_t p = 0; p < LEN; p += 3) {
        struct moe_place mixed[3] = { { other.pages, 4 }, { s.pages, (uint32_t)p },
            { other.pages, 5 } };
        struct moe_attend b = a;

        b.kv.places = mixed;
        b.kv.n = 3;
        b.q.at = moe_backend_view(a.q.at, (p == 0 ? 0 : p - 1) * a.q.ld);
        b.out = one;
        if (p == 0 || p + 2 > LEN)
            continue;
        dev->ops->attend(dev, &b);
        single = rows_read(one, 3);
        same = same && memcmp(single + one.ld, got + p * out.ld, heads * 40 * 4) == 0;
        free(single);
    }
    tap_ok(same, "the same bits alone and among strangers");
    free(q);
    free(k);
    free(v);
    free(got);
    drop(out);
    drop(one);
    sequence_free(&s);
    sequence_free(&other);
}

/* ---- The rest ---- */

/* LayerNorm of the rows y, which are a on the host, in double. */
static void
check_layer_norm(struct moe_rows x, struct moe_rows y, const float *a)
{
    struct moe_rows g = rows_random(1, 20), h = rows_random(1, 20);
    float *gain = rows_read(g, 1), *bias = rows_read(h, 1), *b;
    double mean = 0, var = 0, worst = 0;

    dev->ops->layer_norm(dev, x, y, g.at, h.at, 3, 20, 0.25f);
    b = rows_read(x, 3);
    for (size_t i = 0; i < 20; i++)
        mean += a[2 * y.ld + i] / 20;
    for (size_t i = 0; i < 20; i++)
        var += (a[2 * y.ld + i] - mean) * (a[2 * y.ld + i] - mean) / 20;
    for (size_t i = 0; i < 20; i++) {
        double want = (a[2 * y.ld + i] - mean) / sqrt(var + 0.25) * gain[i] + bias[i];

        worst = fabs(b[2 * x.ld + i] - want) > worst ? fabs(b[2 * x.ld + i] - want) : worst;
    }
    tap_ok(worst < 1e-5, "layer norm: %.1e", worst);
    free(b);
    free(gain);
    free(bias);
    drop(g);
    drop(h);
}

static void
check_small(void)
{
    static const uint32_t ids[3] = { 4, 0, 9 }, slot[4] = { 2, 0, 1, 2 };
    static const float share[4] = { 0.5f, 2, -1, 3 }, c[4] = { 0, 1, 0.6f, 0.6f };
    static const float s[4] = { 1, 0, 0.8f, 0.8f };
    struct weights w = weights_new(MOE_MATRIX_BF16, 10, 20, 0);
    struct moe_rows x = rows_new(3, 20), y = rows_random(3, 20), g = rows_random(1, 10);
    struct moe_rotate turn = { .x = y, .out = y, .n = 2, .heads = 2, .stride = 10, .out_stride = 10,
        .dim = 4, .cosine = c, .sine = s };
    float *a, *b, *gain = rows_read(g, 1);
    double sum = 0;
    struct moe_err e;

    dev->ops->embed(dev, x, &w.m, ids, 3, 1);
    a = rows_read(x, 3);
    tap_ok(a[0] == (float)w.v[80] && a[2 * x.ld + 19] == (float)w.v[199], "embed");
    free(a);
    a = rows_read(y, 3);
    dev->ops->norm(dev, x, y, g.at, 3, 2, 10, 0.25f);
    b = rows_read(x, 3);
    for (size_t i = 10; i < 20; i++)
        sum += (double)a[y.ld + i] * (double)a[y.ld + i];
    tap_ok(fabs(b[x.ld + 13] - a[y.ld + 13] / sqrt(sum / 10 + 0.25) * gain[3]) < 1e-6,
        "norm of a head");
    free(b);
    dev->ops->combine(dev, x, y, slot, share, 2, 2, 20);
    b = rows_read(x, 2);
    tap_ok(fabs(b[7] - (0.5 * a[2 * y.ld + 7] + 2 * a[7])) < 1e-6
        && fabs(b[x.ld + 3] - (3 * a[2 * y.ld + 3] - a[y.ld + 3])) < 1e-6, "combine");
    dev->ops->add(dev, x, y, 2, 20, 1);
    free(b);
    b = rows_read(x, 2);
    tap_ok(fabs(b[19] - (0.5 * a[2 * y.ld + 19] + 3 * a[19])) < 1e-6, "add");
    free(b);
    dev->ops->rotate(dev, &turn);
    b = rows_read(y, 2);
    tap_ok(b[0] == -a[2] && b[2] == a[0] && b[1] == a[1] && b[4] == a[4] && b[9] == a[9],
        "rotate half, the rest of a head stays");
    tap_ok(fabs(b[y.ld + 10] - (0.6 * a[y.ld + 10] - 0.8 * a[y.ld + 12])) < 1e-6,
        "angles are those of the row");
    free(b);
    free(a);
    a = rows_read(y, 3);
    dev->ops->embed(dev, x, &w.m, ids, 3, 0.5f);
    b = rows_read(x, 3);
    tap_ok(b[0] == 0.5f * (float)w.v[80], "embed, scaled");
    free(b);
    dev->ops->add(dev, x, y, 3, 20, -2);
    b = rows_read(x, 3);
    tap_ok(fabs(b[3] - (0.5 * w.v[83] - 2 * a[3])) < 1e-6, "add, scaled");
    free(b);
    dev->ops->clip(dev, x, 3, 20, 0.25f);
    b = rows_read(x, 3);
    sum = 0;
    for (size_t i = 0; i < 20; i++)
        sum = fabs(b[x.ld + i]) > sum ? fabs(b[x.ld + i]) : sum;
    tap_ok(sum <= 0.25, "clip");
    free(b);
    check_layer_norm(x, y, a);
    tap_is_int(dev->ops->finish(dev, &e), 0, "nothing failed");
    free(a);
    free(gain);
    drop(x);
    drop(y);
    drop(g);
    weights_free(&w);
}

static void
everything(struct moe_pool *pool)
{
    struct moe_err e;

    if (!tap_is_int(moe_backend_cpu_new(pool, &dev, &e), 0, "a device of %d threads",
        pool == NULL ? 1 : moe_pool_size(pool)))
        return;
    for (int f = MOE_MATRIX_F32; f <= MOE_MATRIX_PACKED; f++) {
        check_product((enum moe_matrix_format)f, MOE_ARITH_F32, 33, 64, 1);
        check_product((enum moe_matrix_format)f, MOE_ARITH_F32, 200, 128, 64);
        check_product((enum moe_matrix_format)f, MOE_ARITH_F32, 16, 192, 7);
    }
    check_product(MOE_MATRIX_PACKED, MOE_ARITH_FAST, 48, 256, 1);
    check_product(MOE_MATRIX_PACKED, MOE_ARITH_FAST, 200, 128, 64);
    check_product(MOE_MATRIX_PACKED, MOE_ARITH_FAST, 33, 320, 7);
    check_bias();
    check_many();
    check_attention(2, 0);
    check_attention(8, 0);
    check_attention(4, 33);
    check_small();
    dev->ops->free(dev);
}

int
main(void)
{
    struct moe_pool *pool;
    struct moe_err e;

    everything(NULL);
    if (tap_is_int(moe_pool_new(3, &pool, &e), 0, "a pool")) {
        everything(pool);
        moe_pool_free(pool);
    }
    return tap_done();
}
