/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the way of weights from a source to a device. Plain types and records of
 * a packed model stay where they are mapped; encodings that the packed layout has
 * are packed for the kernels; any other stays mapped and is decoded row by row as
 * it is used.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/weights.h"
#include "common/formats/ggml.h"
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

int
moe_weights_alloc(struct moe_model *m, size_t bytes, struct moe_mem **out, struct moe_err *e)
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
    if ((rc = moe_weights_alloc(m, bytes, out, e)) != 0)
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
    for (size_t i = 0; i < m->n_held; i++)
        free(m->held[i]);
    free(m->mems);
    free(m->coded);
    free(m->held);
}

int
moe_weights_hold(struct moe_model *m, size_t bytes, void **out, struct moe_err *e)
{
    if (m->n_held == m->cap_held) {
        size_t cap = m->cap_held == 0 ? 64 : 2 * m->cap_held;
        void **p = realloc(m->held, cap * sizeof(*p));

        if (p == NULL)
            return moe_err_set(e, MOE_ENOMEM, "weights: out of memory");
        m->held = p;
        m->cap_held = cap;
    }
    if ((*out = aligned_alloc(64, (bytes + 64) / 64 * 64)) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "weights: out of memory");
    m->held[m->n_held++] = *out;
    return 0;
}

/* ---- Plain tensors ---- */

static const char *
name_of(const struct moe_weights_at *at, const char *suffix, char dst[MOE_FAMILY_MAX_NAME])
{
    return moe_family_tensor(at->m->family, at->w, at->layer, at->expert, suffix, dst);
}

bool
moe_weights_present(const struct moe_weights_at *at, const char *suffix)
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
moe_weights_numbers(struct moe_weights_at at, const char *suffix, size_t n, float **out,
    struct moe_err *e)
{
    const uint64_t shape[2] = { 1, n };
    char name[MOE_FAMILY_MAX_NAME];
    const struct moe_tensor *t = NULL;
    const void *p = NULL;
    size_t i = moe_source_find(at.m->source, name_of(&at, suffix, name));
    int skip = i != SIZE_MAX && moe_source_at(at.m->source, i)->rank == 2 ? 0 : 1, rc;

    *out = NULL;
    if ((rc = plain_tensor(at.m, name, shape + skip, 2 - skip, &t, &p, e)) != 0)
        return rc;
    if ((*out = malloc((n + 1) * sizeof(**out))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    moe_dtype_to_f32(t->dtype, p, n, *out);
    return 0;
}

int
moe_weights_upload(struct moe_model *m, const float *v, size_t n, struct moe_view *out,
    struct moe_err *e)
{
    int rc;

    *out = (struct moe_view){ NULL, 0 };
    if ((rc = moe_weights_alloc(m, n * sizeof(*v), &out->mem, e)) == 0)
        m->backend->ops->write(m->backend, *out, v, n * sizeof(*v));
    return rc;
}

int
moe_weights_vector(struct moe_weights_at at, const char *suffix, size_t n,
    struct moe_view *out, struct moe_err *e)
{
    float *v;
    int rc = moe_weights_numbers(at, suffix, n, &v, e);

    *out = (struct moe_view){ NULL, 0 };
    if (rc == 0)
        rc = moe_weights_upload(at.m, v, n, out, e);
    free(v);
    return rc;
}

/* ---- Matrices ---- */

/* Types of ggml without blocks are plain rows. */
static void
plain_ggml(struct moe_qmat *q)
{
    if (q->enc != MOE_ENC_GGML || (q->ggml != MOE_GGML_F32 && q->ggml != MOE_GGML_F16 &&
        q->ggml != MOE_GGML_BF16))
        return;
    q->enc = MOE_ENC_PLAIN;
    q->dtype = q->ggml == MOE_GGML_F32 ? MOE_F32 : q->ggml == MOE_GGML_F16 ? MOE_F16 : MOE_BF16;
}

int
moe_weights_qmat(struct moe_weights_at at, int64_t expert, size_t rows, size_t cols,
    struct moe_qmat *q, struct moe_err *e)
{
    struct moe_model *m = at.m;
    char name[MOE_FAMILY_MAX_NAME];
    int rc;

    name_of(&at, "", name);
    if ((rc = moe_qload_source(m->scheme, m->source, name, expert, q, e)) != 0)
        return rc;
    plain_ggml(q);
    if (q->rows != rows || q->cols != cols)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: shape [%llu, %llu], not [%zu, %zu]",
            moe_source_path(m->source), name, (unsigned long long)q->rows,
            (unsigned long long)q->cols, rows, cols);
    return 0;
}

bool
moe_weights_runs(const struct moe_packed *p)
{
    return p->kind != MOE_PACKED_BF16 && !p->bias;
}

bool
moe_weights_packable(const struct moe_repack *from, size_t rows, struct moe_packed *p)
{
    return moe_repack_of(from, rows, p) && moe_weights_runs(p);
}

struct moe_matrix
moe_weights_packed(const struct moe_packed *p, bool paired, struct moe_mem *mem, size_t at)
{
    struct moe_matrix w = { .format = MOE_MATRIX_PACKED, .paired = paired, .rows = p->rows,
        .cols = p->cols, .blocks = moe_packed_form(p), .data = { mem, at } };
    uint64_t bytes = 0;

    moe_packed_block_bytes(p, &bytes);
    w.block_bytes = bytes;
    return w;
}

int
moe_weights_pack(struct moe_model *m, const struct moe_matrix *w, const struct moe_packed *p,
    const struct moe_repack *from, const struct moe_repack *beside, struct moe_err *e)
{
    size_t bytes = moe_matrix_bytes(w);
    unsigned char *to = aligned_alloc(64, bytes), *at = to;

    if (to == NULL)
        return moe_err_set(e, MOE_ENOMEM, "weights: out of memory");
    for (uint64_t b = 0; b < moe_packed_blocks(p); b++) {
        moe_repack_block(p, b, from, at);
        at += w->block_bytes;
        if (beside == NULL)
            continue;
        moe_repack_block(p, b, beside, at);
        at += w->block_bytes;
    }
    m->backend->ops->write(m->backend, w->data, to, bytes);
    free(to);
    return 0;
}

/* Some rows of their own memory on the device, packed. */
static int
pack_rows(struct moe_model *m, const struct moe_packed *p, const struct moe_repack *from,
    struct moe_matrix *out, struct moe_err *e)
{
    struct moe_mem *mem;
    int rc;

