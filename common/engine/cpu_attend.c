/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns keys, values and attention on the processor. A job is one key head of a
 * few neighbouring rows of one sequence: scores of a page are one product of
 * its keys with all queries of the job, and each query then sums the values of
 * its own visible positions in ascending order. A score, a softmax
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
    size_t n_tiles, rows;   /* and the rows of the largest */
    size_t scores;          /* floats between the scores of two queries */
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

/*
 * Softmax over the scores that head `query` sees at pos. A sink is one more score
 * behind them, where a position that is not seen would stand.
 */
static void
share(const struct attend *t, const struct tile *tile, uint32_t pos, size_t query, float *s)
{
    const float *sinks = moe_cpu_at(t->a->sinks);
    uint32_t from = visible_from(t->a, pos);
    size_t n = pos - from + 1;

    s += from - tile->begin;
    for (size_t i = 0; i < n; i++)
        s[i] *= t->a->scale;
    if (sinks != NULL)
        s[n] = sinks[query];
    t->c->k->softmax_f32(s, sinks != NULL ? n + 1 : n);
}

/*
 * Add one page's values to the tile's sums. Pages that every query sees whole
 * are taken together; else each query takes its own part.
 */
static void
weigh(const struct attend *t, const struct tile *tile, uint32_t page, const float *v,
    const float *s, float *sum)
{
    const struct moe_kv_shape *shape = t->a->kv.shape;
    const struct moe_place *places = t->a->kv.places + tile->first;
    size_t per = t->a->heads / shape->heads, dim = shape->v_dim;
    bool whole = true;

    for (size_t j = 0; j < tile->n; j++)
        whole = whole && visible_from(t->a, places[j].pos) <= page
            && places[j].pos >= page + MOE_KV_PAGE - 1;
    if (whole) {
        t->c->k->wsum_f32(sum, dim, v, s + (page - tile->begin), t->scores, MOE_KV_PAGE, dim,
            tile->n * per);
        return;
    }
    for (size_t j = 0; j < tile->n; j++) {
        uint32_t from = visible_from(t->a, places[j].pos), to = places[j].pos + 1;

        from = from > page ? from : page;
        to = to < page + MOE_KV_PAGE ? to : page + MOE_KV_PAGE;
        if (from < to)
            t->c->k->wsum_f32(sum + j * per * dim, dim, v + (from - page) * dim,
                s + j * per * t->scores + (from - tile->begin), t->scores, to - from, dim, per);
    }
}

static void
attend_job(void *ctx, size_t i, int worker)
{
    const struct attend *t = ctx;
    const struct moe_kv_shape *shape = t->a->kv.shape;
    const struct tile *tile = &t->tiles[i / shape->heads];
    const struct moe_place *places = t->a->kv.places + tile->first;
    size_t head = i % shape->heads, per = t->a->heads / shape->heads;
    size_t k_row = per * shape->k_dim, v_row = per * shape->v_dim;
    float *q = t->c->own[worker].p, *sum = q + t->rows * k_row, *s = sum + t->rows * v_row;

    for (size_t j = 0; j < tile->n; j++)
        memcpy(q + j * k_row, moe_cpu_row(t->a->q, tile->first + j) + head * k_row,
            k_row * sizeof(float));
    memset(sum, 0, tile->n * v_row * sizeof(float));
    score(t, tile, head, q, s);
    for (size_t j = 0; j < tile->n * per; j++)
        share(t, tile, places[j / per].pos, head * per + j % per, s + j * t->scores);
    for (uint32_t p = tile->begin; p < tile->end; p += MOE_KV_PAGE) {
        struct moe_view v = { places[0].pages[p / MOE_KV_PAGE],
            moe_backend_v_at(shape, t->a->kv.layer, head) };

        weigh(t, tile, p, moe_cpu_at(v), s, sum);
    }
    for (size_t j = 0; j < tile->n; j++)
        memcpy(moe_cpu_row(t->a->out, tile->first + j) + head * v_row, sum + j * v_row,
            v_row * sizeof(float));
}

void
moe_cpu_attend_run(struct moe_backend *b, const struct moe_attend *a)
{
    struct attend t = { .c = (struct moe_cpu *)b, .a = a };
    const struct moe_kv_shape *shape = a->kv.shape;
    size_t per = a->heads / shape->heads, space;

    if (t.c->failed.code != 0 || a->kv.n == 0)
        return;
    if ((t.tiles = moe_cpu_device_shared(t.c, a->kv.n * sizeof(*t.tiles))) == NULL)
        return;
    t.n_tiles = cut_tiles(a, t.tiles, &t.scores);
    for (size_t i = 0; i < t.n_tiles; i++)
        t.rows = t.tiles[i].n > t.rows ? t.tiles[i].n : t.rows;
    t.scores += a->sinks.mem != NULL ? MOE_BACKEND_LD : 0;
    space = t.rows * per * (shape->k_dim + shape->v_dim + t.scores);
    if (!moe_cpu_device_own(t.c, space * sizeof(float)))
        return;
    moe_cpu_device_run(t.c, t.n_tiles * shape->heads,
        a->kv.n * a->heads * t.scores * (shape->k_dim + shape->v_dim), attend_job, &t);
}
