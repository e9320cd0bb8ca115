/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract of a device: memory that only the device looks into, and one
 * table of operations over batches of rows. The forward pass is written against
 * this table alone; backend_cpu is its first implementation.
 *
 * Rows of activations are F32, `ld` floats apart, ld a multiple of
 * MOE_BACKEND_LD and at least the width rounded up to it; elements past the
 * width are unspecified. Arguments that are plain pointers are host memory and
 * are read before the call returns. Operations may be queued; they run in the
 * order of the calls. They return nothing: a device remembers its first failure,
 * does nothing from then on, and finish() reports it.
 *
 * One result: row j of an output depends on row j of the inputs only, never on
 * n, on the order of rows or on how the work is cut.
 */
#ifndef MOE_ENGINE_BACKEND_H
#define MOE_ENGINE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/pool.h"
#include "common/engine/family.h"
#include "common/engine/matrix.h"

#define MOE_BACKEND_LD 16
#define MOE_KV_PAGE 32      /* positions of a page */

struct moe_backend;

/* Rows of floats in device memory. */
struct moe_rows {
    struct moe_view at;
    size_t ld;
};

/*
 * One matrix product: row j of out = w times row rows[j] of x (row j when rows
 * is NULL), plus w's bias. With an act, the products of gate (w) and up are
 * joined by it. SILU: silu(g) * u. CLAMPED, with g at most limit and u within
 * plus and minus limit: g * sigmoid(alpha * g) * (u + 1). up is NULL when w is
 * paired.
 */
struct moe_product {
    const struct moe_matrix *w, *up;
    enum moe_act act;
    float limit, alpha;
    struct moe_rows x, out;
    const uint32_t *rows;
    size_t n;
};

/*
 * Pages hold, layer by layer, keys [heads][MOE_KV_PAGE][k_dim], then values
 * [heads][MOE_KV_PAGE][v_dim].
 */
struct moe_kv_shape {
    size_t layers, heads, k_dim, v_dim;
};

/* Where a row stands: its sequence's pages and its position. */
struct moe_place {
    struct moe_mem *const *pages;
    uint32_t pos;
};

struct moe_kv_at {          /* rows in one layer's keys and values */
    const struct moe_kv_shape *shape;
    size_t layer;
    const struct moe_place *places;     /* [n] */
    size_t n;
};

/*
 * Attention of query heads h to key head h / (heads / shape->heads): scores
 * scale * q.k over the visible positions, softmax, weighted sum of values in
 * ascending order of position. Visible: its own and earlier ones, at most
 * `window` of them (0 = all). With sinks [heads] F32 one more score, of no
 * position, takes part in each head's softmax.
 */
struct moe_attend {
    struct moe_kv_at kv;
    struct moe_rows q, out;     /* [n][heads * k_dim], [n][heads * v_dim] */
    size_t heads, window;
    float scale;
    struct moe_view sinks;      /* or nothing */
};

/*
 * A rotation of the heads of rows: row j by the angles of cosine, sine [n][dim /
 * 2]. Of head i of x, the dim elements from element i * stride + first on; they
 * go to the same of out, by out's stride and first. out may be x when both agree.
 */
struct moe_rotate {
    struct moe_rows x, out;
    size_t n, heads, dim;
    size_t stride, first, out_stride, out_first;
    bool interleaved;
    const float *cosine, *sine;
};

struct moe_backend_ops {
    const char *name;
    /* Reads host memory in place: adopt() copies nothing and CODED matrices work. */
    bool host;

    void (*free)(struct moe_backend *b);

    /* Zeroed memory, 64-byte aligned. Errors: MOE_ENOMEM. Threads may. */
    int (*alloc)(struct moe_backend *b, size_t bytes, struct moe_mem **out, struct moe_err *e);
    /* Read-only memory with the content of p, which outlives it. Threads may. */
    int (*adopt)(struct moe_backend *b, const void *p, size_t bytes, struct moe_mem **out,
        struct moe_err *e);
    void (*release)(struct moe_backend *b, struct moe_mem *m);      /* NULL is allowed */
    /* Threads may, to different bytes. */
    void (*write)(struct moe_backend *b, struct moe_view to, const void *p, size_t bytes);
    /* Waits for what was queued before. Zeros after a failure. */
    void (*read)(struct moe_backend *b, void *p, struct moe_view from, size_t bytes);

    /* out row j = row id[j] of the matrix, times scale. */
    void (*embed)(struct moe_backend *b, struct moe_rows out, const struct moe_matrix *w,
        const uint32_t *id, size_t n, float scale);
    /* RMSNorm of `heads` runs of dim elements a row; w [dim] F32. out may be x. */
    void (*norm)(struct moe_backend *b, struct moe_rows out, struct moe_rows x,
        struct moe_view w, size_t n, size_t heads, size_t dim, float eps);
    /* LayerNorm of rows of dim elements; w, bias [dim] F32. out may be x. */
    void (*layer_norm)(struct moe_backend *b, struct moe_rows out, struct moe_rows x,
        struct moe_view w, struct moe_view bias, size_t n, size_t dim, float eps);
    /* x within plus and minus limit. */
    void (*clip)(struct moe_backend *b, struct moe_rows x, size_t n, size_t dim, float limit);
    /* Independent products. */
    void (*gemm)(struct moe_backend *b, const struct moe_product *p, size_t count,
        enum moe_arith arith);
    void (*rotate)(struct moe_backend *b, const struct moe_rotate *r);
    /* Put keys and values of rows in their places. */
    void (*store)(struct moe_backend *b, const struct moe_kv_at *kv, struct moe_rows k,
        struct moe_rows v);
    void (*attend)(struct moe_backend *b, const struct moe_attend *a);
    /* x += scale * y, one fused multiply-add. */
    void (*add)(struct moe_backend *b, struct moe_rows x, struct moe_rows y, size_t n,
        size_t dim, float scale);
    /*
     * out row j = the sum over i < k, ascending, of weight[j * k + i] times row
     * slot[j * k + i] of y, one fused multiply-add each, from 0.
     */
    void (*combine)(struct moe_backend *b, struct moe_rows out, struct moe_rows y,
        const uint32_t *slot, const float *weight, size_t n, size_t k, size_t dim);

    /* Wait for everything; the first failure since the last finish(). */
    int (*finish)(struct moe_backend *b, struct moe_err *e);
};

struct moe_backend {        /* first member of every implementation */
    const struct moe_backend_ops *ops;
};

/*
 * The processor as a device. pool is borrowed (NULL: the calling thread alone)
 * and used by one caller at a time. Errors: MOE_ENOMEM.
 */
int moe_backend_cpu_new(struct moe_pool *pool, struct moe_backend **out, struct moe_err *e);

/* Width of rows of n floats. */
size_t moe_backend_ld(size_t n);

/* Bytes of a page. */
size_t moe_backend_page(const struct moe_kv_shape *s);

/* Byte offset within a page of keys and of values of a head in a layer. */
size_t moe_backend_k_at(const struct moe_kv_shape *s, size_t layer, size_t head);
size_t moe_backend_v_at(const struct moe_kv_shape *s, size_t layer, size_t head);

/* The view `floats` further on. */
struct moe_view moe_backend_view(struct moe_view v, size_t floats);

#endif
