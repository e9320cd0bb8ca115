/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the writing of packed models: which tensors become records, in what
 * order, and filling them on all threads. What a record is, is packed.c's.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_packed.h"
#include "cmd/moe-quant/quant_plan.h"
#include "common/base/arena.h"
#include "common/base/progress.h"
#include "common/base/stop.h"
#include "common/base/tool.h"
#include "common/formats/naming.h"
#include "common/formats/packedmeta.h"
#include "common/formats/qload.h"
#include "common/formats/repack.h"
#include "common/formats/sink.h"

#define MAX_AUX ((size_t)64 << 20)      /* bytes of a file beside the weights */
#define PIECE ((size_t)4 << 20)         /* bytes copied at a time */

struct matrix {                 /* one that the layout has; of a stack, one of an expert's */
    const char *module;         /* of the stack, if it is in one */
    struct moe_naming n;
    struct moe_qmat q;
    uint64_t first, step;       /* its rows in q */
    struct moe_packed form;
};

struct record {
    struct moe_packedmeta_scheme scheme;
    const struct matrix *m[3];  /* gate, up, down; or the one */
    uint64_t bytes;
};

struct job {
    struct moe_source *s;
    struct moe_qscheme *scheme;
    struct moe_arena arena;
    struct matrix *matrices;
    size_t n_matrices, cap_matrices;
    struct record *records;
    size_t n_records;
    struct moe_packedmeta_scheme *schemes;
    size_t n_schemes;
    bool *used;                 /* [tensors of s]: in a record */
    size_t *in_layer;           /* [layers]: records of experts */
    struct moe_tensor *out;     /* records, then what is copied */
    size_t *from;               /* [n_out]: tensor of s; of a record unused */
    size_t n_out;
    struct moe_buf json;
    const char *meta[MOE_PACKEDMETA_STRINGS];
    struct moe_sink *sink;
    struct moe_progress *progress;
    int rc;                     /* of the first piece of work that failed */
    size_t failed;
    struct moe_err err;
    pthread_mutex_t lock;
};

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

/* ---- What becomes a record ------------------------------------------------------ */

/* Whether moe-serve multiplies with a matrix as it is, and does not take it apart. */
static bool
is_multiplied(const struct moe_naming *n)
{
    if (n->role == MOE_ROLE_EXPERT)
        return n->layer >= 0 && (n->stacked ? !n->transposed || n->part == MOE_PART_PACKED :
            n->expert >= 0);
    switch (n->proj) {
    case MOE_PROJ_QKV:
    case MOE_PROJ_GATE_UP:
    case MOE_PROJ_KV_B:
    case MOE_PROJ_K_B:
    case MOE_PROJ_V_B:
        return false;
    default:
        break;
    }
    switch (n->role) {
    case MOE_ROLE_HEAD:
    case MOE_ROLE_ATTN:
    case MOE_ROLE_ROUTER:
    case MOE_ROLE_SHARED:
    case MOE_ROLE_SHARED_GATE:
    case MOE_ROLE_DENSE:
        return true;
    default:
        return false;
    }
}

/* Keep the rows of q as a matrix, if the layout has a form for them. */
static int
keep(struct job *j, const struct moe_naming *n, const char *module, const struct moe_qmat *q,
    uint64_t first, uint64_t step, uint64_t rows, struct moe_err *e)
{
    const struct moe_repack from = { q, first, step };
    struct moe_packed form;

    if (!moe_repack_of(&from, rows, &form))
        return 0;
    if (j->n_matrices == j->cap_matrices) {
        size_t cap = j->cap_matrices == 0 ? 256 : 2 * j->cap_matrices;
        struct matrix *p = realloc(j->matrices, cap * sizeof(*p));

        if (p == NULL)
            return no_memory(e);
        j->matrices = p;
        j->cap_matrices = cap;
    }
    j->matrices[j->n_matrices++] = (struct matrix){ module, *n, *q, first, step, form };
    return 0;
}

