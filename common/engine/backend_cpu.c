/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the processor as a device: its memory and the operations that go element
 * by element. Products are in cpu_gemm.c, keys, values and attention in
 * cpu_attend.c, working space and threads in cpu_device.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/num.h"
#include "common/engine/cpu_device.h"

#define HUGE ((size_t)2 << 20)      /* bytes of a huge page */

static void
cpu_free(struct moe_backend *b)
{
    struct moe_cpu *c = (struct moe_cpu *)b;

    for (int w = 0; w < c->workers; w++)
        free(c->own[w].p);
    free(c->own);
    free(c->shared.p);
    free(c);
}

/* Zeroed pages at a multiple of the size of a huge one, which they may then be. */
static bool
map_pages(struct moe_mem *m, size_t bytes)
{
    size_t len = bytes + HUGE;
    void *p;

    if (len < bytes)
        return false;
    p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return false;
    m->map = p;
    m->map_len = len;
    m->p = (unsigned char *)p + (HUGE - (uintptr_t)p % HUGE) % HUGE;
    (void)madvise(m->p, bytes, MADV_HUGEPAGE);
    return true;
}

static int
cpu_alloc(struct moe_backend *b, size_t bytes, struct moe_mem **out, struct moe_err *e)
{
    struct moe_mem *m = calloc(1, sizeof(*m));
    uint64_t cap = 0;

    (void)b;
    *out = NULL;
    if (m != NULL && bytes >= HUGE) {
        if (map_pages(m, bytes)) {
            *out = m;
            return 0;
        }
    } else if (m != NULL && moe_num_align(bytes + 1, 64, &cap)
        && (m->heap = aligned_alloc(64, cap)) != NULL) {
        m->p = memset(m->heap, 0, cap);
        *out = m;
        return 0;
    }
    free(m);
    return moe_err_set(e, MOE_ENOMEM, "no memory for %zu bytes", bytes);
}

static int
cpu_adopt(struct moe_backend *b, const void *p, size_t bytes, struct moe_mem **out,
    struct moe_err *e)
{
    struct moe_mem *m = calloc(1, sizeof(*m));

    (void)b;
    (void)bytes;
    *out = m;
    if (m == NULL)
        return moe_err_set(e, MOE_ENOMEM, "weights: out of memory");
    m->p = (unsigned char *)p;
    return 0;
}

static void
cpu_release(struct moe_backend *b, struct moe_mem *m)
{
    (void)b;
    if (m == NULL)
        return;
    if (m->map != NULL)
        (void)munmap(m->map, m->map_len);
    free(m->heap);
    free(m);
}

static void
cpu_write(struct moe_backend *b, struct moe_view to, const void *p, size_t bytes)
{
    (void)b;
    memcpy(moe_cpu_at(to), p, bytes);
}

static void
cpu_read(struct moe_backend *b, void *p, struct moe_view from, size_t bytes)
{
    struct moe_cpu *c = (struct moe_cpu *)b;

    if (c->failed.code != 0)
        memset(p, 0, bytes);
    else
        memcpy(p, moe_cpu_at(from), bytes);
}

/* Element by element: n rows cut into pieces. */
struct job {
    struct moe_cpu *c;
    size_t n, pieces;
    struct moe_rows out, x;
    const struct moe_matrix *w;
    const uint32_t *id;
    const float *weight;
    const struct moe_rotate *rotate;
    size_t heads, dim, k;
    const float *bias;
    float eps, scale;
};

static size_t
piece_begin(const struct job *j, size_t i)
{
    return j->n / j->pieces * i + (i < j->n % j->pieces ? i : j->n % j->pieces);
}

static void
run_rows(struct job *j, size_t cost, moe_pool_fn *fn)
{
    if (j->c->failed.code != 0 || j->n == 0)
        return;
    j->pieces = moe_cpu_device_pieces(j->c, j->n, 1);
    moe_cpu_device_run(j->c, j->pieces, j->n * cost, fn, j);
}

static void
embed_row(const struct job *j, size_t r)
{
    float *out = moe_cpu_row(j->out, r);

    moe_matrix_row(j->w, moe_cpu_at(j->w->data), j->id[r], out);
    for (size_t i = 0; j->scale != 1 && i < j->w->cols; i++)
        out[i] *= j->scale;
}

