/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seam to a device. A recording device stands before the processor's: its
 * memory cannot be looked into, weights must be copied to it, and it counts
 * what it is asked. Steps through it must give the processor's bits; a forward
 * pass that reached around the table would not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/session.h"
#include "tests/tap.h"

#define KJV "tests/data/kjv-moe"
#define LEN 40
#define VOCAB 2048          /* of the largest */

enum {
    EMBED, NORM, LAYER_NORM, CLIP, GEMM, ROTATE, STORE, ATTEND, ADD, COMBINE, READ, WRITE, KINDS
};
static const char *const kinds[KINDS] = {
    "embed", "norm", "layer norm", "clip", "gemm", "rotate", "store", "attend", "add", "combine",
    "read", "write"
};

struct moe_mem {            /* not what the processor's device means by it */
    unsigned char guard[64];
    struct moe_mem *behind;
    bool adopted;
};

struct recorder {
    struct moe_backend base;
    struct moe_backend *cpu;
    size_t count[KINDS], alive, adopted;
};

static struct recorder *
rec(struct moe_backend *b, int kind)
{
    struct recorder *r = (struct recorder *)b;

    if (kind >= 0)
        r->count[kind]++;
    return r;
}

static struct moe_view
behind(struct moe_view v)
{
    return (struct moe_view){ v.mem == NULL ? NULL : v.mem->behind, v.at };
}

static struct moe_rows
rows_behind(struct moe_rows r)
{
    return (struct moe_rows){ behind(r.at), r.ld };
}

static int
wrap(struct recorder *r, struct moe_mem *inner, struct moe_mem **out)
{
    struct moe_mem *m = malloc(sizeof(*m));

    memset(m->guard, 0xa5, sizeof(m->guard));
    m->behind = inner;
    m->adopted = false;
    r->alive++;
    *out = m;
    return 0;
}

static void
rec_free(struct moe_backend *b)
{
    (void)b;
}

static int
rec_alloc(struct moe_backend *b, size_t bytes, struct moe_mem **out, struct moe_err *e)
{
    struct recorder *r = rec(b, -1);
    struct moe_mem *m;
    int rc = r->cpu->ops->alloc(r->cpu, bytes, &m, e);

    return rc != 0 ? rc : wrap(r, m, out);
}

/* A copy, as on a device that cannot see the host's memory. */
static int
rec_adopt(struct moe_backend *b, const void *p, size_t bytes, struct moe_mem **out,
    struct moe_err *e)
{
    struct recorder *r = rec(b, -1);
    int rc = rec_alloc(b, bytes, out, e);

    if (rc != 0)
        return rc;
    r->adopted++;
    r->cpu->ops->write(r->cpu, (struct moe_view){ (*out)->behind, 0 }, p, bytes);
    (*out)->adopted = true;
    return 0;
}

static void
rec_release(struct moe_backend *b, struct moe_mem *m)
{
    struct recorder *r = rec(b, -1);

    if (m == NULL)
        return;
    r->cpu->ops->release(r->cpu, m->behind);
    r->alive--;
    free(m);
}

static void
rec_write(struct moe_backend *b, struct moe_view to, const void *p, size_t bytes)
{
    struct recorder *r = rec(b, WRITE);

    tap_ok(!to.mem->adopted, "adopted memory is not written");
    r->cpu->ops->write(r->cpu, behind(to), p, bytes);
}

static void
rec_read(struct moe_backend *b, void *p, struct moe_view from, size_t bytes)
{
    struct recorder *r = rec(b, READ);

    r->cpu->ops->read(r->cpu, p, behind(from), bytes);
}

static struct moe_matrix
matrix_behind(const struct moe_matrix *m)
{
    struct moe_matrix w = *m;

    w.data = behind(m->data);
    w.bias = behind(m->bias);
    return w;
}

static void
rec_embed(struct moe_backend *b, struct moe_rows out, const struct moe_matrix *w,
    const uint32_t *id, size_t n, float scale)
{
    struct recorder *r = rec(b, EMBED);
    struct moe_matrix m = matrix_behind(w);

    r->cpu->ops->embed(r->cpu, rows_behind(out), &m, id, n, scale);
}

static void
rec_layer_norm(struct moe_backend *b, struct moe_rows out, struct moe_rows x, struct moe_view w,
    struct moe_view bias, size_t n, size_t dim, float eps)
{
    struct recorder *r = rec(b, LAYER_NORM);

    r->cpu->ops->layer_norm(r->cpu, rows_behind(out), rows_behind(x), behind(w), behind(bias), n,
        dim, eps);
}

static void
rec_clip(struct moe_backend *b, struct moe_rows x, size_t n, size_t dim, float limit)
{
    struct recorder *r = rec(b, CLIP);

    r->cpu->ops->clip(r->cpu, rows_behind(x), n, dim, limit);
}