/* Gate and up, or down, of each expert of a stack. */
static int
take_stack(struct job *j, struct moe_naming n, const char *module, struct moe_err *e)
{
    bool both = n.proj == MOE_PROJ_GATE_UP;
    struct moe_qmat q;
    int rc = 0;

    for (int64_t x = 0; rc == 0 && x < moe_source_config(j->s)->experts; x++) {
        if ((rc = moe_qload_source(j->scheme, j->s, module, x, &q, e)) != 0 ||
            (both && q.rows % 2 != 0))
            return rc;
        n.expert = (int)x;
        n.proj = both ? MOE_PROJ_GATE : n.proj;
        rc = keep(j, &n, module, &q, 0, both && n.interleaved ? 2 : 1, q.rows / (both ? 2 : 1), e);
        n.proj = MOE_PROJ_UP;
        if (rc == 0 && both)
            rc = keep(j, &n, module, &q, n.interleaved ? 1 : q.rows / 2, n.interleaved ? 2 : 1,
                q.rows / 2, e);
        n.proj = both ? MOE_PROJ_GATE : MOE_PROJ_DOWN;
    }
    return rc;
}

/* Take tensor i if it is the codes of such a matrix. */
static int
take_tensor(struct job *j, size_t i, struct moe_err *e)
{
    const struct moe_config *c = moe_source_config(j->s);
    const struct moe_tensor *t = moe_source_at(j->s, i);
    const char *module;
    struct moe_naming n;
    struct moe_qmat q;
    int rc;

    if (!moe_naming_parse(c->family, c->layers, t->name, &n) || n.layer >= c->layers ||
        (n.part != MOE_PART_WEIGHT && n.part != MOE_PART_PACKED) || !is_multiplied(&n) ||
        (n.part == MOE_PART_WEIGHT && moe_dtype_is_float(t->dtype) &&
            moe_dtype_bits(t->dtype) > 8))
        return 0;
    if ((module = moe_arena_text(&j->arena, n.module, strlen(n.module))) == NULL)
        return no_memory(e);
    if (n.role == MOE_ROLE_EXPERT && n.stacked)
        return n.proj == MOE_PROJ_GATE_UP || n.proj == MOE_PROJ_DOWN ?
            take_stack(j, n, module, e) : 0;
    if ((rc = moe_qload_source(j->scheme, j->s, module, -1, &q, e)) != 0)
        return rc;
    return keep(j, &n, module, &q, 0, 1, q.rows, e);
}

static int
rank_of(enum moe_proj p)
{
    return p == MOE_PROJ_GATE ? 0 : p == MOE_PROJ_UP ? 1 : 2;
}

/* Layer by layer, its single matrices before its experts; what has no layer comes last. */
static int
in_order(const void *a, const void *b)
{
    const struct moe_naming *x = &((const struct matrix *)a)->n;
    const struct moe_naming *y = &((const struct matrix *)b)->n;
    unsigned lx = (unsigned)x->layer, ly = (unsigned)y->layer;     /* -1 is large */

    if (lx != ly)
        return lx < ly ? -1 : 1;
    if (x->expert != y->expert)
        return x->expert < y->expert ? -1 : 1;
    if (x->expert >= 0 && x->proj != y->proj)
        return rank_of(x->proj) < rank_of(y->proj) ? -1 : 1;
    return strcmp(((const struct matrix *)a)->module, ((const struct matrix *)b)->module);
}

static bool
alike(const struct moe_packed *a, const struct moe_packed *b)
{
    return a->kind == b->kind && a->scale_dtype == b->scale_dtype && a->rows == b->rows &&
        a->cols == b->cols && a->group == b->group && a->zeros == b->zeros && a->bias == b->bias;
}

/* Whether the three from m on are an expert that can be one record; r is then that. */
static bool
whole_expert(const struct matrix *m, size_t left, struct record *r)
{
    if (left < 3 || m[0].n.expert != m[2].n.expert || m[0].n.layer != m[2].n.layer ||
        m[0].n.proj != MOE_PROJ_GATE || m[1].n.proj != MOE_PROJ_UP ||
        m[2].n.proj != MOE_PROJ_DOWN || !alike(&m[0].form, &m[1].form))
        return false;
    *r = (struct record){ .scheme = { true, m[0].form, m[2].form }, .m = { m, m + 1, m + 2 } };
    return moe_packedmeta_bytes(&r->scheme, &r->bytes);
}

