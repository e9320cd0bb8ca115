/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns putting the bytes of a module's weight under a struct moe_qmat, from a
 * callback or from a source. What the tensors mean is qparts.c's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/formats/qload.h"

static int
fetch(const struct moe_qparts_from *from, const struct moe_qpart *p, const void **bytes_of,
    struct moe_err *e)
{
    *bytes_of = NULL;
    return p->t == NULL ? 0 : from->bytes(from->ctx, p->t, p->at, p->len, bytes_of, e);
}

static int64_t
int64_at(const unsigned char *p)
{
    uint64_t v = 0;

    for (int i = 0; i < 8; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return (int64_t)v;
}

/* weight_shape agrees, or tells how many columns of a padded row count. */
static int
use_shape(struct moe_qmat *m, const struct moe_qpart *p, const void *shape, const char *name,
    struct moe_err *e)
{
    uint64_t rows, cols, words = m->data_len / m->rows / 4;

    if (p->len != 16)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: not two numbers", name, p->t->name);
    rows = (uint64_t)int64_at(shape);
    cols = (uint64_t)int64_at((const unsigned char *)shape + 8);
    if (rows == m->rows && cols != m->cols && m->group == 0 && cols < m->cols &&
        (cols * (unsigned)m->bits + 31) / 32 == words)
        m->cols = cols;
    if (rows != m->rows || cols != m->cols)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: %" PRIu64 " x %" PRIu64
            " does not go with the codes", name, p->t->name, rows, cols);
    return 0;
}

int
moe_qload_qmat(const struct moe_qscheme *s, const struct moe_qparts_from *from,
    const char *module, int64_t expert, struct moe_qmat *m, struct moe_err *e)
{
    struct moe_qparts p;
    const void *index, *global, *shape;
    char name[MOE_QPARTS_NAME];
    int rc;

    if ((rc = moe_qparts_find(s, from, module, expert, m, &p, e)) != 0 ||
        (rc = fetch(from, &p.data, &m->data, e)) != 0 ||
        (rc = fetch(from, &p.scale, &m->scale, e)) != 0 ||
        (rc = fetch(from, &p.zero, &m->zero, e)) != 0 ||
        (rc = fetch(from, &p.g_idx, &index, e)) != 0 ||
        (rc = fetch(from, &p.global, &global, e)) != 0 ||
        (rc = fetch(from, &p.shape, &shape, e)) != 0)
        return rc;
    m->g_idx = index;
    if (global != NULL) {
        if (p.global.len != sizeof(m->global))
            return moe_err_set(e, MOE_EFORMAT, "%s: %s: not one number", from->name,
                p.global.t->name);
        memcpy(&m->global, global, sizeof(m->global));
    }
    if (shape != NULL && m->rows > 0 && (rc = use_shape(m, &p.shape, shape, from->name, e)) != 0)
        return rc;
    (void)snprintf(name, sizeof(name), "%s: %s", from->name, module);
    return moe_qmat_check(m, name, e);
}

/* ---- From a source -------------------------------------------------------- */

static const struct moe_tensor *
source_find(void *ctx, const char *tensor)
{
    size_t i = moe_source_find(ctx, tensor);

    return i == SIZE_MAX ? NULL : moe_source_at(ctx, i);
}

static int
source_bytes(void *ctx, const struct moe_tensor *t, uint64_t at, uint64_t len, const void **p,
    struct moe_err *e)
{
    const void *whole;
    int rc = moe_source_map(ctx, moe_source_find(ctx, t->name), &whole, e);

    (void)len;
    *p = rc != 0 ? NULL : (const char *)whole + at;
    return rc;
}

/* A tensor of a GGUF file: rows of blocks, a stack when it has a third dimension. */
static int
gguf_qmat(struct moe_source *src, const char *module, int64_t expert, struct moe_qmat *m,
    struct moe_err *e)
{
    const char *path = moe_source_path(src);
    const struct moe_gguf_tensor *t;
    char name[MOE_QPARTS_NAME];
    const void *p;
    int rc;

    (void)snprintf(name, sizeof(name), "%s.weight", module);
    if ((t = moe_gguf_find(moe_source_gguf(src), name)) == NULL)
        return moe_err_set(e, MOE_ENOENT, "%s: %s: there is no weight", path, module);
    if (t->n_dims > (expert < 0 ? 2 : 3) || (expert >= 0 && (uint64_t)expert >= t->ne[2]))
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: %" PRIu64 " x %" PRIu64 " x %" PRIu64
            " holds no such matrix", path, name, t->ne[0], t->ne[1], t->ne[2]);
    if ((rc = moe_source_map(src, moe_source_find(src, name), &p, e)) != 0)
        return rc;
    *m = (struct moe_qmat){ .enc = MOE_ENC_GGML, .ggml = t->type, .rows = t->ne[1],
        .cols = t->ne[0], .data = p, .data_len = t->bytes };
    if (expert >= 0) {
        m->data_len /= t->ne[2];
        m->data = (const char *)p + (uint64_t)expert * m->data_len;
    }
    (void)snprintf(name, sizeof(name), "%s: %s", path, module);
    return moe_qmat_check(m, name, e);
}

int
moe_qload_source(const struct moe_qscheme *s, struct moe_source *src, const char *module,
    int64_t expert, struct moe_qmat *m, struct moe_err *e)
{
    const struct moe_qparts_from from = { src, moe_source_path(src), source_find, source_bytes };

    if (moe_source_gguf(src) != NULL)
        return gguf_qmat(src, module, expert, m, e);
    return moe_qload_qmat(s, &from, module, expert, m, e);
}