static void
rec_norm(struct moe_backend *b, struct moe_rows out, struct moe_rows x, struct moe_view w,
    size_t n, size_t heads, size_t dim, float eps)
{
    struct recorder *r = rec(b, NORM);

    r->cpu->ops->norm(r->cpu, rows_behind(out), rows_behind(x), behind(w), n, heads, dim, eps);
}

static void
rec_gemm(struct moe_backend *b, const struct moe_product *p, size_t count, enum moe_arith arith)
{
    struct recorder *r = rec(b, GEMM);
    struct moe_product *q = calloc(count, sizeof(*q));
    struct moe_matrix *m = calloc(2 * count, sizeof(*m));

    for (size_t i = 0; i < count; i++) {
        q[i] = p[i];
        q[i].x = rows_behind(p[i].x);
        q[i].out = rows_behind(p[i].out);
        m[2 * i] = matrix_behind(p[i].w);
        q[i].w = &m[2 * i];
        if (p[i].up != NULL) {
            m[2 * i + 1] = matrix_behind(p[i].up);
            q[i].up = &m[2 * i + 1];
        }
    }
    r->cpu->ops->gemm(r->cpu, q, count, arith);
    free(q);
    free(m);
}

static void
rec_rotate(struct moe_backend *b, const struct moe_rotate *t)
{
    struct recorder *r = rec(b, ROTATE);
    struct moe_rotate u = *t;

    u.x = rows_behind(t->x);
    u.out = rows_behind(t->out);
    r->cpu->ops->rotate(r->cpu, &u);
}

/* Pages of the device behind: rows are of one sequence, ascending. Freed with free_at(). */
static struct moe_kv_at
kv_behind(const struct moe_kv_at *kv)
{
    struct moe_place *places = calloc(kv->n, sizeof(*places));
    struct moe_kv_at at = *kv;

    for (size_t j = 0; j < kv->n; j++) {
        if (j > 0 && kv->places[j].pages == kv->places[j - 1].pages) {
            places[j] = places[j - 1];
        } else {
            struct moe_mem **pages = calloc(LEN, sizeof(struct moe_mem *));

            for (size_t p = 0; p <= kv->places[kv->n - 1].pos / MOE_KV_PAGE; p++)
                pages[p] = kv->places[j].pages[p]->behind;
            places[j].pages = pages;
        }
        places[j].pos = kv->places[j].pos;
    }
    at.places = places;
    return at;
}

static void
free_at(struct moe_kv_at *at)
{
    for (size_t j = 0; j < at->n; j++) {
        if (j == 0 || at->places[j].pages != at->places[j - 1].pages)
            free((void *)at->places[j].pages);
    }
    free((void *)at->places);
}

static void
rec_store(struct moe_backend *b, const struct moe_kv_at *kv, struct moe_rows k, struct moe_rows v)
{
    struct recorder *r = rec(b, STORE);
    struct moe_kv_at at = kv_behind(kv);

    r->cpu->ops->store(r->cpu, &at, rows_behind(k), rows_behind(v));
    free_at(&at);
}

static void
rec_attend(struct moe_backend *b, const struct moe_attend *a)
{
    struct recorder *r = rec(b, ATTEND);
    struct moe_attend c = *a;

    c.kv = kv_behind(&a->kv);
    c.q = rows_behind(a->q);
    c.out = rows_behind(a->out);
    c.sinks = behind(a->sinks);
    r->cpu->ops->attend(r->cpu, &c);
    free_at(&c.kv);
}

static void
rec_add(struct moe_backend *b, struct moe_rows x, struct moe_rows y, size_t n, size_t dim,
    float scale)
{
    struct recorder *r = rec(b, ADD);

    r->cpu->ops->add(r->cpu, rows_behind(x), rows_behind(y), n, dim, scale);
}

static void
rec_combine(struct moe_backend *b, struct moe_rows out, struct moe_rows y, const uint32_t *slot,
    const float *weight, size_t n, size_t k, size_t dim)
{
    struct recorder *r = rec(b, COMBINE);

    r->cpu->ops->combine(r->cpu, rows_behind(out), rows_behind(y), slot, weight, n, k, dim);
}

static int
rec_finish(struct moe_backend *b, struct moe_err *e)
{
    struct recorder *r = rec(b, -1);

    return r->cpu->ops->finish(r->cpu, e);
}

static const struct moe_backend_ops recording = {
    .name = "recorder", .host = false, .free = rec_free, .alloc = rec_alloc,
    .adopt = rec_adopt, .release = rec_release, .write = rec_write, .read = rec_read,
    .embed = rec_embed, .norm = rec_norm, .layer_norm = rec_layer_norm, .clip = rec_clip,
    .gemm = rec_gemm, .rotate = rec_rotate,
    .store = rec_store, .attend = rec_attend, .add = rec_add, .combine = rec_combine,
    .finish = rec_finish,
};