/* Records of the matrices in their order; parts of experts alone stay tensors. */
static void
make_records(struct job *j)
{
    const struct matrix *m = j->matrices;

    if (j->n_matrices > 0)
        qsort(j->matrices, j->n_matrices, sizeof(*m), in_order);
    for (size_t i = 0; i < j->n_matrices; i++) {
        struct record *r = &j->records[j->n_records];

        if (m[i].n.role == MOE_ROLE_EXPERT) {
            if (!whole_expert(m + i, j->n_matrices - i, r))
                continue;
            j->in_layer[m[i].n.layer]++;
            i += 2;
        } else {
            *r = (struct record){ .scheme = { .matrix = m[i].form }, .m = { m + i } };
            if (!moe_packedmeta_bytes(&r->scheme, &r->bytes))
                continue;
        }
        j->n_records++;
    }
}

/* The scheme's number; a new one for a new scheme. */
static size_t
number_scheme(struct job *j, const struct moe_packedmeta_scheme *s)
{
    size_t i = 0;

    while (i < j->n_schemes && (j->schemes[i].expert != s->expert ||
        !alike(&j->schemes[i].matrix, &s->matrix) || !alike(&j->schemes[i].down, &s->down)))
        i++;
    if (i == j->n_schemes)
        j->schemes[j->n_schemes++] = *s;
    return i;
}

/* ---- The list of tensors -------------------------------------------------------- */

/* Mark the tensors of a matrix; of a stack when all its experts are records. */
static int
use_parts(struct job *j, const struct matrix *m, struct moe_err *e)
{
    static const char *const suffix[] = { ".weight", ".weight_packed", ".weight_scale",
        ".weight_zero_point", ".weight_shape", ".weight_g_idx", ".weight_scale_inv", ".qweight",
        ".qzeros", ".scales", ".g_idx", "_blocks", "_scales", "", "_scale", "_scale_inv" };
    char name[MOE_QPARTS_NAME];

    if (m->n.stacked && m->n.role == MOE_ROLE_EXPERT &&
        j->in_layer[m->n.layer] != (size_t)moe_source_config(j->s)->experts)
        return 0;

    for (size_t i = 0; i < sizeof(suffix) / sizeof(suffix[0]); i++) {
        size_t t;

        if ((size_t)snprintf(name, sizeof(name), "%s%s", m->module, suffix[i]) >= sizeof(name))
            return moe_err_set(e, MOE_ELIMIT, "%s: the name is too long", m->module);
        if ((t = moe_source_find(j->s, name)) != SIZE_MAX)
            j->used[t] = true;
    }
    return 0;
}

/* The module a record belongs to: its matrix, or what its three or their stacks begin with. */
static int
record_name(struct job *j, const struct record *r, size_t scheme, const char **out,
    struct moe_err *e)
{
    const struct matrix *m = r->m[0];
    struct moe_buf base = MOE_BUF_INIT, name = MOE_BUF_INIT;
    const char *end = strrchr(m->module, '.');

    if (r->scheme.expert && end != NULL)
        moe_buf_add(&base, m->module, (size_t)(end - m->module));
    else
        moe_buf_str(&base, m->module);
    if (r->scheme.expert && m->n.stacked)
        moe_buf_fmt(&base, ".%d", m->n.expert);
    *out = NULL;
    if (!base.bad) {
        moe_packedmeta_name(&name, base.p, scheme);
        if (!name.bad)
            *out = moe_arena_text(&j->arena, name.p, name.len);
    }
    moe_buf_fini(&base);
    moe_buf_fini(&name);
    return *out != NULL ? 0 : no_memory(e);
}

static int
list_record(struct job *j, const struct record *r, struct moe_err *e)
{
    struct moe_tensor *t = &j->out[j->n_out];
    uint64_t *shape = moe_arena_get(&j->arena, sizeof(*shape));
    int rc;

    if (shape == NULL)
        return no_memory(e);
    *shape = r->bytes;
    *t = (struct moe_tensor){ .dtype = MOE_U8, .rank = 1, .shape = shape };
    if ((rc = record_name(j, r, number_scheme(j, &r->scheme), &t->name, e)) != 0)
        return rc;
    for (size_t k = 0; rc == 0 && k < 3 && r->m[k] != NULL; k++)
        rc = use_parts(j, r->m[k], e);
    j->n_out++;
    return rc;
}

