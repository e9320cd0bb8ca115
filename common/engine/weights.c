/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the way of weights from a source to a device. Plain types stay where
 * they are mapped; INT4 with one scale a group is packed for the kernels; any
 * other encoding stays mapped and is decoded row by row as it is used.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/weights.h"
#include "common/formats/packed.h"
#include "common/formats/qload.h"

/* ---- What the model owns ---- */

static int
keep_mem(struct moe_model *m, struct moe_mem *mem, struct moe_err *e)
{
    if (m->n_mems == m->cap_mems) {
        size_t cap = m->cap_mems == 0 ? 64 : 2 * m->cap_mems;
        struct moe_mem **p = realloc(m->mems, cap * sizeof(*p));

        if (p == NULL) {
            m->backend->ops->release(m->backend, mem);
            return moe_err_set(e, MOE_ENOMEM, "weights: out of memory");
        }
        m->mems = p;
        m->cap_mems = cap;
    }
    m->mems[m->n_mems++] = mem;
    return 0;
}

static int
device_alloc(struct moe_model *m, size_t bytes, struct moe_mem **out, struct moe_err *e)
{
    int rc;

    if ((rc = m->backend->ops->alloc(m->backend, bytes, out, e)) != 0)
        return rc;
    return keep_mem(m, *out, e);
}

/* Mapped bytes as they are, or a copy when an element would straddle its alignment. */
static int
device_adopt(struct moe_model *m, const void *p, size_t bytes, size_t element,
    struct moe_mem **out, struct moe_err *e)
{
    int rc;

    if ((uintptr_t)p % element == 0) {
        if ((rc = m->backend->ops->adopt(m->backend, p, bytes, out, e)) != 0)
            return rc;
        return keep_mem(m, *out, e);
    }
    if ((rc = device_alloc(m, bytes, out, e)) != 0)
        return rc;
    m->backend->ops->write(m->backend, (struct moe_view){ *out, 0 }, p, bytes);
    return 0;
}

static int
keep_coded(struct moe_model *m, const struct moe_qmat *q, const struct moe_qmat **out,
    struct moe_err *e)
{
    struct moe_qmat *copy;

    if (m->n_coded == m->cap_coded) {
        size_t cap = m->cap_coded == 0 ? 64 : 2 * m->cap_coded;
        struct moe_qmat **p = realloc(m->coded, cap * sizeof(*p));

        if (p == NULL)
            return moe_err_set(e, MOE_ENOMEM, "weights: out of memory");
        m->coded = p;
        m->cap_coded = cap;
    }
    if ((copy = malloc(sizeof(*copy))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "weights: out of memory");
    *copy = *q;
    *out = m->coded[m->n_coded++] = copy;
    return 0;
}

void
moe_weights_fini(struct moe_model *m)
{
    for (size_t i = 0; i < m->n_mems; i++)
        m->backend->ops->release(m->backend, m->mems[i]);
    for (size_t i = 0; i < m->n_coded; i++)
        free(m->coded[i]);
    free(m->mems);
    free(m->coded);
}

/* ---- Plain tensors ---- */

static const char *
name_of(const struct moe_weights_at *at, const char *suffix, char dst[MOE_FAMILY_MAX_NAME])
{
    return moe_family_tensor(at->m->family, at->w, at->layer, at->expert, suffix, dst);
}

static bool
present(const struct moe_weights_at *at, const char *suffix)
{
    char name[MOE_FAMILY_MAX_NAME];

    return moe_source_find(at->m->source, name_of(at, suffix, name)) != SIZE_MAX;
}

/* "[a, b]" of a shape. */
static void
shape_text(const uint64_t *shape, int rank, char *dst, size_t n)
{
    size_t at = (size_t)snprintf(dst, n, "[");

    for (int i = 0; i < rank && at < n; i++)
        at += (size_t)snprintf(dst + at, n - at, "%s%llu", i == 0 ? "" : ", ",
            (unsigned long long)shape[i]);
    if (at < n)
        snprintf(dst + at, n - at, "]");
}

/* A tensor of F32, BF16 or F16 with exactly this shape, mapped. */
static int
plain_tensor(struct moe_model *m, const char *name, const uint64_t *shape, int rank,
    const struct moe_tensor **t, const void **p, struct moe_err *e)
{
    const char *path = moe_source_path(m->source);
    size_t i = moe_source_find(m->source, name);
    enum moe_matrix_format f;
    char got[128], want[128];
    int rc;

    if (i == SIZE_MAX)
        return moe_err_set(e, MOE_ENOENT, "%s: %s: the tensor is missing", path, name);
    *t = moe_source_at(m->source, i);
    if (!moe_matrix_plain((*t)->dtype, &f))
        return moe_err_set(e, MOE_EUNSUP, "%s: %s: %s is not F32, BF16 or F16", path, name,
            moe_dtype_name((*t)->dtype));
    if ((*t)->rank != rank || memcmp((*t)->shape, shape, (size_t)rank * sizeof(*shape)) != 0) {
        shape_text((*t)->shape, (*t)->rank, got, sizeof(got));
        shape_text(shape, rank, want, sizeof(want));
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: shape %s, not %s", path, name, got, want);
    }
    if ((rc = moe_source_map(m->source, i, p, e)) != 0)
        return rc;
    return 0;
}

int
moe_weights_vector(struct moe_weights_at at, const char *suffix, size_t n,
    struct moe_view *out, struct moe_err *e)
{
    const uint64_t shape[1] = { n };
    char name[MOE_FAMILY_MAX_NAME];
    const struct moe_tensor *t = NULL;
    const void *p = NULL;
    float *v;
    int rc;

