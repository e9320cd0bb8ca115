/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what ckpt_peers.h says. */
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-ckpt/ckpt_peers.h"

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

static int
open_all(char **paths, size_t n, struct ckpt_peers *p, struct moe_err *e)
{
    size_t streams = 0;
    int rc;

    if (n == 0 || n > CKPT_PEERS_MAX)
        return moe_err_set(e, MOE_EUSAGE, "from 1 to %d models, not %zu", CKPT_PEERS_MAX, n);
    p->s = calloc(n, sizeof(struct moe_source *));
    p->at = calloc(n, sizeof(size_t *));
    p->raw = malloc(MOE_BLEND_PIECE * (size_t)8);     /* of the widest type */
    if (p->s == NULL || p->at == NULL || p->raw == NULL)
        return no_memory(e);
    for (size_t k = 0; k < n; k++) {
        if (strcmp(paths[k], "-") == 0) {
            p->lead = k;
            if (++streams > 1)
                return moe_err_set(e, MOE_EUSAGE, "-: standard input is one model");
        }
    }
    for (p->n = 0; p->n < n; p->n++) {
        if ((rc = moe_source_open(paths[p->n], &p->s[p->n], e)) != 0)
            return rc;
        if (moe_source_gguf(p->s[p->n]) != NULL) {
            p->n++;
            return moe_err_set(e, MOE_EUNSUP, "%s: GGUF files are not worked with here",
                paths[p->n - 1]);
        }
    }
    return 0;
}

static bool
same_shape(const struct moe_tensor *a, const struct moe_tensor *b)
{
    return a->rank == b->rank &&
        (a->rank == 0 || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof(*a->shape)) == 0);
}

/* Tensor i of the leading model in model k. */
static int
match(struct ckpt_peers *p, size_t k, size_t i, bool typed, struct moe_err *e)
{
    const struct moe_tensor *a = moe_source_at(p->s[p->lead], i), *b;
    const char *path = moe_source_path(p->s[k]);
    size_t j = moe_source_find(p->s[k], a->name);

    if (j == SIZE_MAX)
        return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: is missing, and %s has it", path,
            a->name, moe_source_path(p->s[p->lead]));
    b = moe_source_at(p->s[k], j);
    if (!same_shape(a, b))
        return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: has another shape than in %s", path,
            a->name, moe_source_path(p->s[p->lead]));
    if (typed && a->dtype != b->dtype)
        return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: is %s, and %s in %s", path, a->name,
            moe_dtype_name(b->dtype), moe_dtype_name(a->dtype),
            moe_source_path(p->s[p->lead]));
    p->at[k][i] = j;
    return 0;
}

/* A tensor that only model k has. */
static int
surplus(const struct ckpt_peers *p, size_t k, struct moe_err *e)
{
    size_t j = 0;

    while (moe_source_find(p->s[p->lead], moe_source_at(p->s[k], j)->name) != SIZE_MAX)
        j++;
    return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: is missing in %s",
        moe_source_path(p->s[k]), moe_source_at(p->s[k], j)->name,
        moe_source_path(p->s[p->lead]));
}

int
ckpt_peers_open(char **paths, size_t n, bool typed, struct ckpt_peers *p, struct moe_err *e)
{
    int rc;

    *p = (struct ckpt_peers){ .n = 0 };
    if ((rc = open_all(paths, n, p, e)) != 0)
        return rc;
    p->tensors = moe_source_n(p->s[p->lead]);
    if (p->tensors == 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: no tensors", moe_source_path(p->s[p->lead]));
    for (size_t k = 0; k < n; k++) {
        if ((p->at[k] = calloc(p->tensors, sizeof(size_t))) == NULL)
            return no_memory(e);
        for (size_t i = 0; i < p->tensors; i++) {
            if ((rc = match(p, k, i, typed, e)) != 0)
                return rc;
        }
        if (moe_source_n(p->s[k]) != p->tensors)
            return surplus(p, k, e);
    }
    return 0;
}

void
ckpt_peers_fini(struct ckpt_peers *p)
{
    for (size_t k = 0; k < p->n; k++)
        moe_source_close(p->s[k]);
    for (size_t k = 0; p->at != NULL && k < p->n; k++)
        free(p->at[k]);
    free(p->s);
    free(p->at);
    free(p->raw);
    *p = (struct ckpt_peers){ .n = 0 };
}

const struct moe_tensor *
ckpt_peers_at(const struct ckpt_peers *p, size_t k, size_t i)
{
    return moe_source_at(p->s[k], p->at[k][i]);
}

uint64_t
ckpt_peers_count(const struct moe_tensor *t)
{
    uint64_t n = 0;

    return moe_safet_count(t, &n) ? n : 0;
}

int
ckpt_peers_raw(struct ckpt_peers *p, size_t k, size_t i, uint64_t at, size_t n, struct moe_err *e)
{
    size_t size = moe_dtype_bits(ckpt_peers_at(p, k, i)->dtype) / 8;

    return moe_source_read(p->s[k], p->at[k][i], at * size, p->raw, n * size, e);
}

int
ckpt_peers_read(struct ckpt_peers *p, size_t k, size_t i, uint64_t at, size_t n, double *out,
    struct moe_err *e)
{
    const struct moe_tensor *t = ckpt_peers_at(p, k, i);
    int rc = ckpt_peers_raw(p, k, i, at, n, e);

    if (rc == 0 && moe_blend_load(t->dtype, p->raw, n, out) > 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: holds NaN or infinity",
            moe_source_path(p->s[k]), t->name);
    return rc;
}

int
ckpt_peers_beside(const struct moe_source *s, struct moe_sink *to, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    const char *name;
    int rc = 0;

    for (size_t i = 0; rc == 0 && (name = moe_source_aux_name(s, i)) != NULL; i++) {
        moe_buf_clear(&b);
        if ((rc = moe_source_aux(s, name, CKPT_PEERS_MAX_AUX, &b, e)) == 0)
            rc = moe_sink_aux(to, name, b.p, b.len, e);
    }
    moe_buf_fini(&b);
    return rc;
}
