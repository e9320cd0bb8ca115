/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the choice of experts. Scores are a product on the device; the choice is
 * made on the host, once for every device: it is little work, decides which
 * weights are read next, and is where families differ most.
 */
#include <math.h>
#include <string.h>

#include "common/base/random.h"
#include "common/engine/forward_layer.h"
#include "kernels/kernels.h"

/* The choice of one row: what goes in, and the k chosen with their weights. */
struct choice {
    const struct moe_hparams *h;
    const struct moe_layer *y;
    float *scores;              /* [experts] */
    float *keys;                /* [experts] what experts are chosen by */
    uint32_t *chosen;
    float *share;
};

/* The k chosen of one row, by ascending expert: the order in which they are summed. */
static void
by_expert(uint32_t *chosen, float *share, size_t k)
{
    for (size_t i = 1; i < k; i++) {
        uint32_t id = chosen[i];
        float s = share[i];
        size_t j = i;

        for (; j > 0 && chosen[j - 1] > id; j--) {
            chosen[j] = chosen[j - 1];
            share[j] = share[j - 1];
        }
        chosen[j] = id;
        share[j] = s;
    }
}

/* A sigmoid is a softmax of two, of which one is 0. */
static void
sigmoid(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float two[2] = { x[i], 0 };

        moe_kernels()->softmax_f32(two, 2);
        x[i] = two[0];
    }
}

/* The largest of a group of keys, or the sum of its two largest. */
static float
group_score(const float *x, size_t n, bool two)
{
    float first = -INFINITY, second = -INFINITY;

    for (size_t i = 0; i < n; i++) {
        if (x[i] > first) {
            second = first;
            first = x[i];
        } else if (x[i] > second) {
            second = x[i];
        }
    }
    return two ? first + second : first;
}

/* Keys of the groups that are not kept become less than any other. */
static void
keep_groups(const struct choice *c)
{
    const struct moe_hparams *h = c->h;
    size_t per = h->experts / h->n_group;
    float score[MOE_MODEL_MAX_EXPERTS];
    uint32_t kept[MOE_MODEL_MAX_EXPERTS];

    for (size_t g = 0; g < h->n_group; g++)
        score[g] = group_score(c->keys + g * per, per, h->groups == MOE_GROUPS_TOP_2);
    moe_kernels()->topk_f32(kept, score, h->n_group, h->topk_group);
    for (size_t g = 0; g < h->n_group; g++) {
        bool keep = false;

        for (size_t i = 0; i < h->topk_group; i++)
            keep = keep || kept[i] == g;
        for (size_t i = g * per; !keep && i < (g + 1) * per; i++)
            c->keys[i] = -INFINITY;
    }
}

/* The k largest keys, weighed by their scores. */
static void
choose(const struct choice *c, const struct moe_family *f)
{
    const struct moe_hparams *h = c->h;
    float sum = 0;

    if (h->groups != MOE_GROUPS_NONE)
        keep_groups(c);
    moe_kernels()->topk_f32(c->chosen, c->keys, h->experts, h->top_k);
    for (size_t i = 0; i < h->top_k; i++)
        sum += c->share[i] = c->scores[c->chosen[i]];
    sum += (float)f->renorm_add;
    if (sum < (float)f->renorm_min)
        sum = (float)f->renorm_min;
    for (size_t i = 0; i < h->top_k; i++) {
        if (h->renorm)
            c->share[i] /= sum;
        c->share[i] *= h->route_scale;
    }
}

/* What experts are chosen by: their scores, and the bias where there is one. */
static void
set_keys(const struct choice *c)
{
    memcpy(c->keys, c->scores, c->h->experts * sizeof(*c->keys));
    for (size_t i = 0; c->y->router_bias != NULL && i < c->h->experts; i++)
        c->keys[i] += c->y->router_bias[i];
}

