/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the passes: which sums are kept in which, the engine's runs, the file of factors. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd/moe-quant/quant_calib.h"
#include "cmd/moe-quant/quant_evidence.h"
#include "cmd/moe-quant/quant_reader.h"
#include "common/base/num.h"
#include "common/base/progress.h"
#include "common/base/tool.h"
#include "kernels/kernels.h"

#define MAX_NAMED 8             /* matrices that lines are written about */
#define BLOCK 64                /* rows of sums that a thread has in its cache */

/* What comes into some matrices: those that share it have one. */
struct entry {
    enum moe_weight weight;
    int layer, expert;
    size_t cols;
    const char *name;           /* of the first of the matrices */
    uint64_t tokens;
    float *h;                   /* [cols][cols] upper, while a pass keeps it */
    uint64_t at;                /* in the file: U, then the order */
};

struct quant_calib {
    const struct quant_calib_options *o;
    struct entry *entry;        /* layer after layer */
    size_t n;
    size_t *index;              /* [layers][experts + 1][MOE_W_N]: entry, from 1 */
    size_t layers, experts;
    size_t from, to;            /* entries of this pass */
    struct quant_evidence *evidence;
    struct moe_pool *pool;
    struct quant_reader reader;
    struct moe_observer observer;
    struct moe_tokens ids;
    struct moe_progress progress;
    FILE *file;
    unsigned char *map;
    size_t map_len;
    const char **rare;          /* [n_rare] */
    size_t n_rare;
    struct moe_err failed;
};

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "calibration: out of memory");
}

/* ---- What is looked at -------------------------------------------------------------- */

/* The weight whose input is what enters the item; MOE_W_N: none that the engine tells of. */
static enum moe_weight
weight_of(const struct quant_plan_item *x)
{
    bool down = x->proj == MOE_PROJ_DOWN;
    bool in = x->proj == MOE_PROJ_GATE || x->proj == MOE_PROJ_UP || x->proj == MOE_PROJ_GATE_UP;

    if (x->scheme.codec == NULL || x->scheme.codec->grid != QUANT_GRID_INT || x->redeal ||
        x->scheme.codec->rows != 1 || x->layer < 0)
        return MOE_W_N;
    switch (x->role) {
    case MOE_ROLE_EXPERT: return down ? MOE_W_EXPERT_DOWN : in ? MOE_W_EXPERT_GATE : MOE_W_N;
    case MOE_ROLE_SHARED: return down ? MOE_W_SHARED_DOWN : in ? MOE_W_SHARED_GATE : MOE_W_N;
    case MOE_ROLE_DENSE: return down ? MOE_W_DOWN : in ? MOE_W_GATE : MOE_W_N;
    case MOE_ROLE_ATTN:
        return x->proj == MOE_PROJ_O ? MOE_W_O : x->proj == MOE_PROJ_Q ||
            x->proj == MOE_PROJ_K || x->proj == MOE_PROJ_V ? MOE_W_Q : MOE_W_N;
    default: return MOE_W_N;
    }
}

static size_t *
place(const struct quant_calib *c, enum moe_weight w, int layer, int expert)
{
    size_t x = expert < 0 ? 0 : (size_t)expert + 1;

    if (layer < 0 || (size_t)layer >= c->layers || x > c->experts)
        return NULL;
    return &c->index[((size_t)layer * (c->experts + 1) + x) * MOE_W_N + w];
}

static int
by_layer(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    if (x->weight != y->weight)
        return x->weight < y->weight ? -1 : 1;
    return x->expert < y->expert ? -1 : x->expert > y->expert;
}