static void
embed_piece(void *ctx, size_t i, int w)
{
    const struct job *j = ctx;

    (void)w;
    for (size_t r = piece_begin(j, i); r < piece_begin(j, i + 1); r++)
        embed_row(j, r);
}

static void
cpu_embed(struct moe_backend *b, struct moe_rows out, const struct moe_matrix *w,
    const uint32_t *id, size_t n, float scale)
{
    struct job j = { .c = (struct moe_cpu *)b, .n = n, .out = out, .w = w, .id = id,
        .scale = scale };

    run_rows(&j, w->cols, embed_piece);
}

static void
norm_piece(void *ctx, size_t i, int w)
{
    const struct job *j = ctx;

    (void)w;
    for (size_t r = piece_begin(j, i); r < piece_begin(j, i + 1); r++) {
        for (size_t h = 0; h < j->heads; h++)
            j->c->k->rmsnorm_f32(moe_cpu_row(j->out, r) + h * j->dim,
                moe_cpu_row(j->x, r) + h * j->dim, j->weight, j->dim, j->eps);
    }
}

static void
cpu_norm(struct moe_backend *b, struct moe_rows out, struct moe_rows x, struct moe_view w,
    size_t n, size_t heads, size_t dim, float eps)
{
    struct job j = { .c = (struct moe_cpu *)b, .n = n, .out = out, .x = x,
        .weight = moe_cpu_at(w), .heads = heads, .dim = dim, .eps = eps };

    run_rows(&j, heads * dim, norm_piece);
}

/* Sum over i of f(i) in 16 lanes and a tree: the same bits whatever the compiler makes of it. */
static float
lanes_sum(const float *x, size_t n, float less, bool square)
{
    float lane[16] = { 0 };

    for (size_t i = 0; i < n; i++) {
        float v = x[i] - less;

        lane[i % 16] += square ? v * v : v;
    }
    for (size_t k = 8; k > 0; k /= 2) {
        for (size_t i = 0; i < k; i++)
            lane[i] += lane[i + k];
    }
    return lane[0];
}

static void
layer_norm_piece(void *ctx, size_t i, int w)
{
    const struct job *j = ctx;

    (void)w;
    for (size_t r = piece_begin(j, i); r < piece_begin(j, i + 1); r++) {
        const float *x = moe_cpu_row(j->x, r);
        float *out = moe_cpu_row(j->out, r), n = (float)j->dim;
        float mean = lanes_sum(x, j->dim, 0, false) / n;
        float one = 1 / sqrtf(lanes_sum(x, j->dim, mean, true) / n + j->eps);

        for (size_t d = 0; d < j->dim; d++)
            out[d] = (x[d] - mean) * one * j->weight[d] + j->bias[d];
    }
}

static void
cpu_layer_norm(struct moe_backend *b, struct moe_rows out, struct moe_rows x, struct moe_view w,
    struct moe_view bias, size_t n, size_t dim, float eps)
{
    struct job j = { .c = (struct moe_cpu *)b, .n = n, .out = out, .x = x,
        .weight = moe_cpu_at(w), .bias = moe_cpu_at(bias), .dim = dim, .eps = eps };

    run_rows(&j, 4 * dim, layer_norm_piece);
}

static void
clip_piece(void *ctx, size_t i, int w)
{
    const struct job *j = ctx;

    (void)w;
    for (size_t r = piece_begin(j, i); r < piece_begin(j, i + 1); r++) {
        float *x = moe_cpu_row(j->x, r);

        for (size_t d = 0; d < j->dim; d++)
            x[d] = x[d] > j->scale ? j->scale : x[d] < -j->scale ? -j->scale : x[d];
    }
}

static void
cpu_clip(struct moe_backend *b, struct moe_rows x, size_t n, size_t dim, float limit)
{
    struct job j = { .c = (struct moe_cpu *)b, .n = n, .x = x, .dim = dim, .scale = limit };

    run_rows(&j, dim, clip_piece);
}

