/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns a step: embedding, layers, head, and the working space for them. What a
 * layer does is in attention.c, router.c and experts.c.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/stop.h"
#include "common/engine/forward_layer.h"

#define MAX_ROWS 65536
#define HEAD_FLOATS ((size_t)8 << 20)   /* of logits computed together */

/* A matrix of the working space: n rows of so many floats, and where it stands in a forward. */
struct space { size_t n, width, at; };  /* width 0: not needed */

#define SPACES 15

/* Inner products of a row that are there at once. */
static size_t
inner_rows(const struct moe_hparams *h)
{
    return (h->experts > 0 ? h->top_k : 1) + (h->shared_inter > 0);
}

static size_t
head_rows(const struct moe_hparams *h, size_t rows)
{
    size_t n = HEAD_FLOATS / h->vocab < 1 ? 1 : HEAD_FLOATS / h->vocab;

    return n < rows ? n : rows;
}

static void
set_spaces(const struct moe_model *m, size_t n, struct space out[SPACES])
{
    const struct moe_hparams *h = &m->hp;
    bool latent = m->family->latent;
    size_t q = h->heads * h->head_dim, kv = h->kv_heads * h->head_dim;
    size_t key = m->kv.k_dim, value = m->kv.v_dim, inner = n * inner_rows(h);
    size_t widest = h->inter > h->expert_inter ? h->inter : h->expert_inter;
    const struct space list[SPACES] = {
        { n, h->hidden, offsetof(struct moe_forward, x) },
        { n, h->hidden, offsetof(struct moe_forward, h) },
        { n, h->hidden, offsetof(struct moe_forward, y) },
        { n, q, offsetof(struct moe_forward, q) },
        { n, latent ? key : kv, offsetof(struct moe_forward, k) },
        { n, latent ? 0 : kv, offsetof(struct moe_forward, v) },
        { n, h->heads * value, offsetof(struct moe_forward, mix) },
        { n, latent ? h->q_lora : 0, offsetof(struct moe_forward, q_a) },
        { n, latent ? h->heads * key : 0, offsetof(struct moe_forward, to_latent) },
        { n, latent ? h->heads * h->v_dim : 0, offsetof(struct moe_forward, heads) },
        { n, h->experts + 1, offsetof(struct moe_forward, scores) },
        { n, h->shared_inter > 0, offsetof(struct moe_forward, shares) },
        { inner, widest > h->shared_inter ? widest : h->shared_inter,
            offsetof(struct moe_forward, inner) },
        { inner, h->hidden, offsetof(struct moe_forward, outer) },
        { head_rows(h, n), h->vocab, offsetof(struct moe_forward, logits) },
    };

    memcpy(out, list, sizeof(list));
}

uint64_t
moe_forward_bytes(const struct moe_model *m, size_t rows)
{
    struct space list[SPACES];
    uint64_t bytes = 0;

    set_spaces(m, rows, list);
    for (size_t i = 0; i < SPACES; i++)
        bytes += list[i].width == 0 ? 0 :
            (uint64_t)list[i].n * moe_backend_ld(list[i].width) * sizeof(float);
    return bytes;
}

static int
device_space(struct moe_forward *f, struct moe_err *e)
{
    struct space list[SPACES];

    set_spaces(f->m, f->rows, list);
    for (size_t i = 0; i < SPACES; i++) {
        struct moe_rows *out = (struct moe_rows *)(void *)((char *)f + list[i].at);
        int rc;

        if (list[i].width == 0)
            continue;
        out->ld = moe_backend_ld(list[i].width);
        if ((rc = f->b->ops->alloc(f->b, list[i].n * out->ld * sizeof(float), &out->at.mem,
            e)) != 0)
            return rc;
        f->mems[f->n_mems++] = out->at.mem;
    }
    return 0;
}