/* Softmax over the scores of the k chosen alone. */
static void
top_softmax(const struct choice *c)
{
    moe_kernels()->topk_f32(c->chosen, c->scores, c->h->experts, c->h->top_k);
    for (size_t i = 0; i < c->h->top_k; i++)
        c->share[i] = c->scores[c->chosen[i]];
    moe_kernels()->softmax_f32(c->share, c->h->top_k);
}

/*
 * Twice the largest that is left, weighed by a softmax over those whose distance
 * to it is at most twice the jitter, relative to the larger of both.
 */
static void
sparsemixer(const struct choice *c)
{
    size_t n = c->h->experts;
    float twice = 2 * c->h->jitter;

    memcpy(c->keys, c->scores, n * sizeof(*c->keys));
    for (size_t k = 0; k < 2; k++) {
        uint32_t best;
        float top;

        moe_kernels()->topk_f32(&best, c->keys, n, 1);
        top = c->keys[best];
        memcpy(c->scores, c->keys, n * sizeof(*c->keys));
        for (size_t i = 0; i < n; i++) {
            float size = fabsf(c->keys[i]) > top ? fabsf(c->keys[i]) : top;

            if ((top - c->keys[i]) / size > twice)
                c->scores[i] = -INFINITY;
        }
        moe_kernels()->softmax_f32(c->scores, n);
        c->chosen[k] = best;
        c->share[k] = c->scores[best];
        c->keys[best] = -INFINITY;
    }
}

static void
route(const struct choice *c, const struct moe_family *f)
{
    switch (f->router) {
    case MOE_ROUTER_SOFTMAX: case MOE_ROUTER_SOFTMAX_BIAS:
        moe_kernels()->softmax_f32(c->scores, c->h->experts);
        set_keys(c);
        choose(c, f);
        break;
    case MOE_ROUTER_SIGMOID:
        sigmoid(c->scores, c->h->experts);
        set_keys(c);
        choose(c, f);
        break;
    case MOE_ROUTER_TOP_SOFTMAX: top_softmax(c); break;
    case MOE_ROUTER_SPARSEMIXER: sparsemixer(c); break;
    }
}

/* ---- Noise ------------------------------------------------------------------------- */

/* Nothing but the row's own place and token and the layer decides about its noise. */
static void
add_noise(const struct moe_forward *f, size_t l, size_t row, float *scores)
{
    uint64_t state = moe_random_bits(f->gate.seed, 0) ^ l;

    state = moe_random_bits(state, 0) ^ f->places[row].pos;
    state = moe_random_bits(state, 0) ^ f->tokens[row];
    for (size_t x = 0; x < f->m->hp.experts; x++) {
        double u = ((double)(moe_random_bits(state, x) >> 11) + 0.5) / 9007199254740992.0;

        scores[x] = (float)(((double)scores[x] - log(-log(u))) / f->gate.temperature);
    }
}

int
moe_router_run(struct moe_forward *f, size_t l, size_t n, struct moe_err *e)
{
    const struct moe_model *m = f->m;
    const struct moe_product p = { .w = &m->layers[l].router, .x = f->h, .out = f->scores,
        .n = n };
    struct moe_told t = { .weight = MOE_W_ROUTER, .layer = l, .x = f->h, .cols = m->hp.hidden,
        .n = n };
    int rc;

    if ((rc = moe_forward_tell(f, &t, e)) != 0)
        return rc;
    f->b->ops->gemm(f->b, &p, 1, MOE_ARITH_F32);
    f->b->ops->read(f->b, f->host_scores, f->scores.at, n * f->scores.ld * sizeof(float));
    for (size_t j = 0; j < n; j++) {
        struct choice c = { &m->hp, &m->layers[l], f->host_scores + j * f->scores.ld, f->keys,
            f->chosen + j * m->hp.top_k, f->share + j * m->hp.top_k };

        if (f->gate.temperature > 0)
            add_noise(f, l, j, c.scores);
        route(&c, m->family);
        by_expert(c.chosen, c.share, m->hp.top_k);
    }
    return 0;
}