static int
list_tensors(struct job *j, struct moe_err *e)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < j->n_records; i++)
        rc = list_record(j, &j->records[i], e);
    for (size_t i = 0; rc == 0 && i < moe_source_n(j->s); i++) {
        if (j->used[i])
            continue;
        j->from[j->n_out] = i;
        j->out[j->n_out++] = *moe_source_at(j->s, i);
    }
    if (rc == 0)
        rc = moe_packedmeta_write(j->schemes, j->n_schemes, &j->json, j->meta, e);
    return rc;
}

static int
plan(struct job *j, struct moe_err *e)
{
    const struct moe_config *c = moe_source_config(j->s);
    size_t tensors = moe_source_n(j->s), n;
    int rc = moe_qscheme_new(c->quant, c->name, &j->scheme, e);

    for (size_t i = 0; rc == 0 && i < tensors; i++)
        rc = take_tensor(j, i, e);
    if (rc != 0)
        return rc;
    n = tensors + j->n_matrices;
    j->records = calloc(n + 1, sizeof(*j->records));
    j->schemes = calloc(n + 1, sizeof(*j->schemes));
    j->used = calloc(n + 1, sizeof(*j->used));
    j->out = calloc(n + 1, sizeof(*j->out));
    j->from = calloc(n + 1, sizeof(*j->from));
    j->in_layer = calloc((size_t)c->layers + 1, sizeof(*j->in_layer));
    if (j->records == NULL || j->schemes == NULL || j->used == NULL || j->out == NULL ||
        j->from == NULL || j->in_layer == NULL)
        return no_memory(e);
    make_records(j);
    if (j->n_records == 0)
        return moe_err_set(e, MOE_EUNSUP, "%s: no matrix has an encoding of the packed layout:"
            " quantise it first", moe_source_path(j->s));
    return list_tensors(j, e);
}

/* ---- Filling -------------------------------------------------------------------- */

/* Block b of matrix m. */
static void
put_block(const struct matrix *m, uint64_t b, unsigned char *to)
{
    const struct moe_repack from = { &m->q, m->first, m->step };

    moe_repack_block(&m->form, b, &from, to);
}

static void
lay_out(const struct record *r, unsigned char *to)
{
    const struct moe_packed *a = &r->scheme.matrix;
    struct moe_packed_expert x;
    uint64_t block = 0;

    memset(to, 0, (size_t)r->bytes);
    (void)moe_packed_block_bytes(a, &block);
    if (!r->scheme.expert) {
        for (uint64_t b = 0; b < moe_packed_blocks(a); b++)
            put_block(r->m[0], b, to + b * block);
    } else if (moe_packed_expert_layout(a, &r->scheme.down, &x, NULL) == 0) {
        for (uint64_t b = 0; b < moe_packed_blocks(a); b++) {
            put_block(r->m[0], b, to + 2 * b * block);
            put_block(r->m[1], b, to + (2 * b + 1) * block);
        }
        for (uint64_t b = 0; b < moe_packed_blocks(&r->scheme.down); b++)
            put_block(r->m[2], b, to + x.down_at + b * x.down_block);
    }
    moe_packed_seal(to, r->bytes);
}

static int
write_record(struct job *j, size_t i, struct moe_err *e)
{
    const struct record *r = &j->records[i];
    unsigned char *p = aligned_alloc(MOE_PACKED_ALIGN, (size_t)r->bytes);
    int rc;

    if (p == NULL)
        return no_memory(e);
    lay_out(r, p);
    rc = moe_sink_pwrite(j->sink, i, 0, p, (size_t)r->bytes, e);
    free(p);
    moe_progress_add(j->progress, r->bytes);
    return rc;
}

static int
copy_tensor(struct job *j, size_t i, struct moe_err *e)
{
    const struct moe_tensor *t = moe_source_at(j->s, j->from[i]);
    uint64_t len = t->end - t->begin, n;
    void *p = malloc(PIECE);
    int rc = p != NULL ? 0 : no_memory(e);

    for (uint64_t at = 0; rc == 0 && at < len; at += n) {
        n = len - at < PIECE ? len - at : PIECE;
        if ((rc = moe_source_read(j->s, j->from[i], at, p, (size_t)n, e)) == 0 &&
            (rc = moe_sink_pwrite(j->sink, i, at, p, (size_t)n, e)) == 0)
            rc = moe_stop_check(e);
        moe_progress_add(j->progress, n);
    }
    free(p);
    return rc;
}