static int
list_entries(struct quant_calib *c, const struct quant_plan *p, struct moe_err *e)
{
    uint64_t cells;

    for (size_t i = 0; i < p->n; i++) {
        const struct quant_plan_item *x = &p->items[i];

        if (weight_of(x) == MOE_W_N)
            continue;
        c->layers = (size_t)x->layer + 1 > c->layers ? (size_t)x->layer + 1 : c->layers;
        if (x->expert >= 0 && (size_t)x->expert + 1 > c->experts)
            c->experts = (size_t)x->expert + 1;
    }
    if (!moe_num_mul(c->layers, c->experts + 1, &cells) ||
        !moe_num_mul(cells, MOE_W_N * sizeof(size_t), &cells) || cells > (uint64_t)1 << 32)
        return moe_err_set(e, MOE_ELIMIT, "calibration: too many layers and experts");
    c->index = calloc((size_t)cells + 1, 1);
    c->entry = calloc(p->n + 1, sizeof(*c->entry));
    c->rare = calloc(p->n + 1, sizeof(*c->rare));
    if (c->index == NULL || c->entry == NULL || c->rare == NULL)
        return no_memory(e);
    for (size_t i = 0; i < p->n; i++) {
        const struct quant_plan_item *x = &p->items[i];
        enum moe_weight w = weight_of(x);
        size_t *at = w == MOE_W_N ? NULL : place(c, w, x->layer, x->expert);

        if (at == NULL || *at != 0)
            continue;
        *at = 1;
        c->entry[c->n++] = (struct entry){ .weight = w, .layer = x->layer, .expert = x->expert,
            .cols = (size_t)x->cols, .name = x->name };
    }
    qsort(c->entry, c->n, sizeof(*c->entry), by_layer);
    for (size_t i = 0; i < c->n; i++)
        *place(c, c->entry[i].weight, c->entry[i].layer, c->entry[i].expert) = i + 1;
    return c->n > 0 ? 0 : moe_err_set(e, MOE_EUNSUP, "calibration: no matrix becomes whole numbers"
        " of its own row scales");
}

/* ---- Sums ------------------------------------------------------------------------------- */

struct sum_job { float *h; const struct moe_observed *o; };

/* Rows [i * BLOCK, ...) of the sums, for all inputs: they stay in the cache. */
static void
sum_block(void *ctx, size_t i, int worker)
{
    const struct sum_job *j = ctx;
    const struct moe_kernels *k = moe_kernels();
    size_t cols = j->o->cols, end = (i + 1) * BLOCK < cols ? (i + 1) * BLOCK : cols;

    (void)worker;
    for (size_t r = 0; r < j->o->n; r++) {
        const float *x = j->o->x + r * j->o->ld;

        for (size_t a = i * BLOCK; a < end; a++)
            k->axpy_f32(j->h + a * cols + a, x + a, x[a], cols - a);
    }
}

static void
observe(void *ctx, const struct moe_observed *o)
{
    struct quant_calib *c = ctx;
    bool expert = o->weight == MOE_W_EXPERT_GATE || o->weight == MOE_W_EXPERT_DOWN;
    size_t *at = place(c, o->weight, (int)o->layer, expert ? (int)o->expert : -1);
    struct sum_job job;
    struct entry *x;

    if (c->evidence != NULL && c->from == 0)
        quant_evidence_add(c->evidence, o);
    if (at == NULL || *at == 0)
        return;
    x = &c->entry[*at - 1];
    if (x->h == NULL || x->cols != o->cols)
        return;
    x->tokens += o->n;
    job = (struct sum_job){ x->h, o };
    moe_pool_run(c->pool, (x->cols + BLOCK - 1) / BLOCK, sum_block, &job);
}

/* ---- The engine's runs --------------------------------------------------------------------- */

static int
nothing(void *ctx, struct moe_session *s, size_t at, const float *logits, struct moe_err *e)
{
    (void)ctx, (void)s, (void)at, (void)logits, (void)e;
    return 0;
}