    *out = (struct moe_view){ NULL, 0 };
    if ((rc = plain_tensor(at.m, name_of(&at, suffix, name), shape, 1, &t, &p, e)) != 0)
        return rc;
    if ((v = malloc((n + 1) * sizeof(*v))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    moe_dtype_to_f32(t->dtype, p, n, v);
    if ((rc = device_alloc(at.m, n * sizeof(*v), &out->mem, e)) == 0)
        at.m->backend->ops->write(at.m->backend, *out, v, n * sizeof(*v));
    free(v);
    return rc;
}

/* ---- Matrices ---- */

/* The weight of at as stored, checked against a shape; expert >= 0: of a stack. */
static int
load_qmat(struct moe_weights_at at, int64_t expert, size_t rows, size_t cols,
    struct moe_qmat *q, struct moe_err *e)
{
    struct moe_model *m = at.m;
    char name[MOE_FAMILY_MAX_NAME];
    int rc;

    name_of(&at, "", name);
    if ((rc = moe_qload_source(m->scheme, m->source, name, expert, q, e)) != 0)
        return rc;
    if (q->rows != rows || q->cols != cols)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: shape [%llu, %llu], not [%zu, %zu]",
            moe_source_path(m->source), name, (unsigned long long)q->rows,
            (unsigned long long)q->cols, rows, cols);
    return 0;
}

/* Whether kernels multiply q in the packed layout; *p is then its form there. */
static bool
packable(const struct moe_qmat *q, struct moe_packed *p)
{
    return moe_packed_of(q, p) && p->kind == MOE_PACKED_I4 && !p->zeros;
}

static struct moe_matrix
packed_matrix(const struct moe_packed *p, bool paired, struct moe_mem *mem, size_t at)
{
    struct moe_matrix w = { .format = MOE_MATRIX_I4, .paired = paired,
        .f16 = p->scale_dtype == MOE_F16, .rows = p->rows, .cols = p->cols, .group = p->group,
        .data = { mem, at } };
    uint64_t bytes = 0;

    moe_packed_block_bytes(p, &bytes);
    w.block_bytes = bytes;
    return w;
}

/* Lay out one matrix, or two whose blocks alternate, and put it on the device. */
static int
pack(struct moe_model *m, const struct moe_matrix *w, const struct moe_qmat *q,
    const struct moe_qmat *beside, struct moe_err *e)
{
    size_t bytes = moe_matrix_bytes(w);
    unsigned char *to = aligned_alloc(64, bytes), *at = to;
    struct moe_packed p;

    if (to == NULL)
        return moe_err_set(e, MOE_ENOMEM, "weights: out of memory");
    moe_packed_of(q, &p);
    for (uint64_t b = 0; b < moe_packed_blocks(&p); b++) {
        moe_packed_from_ct(&p, b, q, at);
        at += w->block_bytes;
        if (beside == NULL)
            continue;
        moe_packed_from_ct(&p, b, beside, at);
        at += w->block_bytes;
    }
    m->backend->ops->write(m->backend, w->data, to, bytes);
    free(to);
    return 0;
}

/* q as it is stored: plain rows, or any encoding that is decoded when used. */
static int
as_stored(struct moe_model *m, const struct moe_qmat *q, struct moe_matrix *out,
    struct moe_err *e)
{
    *out = (struct moe_matrix){ .format = MOE_MATRIX_CODED, .rows = q->rows, .cols = q->cols };
    if (q->enc == MOE_ENC_PLAIN && moe_matrix_plain(q->dtype, &out->format))
        return device_adopt(m, q->data, moe_matrix_bytes(out), moe_dtype_bits(q->dtype) / 8,
            &out->data.mem, e);
    if (!m->backend->ops->host)
        return moe_err_set(e, MOE_EUNSUP, "%s: weights of encoding %s do not run on %s",
            moe_source_path(m->source), moe_qmat_enc_name(q->enc), m->backend->ops->name);
    return keep_coded(m, q, &out->coded, e);
}

int
moe_weights_matrix(struct moe_weights_at at, size_t rows, size_t cols, bool bias,
    struct moe_matrix *out, struct moe_err *e)
{
    struct moe_view v = { NULL, 0 };
    struct moe_packed p;
    struct moe_mem *mem;
    struct moe_qmat q;
    int rc;