static int
host_space(struct moe_forward *f, struct moe_err *e)
{
    const struct moe_hparams *m = &f->m->hp;
    size_t n = f->rows, k = n * (m->top_k + 1), per = n * f->per;
    size_t products = (m->experts > m->heads ? m->experts : m->heads) + 1;

    f->places = calloc(n, sizeof(*f->places));
    f->ids = calloc(n, sizeof(*f->ids));
    f->tokens = calloc(n, sizeof(*f->tokens));
    f->count = calloc(n, sizeof(*f->count));
    f->keys = calloc(m->experts + 1, sizeof(*f->keys));
    f->cosine = calloc(n * m->rope_dim, sizeof(*f->cosine));
    f->sine = calloc(n * m->rope_dim, sizeof(*f->sine));
    f->host_scores = calloc(n * f->scores.ld, sizeof(*f->host_scores));
    f->chosen = calloc(k, sizeof(*f->chosen));
    f->share = calloc(k, sizeof(*f->share));
    f->slot = calloc(per, sizeof(*f->slot));
    f->weight = calloc(per, sizeof(*f->weight));
    f->host_shares = calloc(n * (f->shares.ld + 1), sizeof(*f->host_shares));
    f->by_head = calloc(m->heads, sizeof(*f->by_head));
    f->by_expert = calloc(k, sizeof(*f->by_expert));
    f->share_by_expert = calloc(k, sizeof(*f->share_by_expert));
    f->first = calloc(m->experts + 1, sizeof(*f->first));
    f->products = calloc(products, sizeof(*f->products));
    f->host_logits = calloc(f->head_rows * f->logits.ld, sizeof(*f->host_logits));
    if (f->places == NULL || f->ids == NULL || f->tokens == NULL || f->count == NULL ||
        f->cosine == NULL || f->sine == NULL || f->host_scores == NULL || f->keys == NULL ||
        f->chosen == NULL || f->share == NULL || f->slot == NULL || f->weight == NULL ||
        f->host_shares == NULL || f->by_expert == NULL || f->share_by_expert == NULL ||
        f->first == NULL || f->products == NULL || f->by_head == NULL || f->host_logits == NULL)
        return moe_err_set(e, MOE_ENOMEM, "working space: out of memory");
    for (size_t i = 0; i < n; i++)
        f->count[i] = (uint32_t)i;
    return 0;
}

int
moe_forward_new(const struct moe_model *m, size_t rows, enum moe_arith arith,
    struct moe_forward **out, struct moe_err *e)
{
    struct moe_forward *f = NULL;
    int rc;

    *out = NULL;
    if (rows < 1 || rows > MAX_ROWS)
        return moe_err_set(e, MOE_EUSAGE, "%zu rows a step: not in 1 to %d", rows, MAX_ROWS);
    if ((f = calloc(1, sizeof(*f))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "working space: out of memory");
    f->m = m;
    f->b = m->backend;
    f->arith = arith;
    f->rows = rows;
    f->per = inner_rows(&m->hp);
    f->head_rows = head_rows(&m->hp, rows);
    if ((rc = device_space(f, e)) == 0)
        rc = host_space(f, e);
    if (rc != 0) {
        moe_forward_free(f);
        return rc;
    }
    *out = f;
    return 0;
}

void
moe_forward_free(struct moe_forward *f)
{
    if (f == NULL)
        return;
    for (size_t i = 0; i < f->n_mems; i++)
        f->b->ops->release(f->b, f->mems[i]);
    free(f->places);
    free(f->ids);
    free(f->tokens);
    free(f->keys);
    free(f->count);
    free(f->cosine);
    free(f->sine);
    free(f->host_scores);
    free(f->chosen);
    free(f->share);
    free(f->slot);
    free(f->weight);
    free(f->host_shares);
    free(f->by_head);
    free(f->by_expert);
    free(f->share_by_expert);
    free(f->first);
    free(f->products);
    free(f->host_logits);
    free(f->told);
    free(f);
}

const struct moe_model *
moe_forward_model(const struct moe_forward *f)
{
    return f->m;
}

size_t
moe_forward_rows(const struct moe_forward *f)
{
    return f->rows;
}

void
moe_forward_observe(struct moe_forward *f, const struct moe_observer *o)
{
    f->observer = o;
}

int
moe_forward_noise(struct moe_forward *f, struct moe_forward_gate g, struct moe_err *e)
{
    if (g.temperature != 0 && !(g.temperature >= 1e-3 && g.temperature <= 1e3))
        return moe_err_set(e, MOE_EUSAGE, "a gate of temperature %g: not 0 nor in 0.001 to 1000",
            g.temperature);
    f->gate = g;
    return 0;
}

int
moe_forward_tell(struct moe_forward *f, const struct moe_told *t, struct moe_err *e)
{
    struct moe_observed o = { .weight = t->weight, .layer = t->layer, .expert = t->expert,
        .n = t->n, .ld = t->x.ld, .cols = t->cols, .share = t->share };
    size_t need = t->n * t->x.ld;

    if (f->observer == NULL)
        return 0;
    if (need > f->told_cap) {
        float *p = realloc(f->told, need * sizeof(*p));

        if (p == NULL)
            return moe_err_set(e, MOE_ENOMEM, "observer: out of memory");
        f->told = p;
        f->told_cap = need;
    }
    for (size_t j = 0; j < t->n; j++) {
        size_t from = t->pick == NULL ? j : t->pick[j];

        f->b->ops->read(f->b, f->told + j * t->x.ld, moe_backend_view(t->x.at, from * t->x.ld),
            t->x.ld * sizeof(float));
    }
    o.x = f->told;
    o.row = t->row == NULL ? f->count : t->row;
    f->observer->fn(f->observer->ctx, &o);
    return 0;
}

/* Tokens, places and angles of the rows. */
static int
set_rows(struct moe_forward *f, const struct moe_row *rows, size_t n, struct moe_err *e)
{
    size_t half = f->m->hp.rope_dim / 2;

    if (n > f->rows)
        return moe_err_set(e, MOE_EUSAGE, "%zu rows in a step made for %zu", n, f->rows);
    for (size_t j = 0; j < n; j++) {
        if (rows[j].token >= f->m->hp.vocab)
            return moe_err_set(e, MOE_EUSAGE, "token %lu is not in the vocabulary of %zu",
                (unsigned long)rows[j].token, f->m->hp.vocab);
        f->ids[j] = f->tokens[j] = rows[j].token;
        f->places[j] = (struct moe_place){ rows[j].seq->pages, rows[j].pos };
        moe_rope_at(rows[j].rope, rows[j].pos, f->cosine + j * half, f->sine + j * half);
    }
    return 0;
}

/* h = the norm of x. */
static void
norm(struct moe_forward *f, struct moe_view w, struct moe_view bias, size_t n)
{
    const struct moe_hparams *h = &f->m->hp;

    if (f->m->family->norm == MOE_NORM_LAYER)
        f->b->ops->layer_norm(f->b, f->h, f->x, w, bias, n, h->hidden, h->eps);
    else
        f->b->ops->norm(f->b, f->h, f->x, w, n, 1, h->hidden, h->eps);
}

static int
layer(struct moe_forward *f, size_t l, size_t n, struct moe_err *e)
{
    const struct moe_layer *y = &f->m->layers[l];
    const struct moe_hparams *h = &f->m->hp;
    int rc;

    norm(f, y->attn_norm, y->attn_norm_bias, n);
    rc = f->m->family->latent ? moe_mla_run(f, l, n, e) : moe_attention_run(f, l, n, e);
    if (rc != 0)
        return rc;
    f->b->ops->add(f->b, f->x, f->y, n, h->hidden, h->residual_scale);
    norm(f, y->mlp_norm, y->mlp_norm_bias, n);
    if ((rc = moe_experts_run(f, l, n, e)) != 0)
        return rc;
    f->b->ops->add(f->b, f->x, f->y, n, h->hidden, h->residual_scale);
    return moe_stop_check(e);
}

/* Logits of the wanted rows, some at a time. */
static int
head(struct moe_forward *f, const struct moe_row *rows, size_t n, moe_forward_fn *fn, void *ctx,
    struct moe_err *e)
{
    size_t wanted = 0;
    int rc;