static int
open_engine(struct quant_calib *c, const char *model, struct moe_err *e)
{
    int rc;

    if ((rc = moe_pool_new(c->o->threads, &c->pool, e)) != 0 ||
        (rc = quant_reader_open(&c->reader, model, QUANT_READER_CONTEXT, c->pool, e)) != 0 ||
        (rc = quant_reader_tokens(&c->reader, c->o->text, QUANT_CALIB_FEW, c->o->tokens, &c->ids,
        e)) != 0)
        return rc;
    c->observer = (struct moe_observer){ observe, c };
    moe_forward_observe(c->reader.forward, &c->observer);
    return 0;
}

/* The whole text, in windows that know nothing of each other. */
static int
run_text(struct quant_calib *c, struct moe_err *e)
{
    int rc = 0;

    for (size_t at = 0; rc == 0 && at < c->ids.n; at += QUANT_READER_CONTEXT) {
        size_t left = c->ids.n - at;
        size_t n = left < QUANT_READER_CONTEXT ? left : QUANT_READER_CONTEXT;
        struct moe_session *s;

        if ((rc = quant_reader_begin(&c->reader, c->ids.id + at, n, &s, e)) != 0)
            break;
        rc = moe_session_run(c->reader.forward, s, false, nothing, NULL, e);
        moe_session_free(s);
        moe_progress_add(&c->progress, n);
    }
    return rc;
}

/* ---- Passes ---------------------------------------------------------------------------------- */

static uint64_t
square(size_t cols)
{
    return (uint64_t)cols * cols * sizeof(float);
}

/* As many entries from c->from on as fit; each with sums of zeros. */
static int
begin_pass(struct quant_calib *c, struct moe_err *e)
{
    uint64_t used = 0, most = 0;

    for (c->to = c->from; c->to < c->n; c->to++) {
        struct entry *x = &c->entry[c->to];
        uint64_t space = quant_gptq_space(x->cols) + square(x->cols);

        most = space > most ? space : most;
        if (used + square(x->cols) + most > c->o->memory) {
            if (c->to > c->from)
                break;
            return moe_err_set(e, MOE_ELIMIT, "%s: %zu columns do not fit in --memory: %llu MiB are"
                " wanted", x->name, x->cols,
                (unsigned long long)((square(x->cols) + most) >> 20) + 1);
        }
        used += square(x->cols);
        if ((x->h = calloc(x->cols * x->cols, sizeof(*x->h))) == NULL)
            return no_memory(e);
    }
    return 0;
}

static int
store(struct quant_calib *c, struct entry *x, const float *u, const uint32_t *order,
    struct moe_err *e)
{
    x->at = c->map_len;
    if (fwrite(u, sizeof(*u), x->cols * x->cols, c->file) != x->cols * x->cols ||
        fwrite(order, sizeof(*order), x->cols, c->file) != x->cols)
        return moe_err_sys(e, MOE_EIO, errno, "calibration: file of factors");
    c->map_len += (x->cols * x->cols + x->cols) * 4;
    return 0;
}

/* The sums of the pass to factors, in the file; those of too few tokens are dropped. */
static int
end_pass(struct quant_calib *c, struct moe_err *e)
{
    int rc = 0;

    for (size_t i = c->from; i < c->to; i++) {
        struct entry *x = &c->entry[i];
        bool few = x->tokens < QUANT_CALIB_FEW;
        float *u = NULL;
        uint32_t *order = NULL;

        if (few)
            c->rare[c->n_rare++] = x->name;
        if (rc == 0 && !few) {
            u = malloc(x->cols * x->cols * sizeof(*u));
            order = malloc(x->cols * sizeof(*order));
            rc = u == NULL || order == NULL ? no_memory(e) :
                quant_gptq_factor(x->h, x->cols, u, order, e);
            if (rc == 0)
                rc = store(c, x, u, order, e);
            else if (rc == MOE_EFORMAT)
                moe_err_at(e, "%s", x->name);
        }
        free(u);
        free(order);
        free(x->h);
        x->h = NULL;
    }
    return rc;
}