static void
work(void *ctx, size_t i, int worker)
{
    struct job *j = ctx;
    struct moe_err e = { 0, "" };
    int rc;

    (void)worker;
    if (__atomic_load_n(&j->rc, __ATOMIC_RELAXED) != 0)
        return;
    if ((rc = moe_stop_check(&e)) == 0)
        rc = i < j->n_records ? write_record(j, i, &e) : copy_tensor(j, i, &e);
    if (rc == 0)
        return;
    pthread_mutex_lock(&j->lock);
    if (j->rc == 0 || i < j->failed) {
        __atomic_store_n(&j->rc, rc, __ATOMIC_RELAXED);
        j->failed = i;
        j->err = e;
    }
    pthread_mutex_unlock(&j->lock);
}

static int
copy_beside(const struct job *j, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    const char *name;
    int rc = 0;

    for (size_t i = 0; rc == 0 && (name = moe_source_aux_name(j->s, i)) != NULL; i++) {
        moe_buf_clear(&b);
        if ((rc = moe_source_aux(j->s, name, MAX_AUX, &b, e)) == 0)
            rc = moe_sink_aux(j->sink, name, b.p, b.len, e);
    }
    moe_buf_fini(&b);
    return rc;
}

static int
fill(struct job *j, const char *dst, const struct quant_to_options *o, struct moe_err *e)
{
    const struct moe_sink_plan sink = { .tensors = j->out, .n = j->n_out, .meta = j->meta,
        .shard_bytes = QUANT_PLAN_SHARD, .align = MOE_PACKED_ALIGN };
    struct moe_progress progress;
    int rc = moe_sink_open(dst, o->force, &sink, &j->sink, e);

    if (rc != 0)
        return rc;
    moe_progress_start(&progress, "packing", moe_source_bytes(j->s), o->quiet);
    j->progress = &progress;
    moe_pool_run(o->pool, j->n_out, work, j);
    moe_progress_end(&progress);
    if (j->rc != 0)
        rc = moe_err_set(e, j->rc, "%s", j->err.text);
    if (rc != 0 || (rc = copy_beside(j, e)) != 0) {
        moe_sink_abort(j->sink);
        return rc;
    }
    return moe_sink_commit(j->sink, e);
}

static int
check_ends(struct moe_source *s, const char *dst, struct moe_err *e)
{
    const char *path = moe_source_path(s);

    if (moe_source_is_stream(s))
        return moe_err_set(e, MOE_EUNSUP, "%s: a stream cannot be packed: give a file", path);
    if (moe_source_gguf(s) != NULL)
        return moe_err_set(e, MOE_EUNSUP, "%s: a GGUF file: only safetensors are packed", path);
    if (!quant_plan_is_dir(dst))
        return moe_err_set(e, MOE_EUNSUP, "%s: a packed model is a directory", dst);
    if (moe_source_config(s) == NULL || !moe_source_is_dir(s))
        return moe_err_set(e, MOE_ENOENT, "%s: no config.json, which a packed model needs", path);
    return 0;
}

int
quant_packed_write(struct moe_source *s, const char *dst, const struct quant_to_options *o,
    struct moe_err *e)
{
    struct job j = { .s = s, .json = MOE_BUF_INIT, .lock = PTHREAD_MUTEX_INITIALIZER };
    size_t experts = 0;
    int rc = check_ends(s, dst, e);

    if (rc == 0 && (rc = plan(&j, e)) == 0)
        rc = fill(&j, dst, o, e);
    for (size_t i = 0; i < j.n_records; i++)
        experts += j.records[i].scheme.expert;
    if (rc == 0 && !o->quiet)
        moe_tool_warn("%zu experts and %zu matrices packed, %zu tensors copied", experts,
            j.n_records - experts, j.n_out - j.n_records);
    moe_qscheme_free(j.scheme);
    moe_arena_fini(&j.arena);
    moe_buf_fini(&j.json);
    free(j.matrices);
    free(j.records);
    free(j.schemes);
    free(j.used);
    free(j.in_layer);
    free(j.out);
    free(j.from);
    return rc;
}