    for (size_t j = 0; j < n; j++) {
        if (rows[j].want)
            f->ids[wanted++] = (uint32_t)j;
    }
    if (wanted == 0)
        return 0;
    norm(f, f->m->norm, f->m->norm_bias, n);
    for (size_t at = 0; at < wanted; at += f->head_rows) {
        size_t some = wanted - at < f->head_rows ? wanted - at : f->head_rows;
        const struct moe_product p = { .w = &f->m->head, .x = f->h, .out = f->logits,
            .rows = f->ids + at, .n = some };
        struct moe_told t = { .weight = MOE_W_HEAD, .x = f->h, .cols = f->m->hp.hidden, .n = some,
            .pick = f->ids + at, .row = f->ids + at };

        if ((rc = moe_forward_tell(f, &t, e)) != 0)
            return rc;
        f->b->ops->gemm(f->b, &p, 1, f->arith);
        f->b->ops->read(f->b, f->host_logits, f->logits.at,
            some * f->logits.ld * sizeof(float));
        if ((rc = f->b->ops->finish(f->b, e)) != 0)
            return rc;
        for (size_t j = 0; j < some; j++) {
            float *row = f->host_logits + j * f->logits.ld;

            for (size_t i = 0; f->m->hp.logits_div != 1 && i < f->m->hp.vocab; i++)
                row[i] /= f->m->hp.logits_div;
            if ((rc = fn(ctx, f->ids[at + j], row, e)) < 0)
                return rc;
        }
    }
    return 0;
}

int
moe_forward_step(struct moe_forward *f, const struct moe_row *rows, size_t n,
    moe_forward_fn *fn, void *ctx, struct moe_err *e)
{
    int rc, failed;

    if ((rc = set_rows(f, rows, n, e)) != 0)
        return rc;
    f->b->ops->embed(f->b, f->x, &f->m->embed, f->ids, n, f->m->hp.embed_scale);
    for (size_t l = 0; l < f->m->hp.n_layers && rc == 0; l++)
        rc = layer(f, l, n, e);
    if (rc == 0)
        rc = head(f, rows, n, fn, ctx, e);
    failed = f->b->ops->finish(f->b, rc == 0 ? e : NULL);
    return rc != 0 ? rc : failed;
}