static int
map_file(struct quant_calib *c, struct moe_err *e)
{
    if (fflush(c->file) != 0)
        return moe_err_sys(e, MOE_EIO, errno, "calibration: file of factors");
    if (c->map_len == 0)
        return 0;
    c->map = mmap(NULL, c->map_len, PROT_READ, MAP_SHARED, fileno(c->file), 0);
    if (c->map != MAP_FAILED)
        return 0;
    c->map = NULL;
    return moe_err_sys(e, MOE_EIO, errno, "calibration: file of factors");
}

static int
passes(struct quant_calib *c, struct moe_err *e)
{
    int rc = 0;

    do {
        if (c->o->factors && (rc = begin_pass(c, e)) != 0)
            return rc;
        moe_progress_start(&c->progress, "calibrating", c->ids.n, c->o->quiet);
        rc = run_text(c, e);
        moe_progress_end(&c->progress);
        if (rc == 0 && c->o->factors)
            rc = end_pass(c, e);
        c->from = c->to;
    } while (rc == 0 && c->o->factors && c->from < c->n);
    return rc;
}

int
quant_calib_run(const char *model, const struct quant_plan *p,
    const struct quant_calib_options *o, struct quant_calib **out, struct moe_err *e)
{
    struct quant_calib *c = calloc(1, sizeof(*c));
    int rc;

    *out = NULL;
    if (c == NULL)
        return no_memory(e);
    c->o = o;
    if ((rc = list_entries(c, p, e)) != 0 || (rc = open_engine(c, model, e)) != 0)
        goto out;
    if (o->factors && (c->file = tmpfile()) == NULL)
        rc = moe_err_sys(e, MOE_EIO, errno, "calibration: file of factors");
    if (rc == 0 && o->imatrix != NULL)
        rc = quant_evidence_new(c->reader.model, &c->evidence, e);
    if (rc != 0 || (rc = passes(c, e)) != 0)
        goto out;
    if (o->imatrix != NULL)
        rc = quant_evidence_write(c->evidence, o->text, c->ids.n, o->imatrix, o->force, e);
    if (rc == 0 && o->factors)
        rc = map_file(c, e);
out:
    quant_reader_close(&c->reader);
    moe_pool_free(c->pool);
    moe_tokens_fini(&c->ids);
    c->pool = NULL;
    quant_evidence_free(c->evidence);
    c->evidence = NULL;
    if (rc != 0)
        quant_calib_free(c);
    else
        *out = c;
    return rc;
}

void
quant_calib_free(struct quant_calib *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; c->entry != NULL && i < c->n; i++)
        free(c->entry[i].h);
    if (c->map != NULL)
        (void)munmap(c->map, c->map_len);
    if (c->file != NULL)
        (void)fclose(c->file);
    free(c->entry);
    free(c->index);
    free(c->rare);
    free(c);
}

bool
quant_calib_find(const struct quant_calib *c, const struct quant_plan_item *x,
    struct quant_gptq *out)
{
    enum moe_weight w = weight_of(x);
    const size_t *at = w == MOE_W_N ? NULL : place(c, w, x->layer, x->expert);
    const struct entry *y = at == NULL || *at == 0 ? NULL : &c->entry[*at - 1];

    if (y == NULL || c->map == NULL || y->tokens < QUANT_CALIB_FEW)
        return false;
    *out = (struct quant_gptq){ .cols = y->cols,
        .u = (const float *)(const void *)(c->map + y->at),
        .order = (const uint32_t *)(const void *)(c->map + y->at + y->cols * y->cols * 4) };
    return true;
}

void
quant_calib_tell(const struct quant_calib *c)
{
    for (size_t i = 0; i < c->n_rare && i < MAX_NAMED; i++)
        moe_tool_warn("%s: fewer than %d tokens came to it: rounded to the nearest", c->rare[i],
            QUANT_CALIB_FEW);
    if (c->n_rare > MAX_NAMED)
        moe_tool_warn("and %zu more", c->n_rare - MAX_NAMED);
}