    *out = moe_weights_packed(p, false, NULL, 0);
    if ((rc = moe_weights_alloc(m, moe_matrix_bytes(out), &mem, e)) != 0)
        return rc;
    out->data.mem = mem;
    return moe_weights_pack(m, out, p, from, NULL, e);
}

int
moe_weights_stored(struct moe_model *m, const struct moe_qmat *q, struct moe_matrix *out,
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
moe_weights_record(struct moe_model *m, const struct moe_record *r, struct moe_mem **mem,
    const void **host, struct moe_err *e)
{
    uint64_t bytes = 0;
    int rc = moe_records_map(m->source, r, host, e);

    if (rc != 0)
        return rc;
    if (!moe_packedmeta_bytes(r->scheme, &bytes) || !moe_weights_runs(&r->scheme->matrix) ||
        (r->scheme->expert && !moe_weights_runs(&r->scheme->down)))
        return moe_err_set(e, MOE_EUNSUP, "%s: %s: no kernel for this kind of record",
            moe_source_path(m->source), moe_source_at(m->source, r->tensor)->name);
    return device_adopt(m, *host, bytes, MOE_PACKED_UNIT, mem, e);
}

/* A matrix that is packed already. */
static int
from_record(struct moe_model *m, const struct moe_record *r, size_t rows, size_t cols,
    struct moe_matrix *out, struct moe_err *e)
{
    const struct moe_packed *p = &r->scheme->matrix;
    const char *name = moe_source_at(m->source, r->tensor)->name;
    struct moe_mem *mem;
    const void *host;
    int rc;

    if (r->scheme->expert || p->rows != rows || p->cols != cols)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: not a record of %zu x %zu",
            moe_source_path(m->source), name, rows, cols);
    if ((rc = moe_weights_record(m, r, &mem, &host, e)) != 0 ||
        (rc = moe_records_check(m->source, r, host, e)) != 0)
        return rc;
    *out = moe_weights_packed(p, false, mem, 0);
    return 0;
}

int
moe_weights_matrix(struct moe_weights_at at, size_t rows, size_t cols, bool bias,
    struct moe_matrix *out, struct moe_err *e)
{
    char name[MOE_FAMILY_MAX_NAME];
    const struct moe_record *r = moe_records_find(at.m->records, name_of(&at, "", name));
    struct moe_view v = { NULL, 0 };
    struct moe_packed p;
    struct moe_qmat q;
    const struct moe_repack from = { &q, 0, 1 };
    int rc;

    if (bias && (rc = moe_weights_vector(at, ".bias", rows, &v, e)) != 0)
        return rc;
    if (r != NULL && at.w != MOE_W_EMBED) {
        rc = from_record(at.m, r, rows, cols, out, e);
        out->bias = v;
        return rc;
    }
    if ((rc = moe_weights_qmat(at, -1, rows, cols, &q, e)) != 0)
        return rc;
    if (at.w != MOE_W_EMBED && moe_weights_packable(&from, rows, &p))
        rc = pack_rows(at.m, &p, &from, out, e);
    else
        rc = moe_weights_stored(at.m, &q, out, e);
    out->bias = v;
    return rc;
}

int
moe_weights_halves(struct moe_weights_at at, size_t rows, size_t cols,
    struct moe_matrix *first, struct moe_matrix *second, struct moe_err *e)
{
    struct moe_qmat q;
    const struct moe_repack from[2] = { { &q, 0, 1 }, { &q, rows, 1 } };
    struct moe_packed p[2];
    char name[MOE_FAMILY_MAX_NAME];
    int rc;