    if (bias && (rc = moe_weights_vector(at, ".bias", rows, &v, e)) != 0)
        return rc;
    if ((rc = load_qmat(at, -1, rows, cols, &q, e)) != 0)
        return rc;
    if (at.w != MOE_W_EMBED && packable(&q, &p)) {
        *out = packed_matrix(&p, false, NULL, 0);
        if ((rc = device_alloc(at.m, moe_matrix_bytes(out), &mem, e)) != 0)
            return rc;
        out->data.mem = mem;
        rc = pack(at.m, out, &q, NULL, e);
    } else {
        rc = as_stored(at.m, &q, out, e);
    }
    out->bias = v;
    return rc;
}

/* ---- Experts ---- */

/* Layer by layer: what its experts are stored as, and packing them on all threads. */
struct packing {
    struct moe_model *m;
    struct moe_expert *experts;
    struct moe_qmat (*q)[3];        /* [experts] gate, up, down */
    bool *packed;                   /* [experts] */
    size_t bytes;                   /* of the records so far */
    struct moe_err failed;          /* of any job */
};

static void
pack_expert(void *ctx, size_t x, int worker)
{
    struct packing *p = ctx;
    const struct moe_qmat *q = p->q[x];
    struct moe_err e;

    (void)worker;
    if (!p->packed[x])
        return;
    if (pack(p->m, &p->experts[x].gate, &q[0], &q[1], &e) != 0
        || pack(p->m, &p->experts[x].down, &q[2], NULL, &e) != 0)
        __atomic_store_n(&p->failed.code, MOE_ENOMEM, __ATOMIC_RELAXED);
}

/*
 * A place for expert x among the layer's records, laid out as moe-packed(5) has
 * them but without a checksum; *done is false when its encoding is another.
 */
static int
place_expert(struct packing *p, size_t x, bool *done, struct moe_err *e)
{
    const struct moe_qmat *q = p->q[x];
    struct moe_expert *to = &p->experts[x];
    struct moe_packed_expert record;
    struct moe_packed gate, up, down;
    int rc;

    *done = packable(&q[0], &gate) && packable(&q[1], &up) && packable(&q[2], &down)
        && gate.group == up.group && gate.scale_dtype == up.scale_dtype
        && gate.scale_dtype == down.scale_dtype;
    if (!*done)
        return 0;
    if ((rc = moe_packed_expert_layout(&gate, &down, &record, e)) != 0)
        return rc;
    to->gate = packed_matrix(&gate, true, NULL, p->bytes);
    to->down = packed_matrix(&down, false, NULL, p->bytes + record.down_at);
    p->bytes += record.bytes;
    return 0;
}

/* The three matrices of expert x, each under its own name. */
static int
load_single(struct packing *p, size_t layer, size_t x, size_t inter, struct moe_err *e)
{
    struct moe_weights_at at = { p->m, MOE_W_EXPERT_GATE, layer, x };
    struct moe_expert *to = &p->experts[x];
    struct moe_qmat *q = p->q[x];
    int rc;

    if ((rc = load_qmat(at, -1, inter, p->m->hidden, &q[0], e)) != 0)
        return rc;
    at.w = MOE_W_EXPERT_UP;
    if ((rc = load_qmat(at, -1, inter, p->m->hidden, &q[1], e)) != 0)
        return rc;
    at.w = MOE_W_EXPERT_DOWN;
    if ((rc = load_qmat(at, -1, p->m->hidden, inter, &q[2], e)) != 0)
        return rc;
    if ((rc = place_expert(p, x, &p->packed[x], e)) != 0 || p->packed[x])
        return rc;
    if ((rc = as_stored(p->m, &q[0], &to->gate, e)) != 0)
        return rc;
    if ((rc = as_stored(p->m, &q[1], &to->up, e)) != 0)
        return rc;
    return as_stored(p->m, &q[2], &to->down, e);
}

/* Expert x of the two stacks [experts][2 inter][hidden] and [experts][hidden][inter]. */
static int
load_stacked(struct packing *p, size_t layer, size_t x, size_t inter, struct moe_err *e)
{
    struct moe_weights_at at = { p->m, MOE_W_EXPERTS_GATE_UP, layer, x };
    struct moe_expert *to = &p->experts[x];
    struct moe_qmat q;
    int rc;

    if ((rc = load_qmat(at, (int64_t)x, 2 * inter, p->m->hidden, &q, e)) != 0)
        return rc;
    if (q.enc != MOE_ENC_PLAIN)
        return moe_err_set(e, MOE_EUNSUP, "%s: layer %zu: stacked experts of encoding %s",
            moe_source_path(p->m->source), layer, moe_qmat_enc_name(q.enc));
    if ((rc = as_stored(p->m, &q, &to->gate, e)) != 0)
        return rc;
    to->gate.rows = inter;
    to->up = to->gate;
    to->up.data.at = moe_matrix_bytes(&to->gate);
    at.w = MOE_W_EXPERTS_DOWN;
    if ((rc = load_qmat(at, (int64_t)x, p->m->hidden, inter, &q, e)) != 0)
        return rc;
    return as_stored(p->m, &q, &to->down, e);
}

/* One piece of memory for all records of the layer: large enough for huge pages. */
static int
pack_all(struct packing *p, struct moe_pool *pool, struct moe_err *e)
{
    struct moe_mem *mem;
    int rc;

    if (p->bytes == 0)
        return 0;
    if ((rc = device_alloc(p->m, p->bytes, &mem, e)) != 0)
        return rc;
    for (size_t x = 0; x < p->m->experts; x++) {
        if (p->packed[x])
            p->experts[x].gate.data.mem = p->experts[x].down.data.mem = mem;
    }
    if (pool != NULL)
        moe_pool_run(pool, p->m->experts, pack_expert, p);
    for (size_t x = 0; x < p->m->experts && pool == NULL; x++)
        pack_expert(p, x, 0);
    return p->failed.code == 0 ? 0 : moe_err_set(e, MOE_ENOMEM, "experts: out of memory");
}

int
moe_weights_experts(struct moe_model *m, size_t layer, size_t inter, struct moe_pool *pool,
    struct moe_expert *out, struct moe_err *e)
{
    struct moe_weights_at at = { m, MOE_W_EXPERTS_GATE_UP, layer, 0 };
    struct packing p = { .m = m, .experts = out };
    bool stacked = m->family->weights[at.w] != NULL && present(&at, "");
    int rc = 0;

    p.q = calloc(m->experts, sizeof(*p.q));
    p.packed = calloc(m->experts, sizeof(*p.packed));
    if (p.q == NULL || p.packed == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "experts: out of memory");
    for (size_t x = 0; x < m->experts && rc == 0; x++)
        rc = stacked ? load_stacked(&p, layer, x, inter, e) : load_single(&p, layer, x, inter, e);
    if (rc == 0)
        rc = pack_all(&p, pool, e);
    free(p.q);
    free(p.packed);
    return rc;
}
