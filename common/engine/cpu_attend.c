/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns keys, values and attention on the processor. A job is one key head of a
 * few neighbouring rows of one sequence: scores of a page are one product of
 * its keys with all queries of the job, and each query then goes over the
 * values of its own visible positions in ascending order. A score, a softmax
 * and a sum depend on the query's own position and window alone.
 */
#include <string.h>

#include "common/engine/cpu_device.h"

#define TILE_ROWS 16
#define TILE_SCORES ((size_t)1 << 18)   /* floats of scores a job aims at: an L2 cache */

struct tile {
    size_t first, n;        /* rows */
    uint32_t begin, end;    /* positions that any of them sees, begin at a page */
};

struct attend {
    struct moe_cpu *c;
    const struct moe_attend *a;
    struct tile *tiles;
    size_t n_tiles, scores; /* floats between the scores of two queries */
};

void
moe_cpu_attend_store(struct moe_backend *b, const struct moe_kv_at *kv, struct moe_rows k,
    struct moe_rows v)
{
    const struct moe_kv_shape *s = kv->shape;

    if (((struct moe_cpu *)b)->failed.code != 0)
        return;
    for (size_t j = 0; j < kv->n; j++) {
        struct moe_mem *page = kv->places[j].pages[kv->places[j].pos / MOE_KV_PAGE];
        size_t slot = kv->places[j].pos % MOE_KV_PAGE;

        for (size_t h = 0; h < s->heads; h++) {
            struct moe_view kp = { page, moe_backend_k_at(s, kv->layer, h) };
            struct moe_view vp = { page, moe_backend_v_at(s, kv->layer, h) };

            memcpy((float *)moe_cpu_at(kp) + slot * s->k_dim, moe_cpu_row(k, j) + h * s->k_dim,
                s->k_dim * sizeof(float));
            memcpy((float *)moe_cpu_at(vp) + slot * s->v_dim, moe_cpu_row(v, j) + h * s->v_dim,
                s->v_dim * sizeof(float));
        }
    }
}

/* First position that a row at pos sees. */
static uint32_t
visible_from(const struct moe_attend *a, uint32_t pos)
{
    return a->window != 0 && pos + 1 > a->window ? (uint32_t)(pos + 1 - a->window) : 0;
}

/* Rows in tiles: neighbours of one sequence, few enough for the scores to stay near. */
static size_t
cut_tiles(const struct moe_attend *a, struct tile *tiles, size_t *scores)
{
    size_t n = 0, per = a->heads / a->kv.shape->heads;

    *scores = 0;
    for (size_t j = 0; j < a->kv.n; j++) {
        const struct moe_place *at = &a->kv.places[j];
        uint32_t begin = visible_from(a, at->pos) / MOE_KV_PAGE * MOE_KV_PAGE;
        uint32_t end = (at->pos / MOE_KV_PAGE + 1) * MOE_KV_PAGE;
        struct tile *t = n == 0 ? NULL : &tiles[n - 1];

        if (t != NULL && at->pages == a->kv.places[t->first].pages && t->n < TILE_ROWS) {
            uint32_t lo = begin < t->begin ? begin : t->begin, hi = end > t->end ? end : t->end;

            if ((t->n + 1) * per * (hi - lo) <= TILE_SCORES) {
                t->n++;
                t->begin = lo;
                t->end = hi;
                *scores = hi - lo > *scores ? hi - lo : *scores;
                continue;
            }
        }
        tiles[n++] = (struct tile){ j, 1, begin, end };
        *scores = end - begin > *scores ? end - begin : *scores;
    }
    return n;
}

/* Scores of the tile's queries of one key head, page by page. */
static void
score(const struct attend *t, const struct tile *tile, size_t head, const float *q, float *s)
{
    const struct moe_kv_shape *shape = t->a->kv.shape;
    struct moe_mem *const *pages = t->a->kv.places[tile->first].pages;
    size_t queries = tile->n * (t->a->heads / shape->heads);

    for (uint32_t p = tile->begin; p < tile->end; p += MOE_KV_PAGE) {
        struct moe_view k = { pages[p / MOE_KV_PAGE],
            moe_backend_k_at(shape, t->a->kv.layer, head) };

        t->c->k->gemm_f32(s + (p - tile->begin), t->scores, moe_cpu_at(k), q, shape->k_dim,
            MOE_KV_PAGE, shape->k_dim, queries);
    }
}

/* One query: softmax of its visible scores, then the weighted values. */
static void
weigh(const struct attend *t, const struct tile *tile, size_t head, uint32_t pos, float *s,
    float *out)
{
    const struct moe_kv_shape *shape = t->a->kv.shape;
    struct moe_mem *const *pages = t->a->kv.places[tile->first].pages;
    uint32_t from = visible_from(t->a, pos);
    size_t n = pos - from + 1;

    s += from - tile->begin;
    for (size_t i = 0; i < n; i++)
        s[i] *= t->a->scale;
    t->c->k->softmax_f32(s, n);
    memset(out, 0, shape->v_dim * sizeof(*out));
    for (size_t i = 0; i < n; i++) {
        uint32_t p = from + (uint32_t)i;
        struct moe_view v = { pages[p / MOE_KV_PAGE],
            moe_backend_v_at(shape, t->a->kv.layer, head) };

        t->c->k->axpy_f32(out, (float *)moe_cpu_at(v) + p % MOE_KV_PAGE * shape->v_dim, s[i],
            shape->v_dim);
    }
}

static void
attend_job(void *ctx, size_t i, int worker)
{
    const struct attend *t = ctx;
    const struct moe_kv_shape *shape = t->a->kv.shape;
    const struct tile *tile = &t->tiles[i / shape->heads];
    size_t head = i % shape->heads, per = t->a->heads / shape->heads;
    float *q = t->c->own[worker].p, *s = q + TILE_ROWS * per * shape->k_dim;

    for (size_t j = 0; j < tile->n; j++)
        memcpy(q + j * per * shape->k_dim,
            moe_cpu_row(t->a->q, tile->first + j) + head * per * shape->k_dim,
            per * shape->k_dim * sizeof(float));
    score(t, tile, head, q, s);
    for (size_t j = 0; j < tile->n; j++) {
        for (size_t h = 0; h < per; h++)
            weigh(t, tile, head, t->a->kv.places[tile->first + j].pos,
                s + (j * per + h) * t->scores,
                moe_cpu_row(t->a->out, tile->first + j) + (head * per + h) * shape->v_dim);
    }
}

void
moe_cpu_attend_run(struct moe_backend *b, const struct moe_attend *a)
{
    struct attend t = { .c = (struct moe_cpu *)b, .a = a };
    const struct moe_kv_shape *shape = a->kv.shape;
    size_t per = a->heads / shape->heads, rows = 0, space;

    if (t.c->failed.code != 0 || a->kv.n == 0)
        return;
    if ((t.tiles = moe_cpu_shared(t.c, a->kv.n * sizeof(*t.tiles))) == NULL)
        return;
    t.n_tiles = cut_tiles(a, t.tiles, &t.scores);
    for (size_t i = 0; i < t.n_tiles; i++)
        rows = t.tiles[i].n > rows ? t.tiles[i].n : rows;
    space = TILE_ROWS * per * shape->k_dim + rows * per * t.scores;
    if (!moe_cpu_own(t.c, space * sizeof(float)))
        return;
    moe_cpu_run(t.c, t.n_tiles * shape->heads,
        a->kv.n * a->heads * t.scores * (shape->k_dim + shape->v_dim), attend_job, &t);
}