static void
rotate_piece(void *ctx, size_t i, int w)
{
    const struct job *j = ctx;
    const struct moe_rotate *r = j->rotate;
    void (*turn)(float *x, const float *c, const float *s, size_t dim) =
        r->interleaved ? j->c->k->rope_pair : j->c->k->rope_half;

    (void)w;
    for (size_t n = piece_begin(j, i); n < piece_begin(j, i + 1); n++) {
        for (size_t h = 0; h < r->heads; h++) {
            const float *from = moe_cpu_row(r->x, n) + h * r->stride + r->first;
            float *to = moe_cpu_row(r->out, n) + h * r->out_stride + r->out_first;

            if (to != from)
                memcpy(to, from, r->dim * sizeof(*to));
            turn(to, r->cosine + n * (r->dim / 2), r->sine + n * (r->dim / 2), r->dim);
        }
    }
}

static void
cpu_rotate(struct moe_backend *b, const struct moe_rotate *r)
{
    struct job j = { .c = (struct moe_cpu *)b, .n = r->n, .rotate = r };

    run_rows(&j, r->heads * r->dim, rotate_piece);
}

static void
add_piece(void *ctx, size_t i, int w)
{
    const struct job *j = ctx;

    (void)w;
    for (size_t r = piece_begin(j, i); r < piece_begin(j, i + 1); r++)
        j->c->k->axpy_f32(moe_cpu_row(j->out, r), moe_cpu_row(j->x, r), j->scale, j->dim);
}

static void
cpu_add(struct moe_backend *b, struct moe_rows x, struct moe_rows y, size_t n, size_t dim,
    float scale)
{
    struct job j = { .c = (struct moe_cpu *)b, .n = n, .out = x, .x = y, .dim = dim,
        .scale = scale };

    run_rows(&j, dim, add_piece);
}

static void
combine_piece(void *ctx, size_t i, int w)
{
    const struct job *j = ctx;

    (void)w;
    for (size_t r = piece_begin(j, i); r < piece_begin(j, i + 1); r++) {
        float *out = moe_cpu_row(j->out, r);

        memset(out, 0, j->dim * sizeof(*out));
        for (size_t s = r * j->k; s < (r + 1) * j->k; s++)
            j->c->k->axpy_f32(out, moe_cpu_row(j->x, j->id[s]), j->weight[s], j->dim);
    }
}

static void
cpu_combine(struct moe_backend *b, struct moe_rows out, struct moe_rows y, const uint32_t *slot,
    const float *weight, size_t n, size_t k, size_t dim)
{
    struct job j = { .c = (struct moe_cpu *)b, .n = n, .out = out, .x = y, .id = slot,
        .weight = weight, .k = k, .dim = dim };

    run_rows(&j, k * dim, combine_piece);
}

static int
cpu_finish(struct moe_backend *b, struct moe_err *e)
{
    struct moe_cpu *c = (struct moe_cpu *)b;
    int code = c->failed.code;

    if (code != 0)
        moe_err_set(e, code, "%s", c->failed.text);
    c->failed.code = 0;
    return code;
}

static const struct moe_backend_ops ops = {
    .name = "cpu",
    .host = true,
    .free = cpu_free,
    .alloc = cpu_alloc,
    .adopt = cpu_adopt,
    .release = cpu_release,
    .write = cpu_write,
    .read = cpu_read,
    .embed = cpu_embed,
    .norm = cpu_norm,
    .layer_norm = cpu_layer_norm,
    .clip = cpu_clip,
    .gemm = moe_cpu_gemm_run,
    .rotate = cpu_rotate,
    .store = moe_cpu_attend_store,
    .attend = moe_cpu_attend_run,
    .add = cpu_add,
    .combine = cpu_combine,
    .finish = cpu_finish,
};

int
moe_backend_cpu_new(struct moe_pool *pool, struct moe_backend **out, struct moe_err *e)
{
    struct moe_cpu *c = calloc(1, sizeof(*c));

    *out = NULL;
    if (c == NULL)
        return moe_err_set(e, MOE_ENOMEM, "back end: out of memory");
    c->base.ops = &ops;
    c->pool = pool;
    c->workers = pool == NULL ? 1 : moe_pool_size(pool);
    c->k = moe_kernels();
    if ((c->own = calloc((size_t)c->workers, sizeof(*c->own))) == NULL) {
        free(c);
        return moe_err_set(e, MOE_ENOMEM, "back end: out of memory");
    }
    *out = &c->base;
    return 0;
}