    if ((rc = moe_weights_qmat(at, -1, 2 * rows, cols, &q, e)) != 0)
        return rc;
    if (moe_weights_packable(&from[0], rows, &p[0]) &&
        moe_weights_packable(&from[1], rows, &p[1])) {
        rc = pack_rows(at.m, &p[0], &from[0], first, e);
        return rc != 0 ? rc : pack_rows(at.m, &p[1], &from[1], second, e);
    }
    if (q.enc != MOE_ENC_PLAIN)
        return moe_err_set(e, MOE_EUNSUP, "%s: %s: halves of encoding %s do not run here",
            moe_source_path(at.m->source), name_of(&at, "", name), moe_qmat_enc_name(q.enc));
    if ((rc = moe_weights_stored(at.m, &q, first, e)) != 0)
        return rc;
    first->rows = rows;
    *second = *first;
    second->data.at = moe_matrix_bytes(first);
    return 0;
}

/* Element of the two outputs: BF16 as stored, or F32. */
static void
put(void *to, bool bf16, size_t at, float v)
{
    if (bf16)
        ((uint16_t *)to)[at] = moe_dtype_f32_bf16(v);
    else
        ((float *)to)[at] = v;
}

/* Keys and values as they go to the device. */
struct latent {
    void *k, *v;
    bool bf16;
};

/* kv_b [heads * (nope + v_dim)][kv_lora], taken apart. */
static void
take_apart(const struct moe_hparams *h, const struct moe_qmat *q, float *row, struct latent *to)
{
    size_t per = h->nope + h->v_dim;

    for (size_t r = 0; r < h->heads * per; r++) {
        size_t head = r / per, i = r % per;

        moe_qmat_rows(q, r, 1, row);
        for (size_t c = 0; c < h->kv_lora; c++) {
            if (i < h->nope)
                put(to->k, to->bf16, (head * h->kv_lora + c) * h->nope + i, row[c]);
            else
                put(to->v, to->bf16, (head * h->v_dim + i - h->nope) * h->kv_lora + c, row[c]);
        }
    }
}

/* A stack of heads [rows][cols], which lie one after another already. */
static int
take_stack(struct moe_weights_at at, enum moe_weight w, size_t rows, size_t cols, float *row,
    void *to, bool bf16, struct moe_err *e)
{
    struct moe_qmat q;
    int rc;

    at.w = w;
    for (size_t x = 0; x < at.m->hp.heads; x++) {
        if ((rc = moe_weights_qmat(at, (int64_t)x, rows, cols, &q, e)) != 0)
            return rc;
        for (size_t r = 0; r < rows; r++) {
            moe_qmat_rows(&q, r, 1, row);
            for (size_t c = 0; c < cols; c++)
                put(to, bf16, (x * rows + r) * cols + c, row[c]);
        }
    }
    return 0;
}

int
moe_weights_latent(struct moe_weights_at at, struct moe_matrix *key, struct moe_matrix *value,
    struct moe_err *e)
{
    const struct moe_hparams *h = &at.m->hp;
    bool parts = at.m->family->weights[MOE_W_K_B] != NULL;
    size_t keys = h->heads * h->kv_lora * h->nope, values = h->heads * h->kv_lora * h->v_dim;
    struct latent to = { NULL, NULL, false };
    struct moe_qmat q;
    float *row;
    int rc;

    at.w = parts ? MOE_W_K_B : MOE_W_KV_B;
    if ((rc = moe_weights_qmat(at, parts ? 0 : -1, parts ? h->kv_lora :
        h->heads * (h->nope + h->v_dim), parts ? h->nope : h->kv_lora, &q, e)) != 0)
        return rc;
    to.bf16 = q.enc == MOE_ENC_PLAIN && q.dtype == MOE_BF16;
    to.k = malloc(keys * (to.bf16 ? 2 : 4));
    to.v = malloc(values * (to.bf16 ? 2 : 4));
    row = malloc((h->kv_lora + h->nope) * sizeof(*row));
    if (to.k == NULL || to.v == NULL || row == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "weights: out of memory");
    else if (!parts)
        take_apart(h, &q, row, &to);
    else if ((rc = take_stack(at, MOE_W_K_B, h->kv_lora, h->nope, row, to.k, to.bf16, e)) == 0)
        rc = take_stack(at, MOE_W_V_B, h->v_dim, h->kv_lora, row, to.v, to.bf16, e);
    *key = (struct moe_matrix){ .format = to.bf16 ? MOE_MATRIX_BF16 : MOE_MATRIX_F32,
        .rows = h->heads * h->kv_lora, .cols = h->nope };
    *value = *key;
    value->rows = h->heads * h->v_dim;
    value->cols = h->kv_lora;
    if (rc == 0 &&
        (rc = moe_weights_alloc(at.m, moe_matrix_bytes(key), &key->data.mem, e)) == 0 &&
        (rc = moe_weights_alloc(at.m, moe_matrix_bytes(value), &value->data.mem, e)) == 0) {
        at.m->backend->ops->write(at.m->backend, key->data, to.k, moe_matrix_bytes(key));
        at.m->backend->ops->write(at.m->backend, value->data, to.v, moe_matrix_bytes(value));
    }
    free(to.k);
    free(to.v);
    free(row);
    return rc;
}