/* ---- Logits of LEN tokens ---- */

static int
keep(void *ctx, struct moe_session *s, size_t at, const float *logits, struct moe_err *e)
{
    size_t width = 640;     /* what every model has */
    float *to = ctx;

    (void)s;
    (void)e;
    memcpy(to + at * VOCAB, logits, width * sizeof(*logits));
    return 0;
}

static float *
logits_on(struct moe_backend *b, const char *model, size_t step)
{
    static const struct moe_sampler_options greedy = MOE_SAMPLER_GREEDY;
    float *out = calloc(LEN * VOCAB, sizeof(*out));
    struct moe_model *m = NULL;
    struct moe_kv *kv = NULL;
    struct moe_forward *f = NULL;
    struct moe_session *s = NULL;
    uint32_t id[LEN];
    struct moe_err e = { 0 };
    int rc;

    for (size_t i = 0; i < LEN; i++)
        id[i] = (uint32_t)(i * 97 % 640);
    if ((rc = moe_model_open(model, b, NULL, &m, &e)) == 0
        && (rc = moe_kv_new(b, &m->kv, 0, &kv, &e)) == 0
        && (rc = moe_forward_new(m, step, MOE_ARITH_F32, &f, &e)) == 0
        && (rc = moe_session_new(m, kv, LEN, 0, &greedy, &s, &e)) == 0
        && (rc = moe_session_add(s, id, LEN, &e)) == 0)
        rc = moe_session_run(f, s, true, keep, out, &e);
    tap_is_int(rc, 0, "a run on %s%s", b->ops->name, rc == 0 ? "" : e.text);
    moe_session_free(s);
    moe_forward_free(f);
    moe_kv_free(kv);
    moe_model_close(m);
    return out;
}

static void
layout(void)
{
    const struct moe_kv_shape s = { 3, 2, 24, 40 };
    size_t end = 0;
    bool tiles = true;

    for (size_t l = 0; l < 3; l++) {
        for (size_t h = 0; h < 2; h++) {
            tiles = tiles && moe_backend_k_at(&s, l, h) == end;
            end += 24 * MOE_KV_PAGE * sizeof(float);
        }
        for (size_t h = 0; h < 2; h++) {
            tiles = tiles && moe_backend_v_at(&s, l, h) == end;
            end += 40 * MOE_KV_PAGE * sizeof(float);
        }
    }
    tap_ok(tiles && moe_backend_page(&s) == end, "keys and values tile a page");
    tap_ok(moe_backend_ld(1) == 16 && moe_backend_ld(16) == 16 && moe_backend_ld(17) == 32,
        "widths of rows");
}

/* The directory of a golden model, made if it is not there; empty if it cannot be. */
static void
golden_model(const char *name, char *path, size_t n)
{
    char line[256];
    FILE *p;

    (void)snprintf(line, sizeof(line), ". tests/models.sh; model %s", name);
    *path = '\0';
    if ((p = popen(line, "r")) == NULL)
        return;
    if (fgets(path, (int)n, p) != NULL)
        path[strcspn(path, "\n")] = '\0';
    (void)pclose(p);
}

/* The same bits through the seam, and all memory given back. */
static void
check(struct recorder *r, const char *model)
{
    float *want = logits_on(r->cpu, model, LEN), *got = logits_on(&r->base, model, 13);

    tap_ok(memcmp(want, got, LEN * VOCAB * sizeof(*got)) == 0, "%s: the same bits through the seam",
        model);
    tap_is_int((long long)r->alive, 0, "%s: all memory was given back", model);
    free(want);
    free(got);
}

int
main(void)
{
    static const char *const families[] = { "olmoe", "phimoe", "deepseek_v2", "deepseek_v3",
        "gpt_oss", "granitemoe", "qwen2_moe" };
    struct recorder r = { .base = { &recording } };
    struct moe_backend *cpu;
    struct moe_err e;
    char path[256];

    layout();
    if (!tap_is_int(moe_backend_cpu_new(NULL, &cpu, &e), 0, "the processor"))
        return tap_done();
    r.cpu = cpu;
    check(&r, KJV);
    tap_is_int((long long)r.count[ATTEND], 4 * 4, "attention once a layer and step");
    tap_ok(r.adopted > 4 * 16 * 3, "weights were copied to the device");
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        golden_model(families[i], path, sizeof(path));
        check(&r, path);
    }
    for (int i = 0; i < KINDS; i++)
        tap_ok(r.count[i] > 0, "%s was asked for %zu times", kinds[i], r.count[i]);
    cpu->ops->free(cpu);
    return tap_done();
}
