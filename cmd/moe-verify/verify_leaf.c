/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns what the leaves are made of. Trees are merkle's, reading is digestq's.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-verify/verify_leaf.h"
#include "common/base/buf.h"
#include "common/trust/digestq.h"

#define BATCH ((size_t)8192)    /* pieces that are told apart at a time */

/* Where the pieces have got to. */
struct walk {
    const struct verify_tensor *t;
    size_t i;                       /* tensor that is read; its pieces come in order */
    uint64_t at;                    /* bytes of it that are in a job */
    struct moe_digestq_job *jobs;
    struct moe_merkle m;
    size_t told;                    /* tensor whose pieces are being told */
    uint64_t heard;                 /* bytes of it that were told */
    moe_merkle_hash *roots;
};

/* The root of the tensor that is told, and on to the next. */
static int
finish(struct walk *w, struct moe_err *e)
{
    int rc = moe_merkle_root(&w->m, w->roots[w->told], e);

    moe_merkle_begin(&w->m);
    w->told++;
    w->heard = 0;
    return rc;
}

static int
done(void *ctx, size_t i, struct moe_err *e)
{
    struct walk *w = ctx;
    const struct moe_digestq_job *j = &w->jobs[i];
    int rc = j->rc;

    while (rc == 0 && w->t[w->told].len == 0)
        rc = finish(w, e);
    if (rc == 0)
        rc = moe_merkle_add(&w->m, j->sum, e);
    w->heard += j->bytes;
    if (rc == 0 && w->heard == w->t[w->told].len)
        rc = finish(w, e);
    return rc;
}

/* Jobs for the pieces that come next; returns how many. */
static size_t
batch(struct walk *w, int fd, const char *name, size_t n)
{
    size_t k = 0;

    while (k < BATCH && w->i < n) {
        uint64_t left = w->t[w->i].len - w->at;
        uint64_t len = left < VERIFY_LEAF_BYTES ? left : VERIFY_LEAF_BYTES;
        if (len > 0)
            w->jobs[k++] = (struct moe_digestq_job){ .name = name, .fd = fd,
                .at = w->t[w->i].at + w->at, .len = len, .leaf = true };
        w->at += len;
        if (len == left) {
            w->i++;
            w->at = 0;
        }
    }
    return k;
}

int
verify_leaf_roots(struct moe_pool *pool, int fd, const char *name,
    const struct verify_tensor *t, size_t n, moe_merkle_hash *roots,
    struct moe_progress *progress, struct moe_err *e)
{
    struct walk w = { .t = t, .roots = roots };
    size_t k;
    int rc = 0;

    if ((w.jobs = calloc(BATCH, sizeof(*w.jobs))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    while (rc == 0 && (k = batch(&w, fd, name, n)) > 0) {
        struct moe_digestq q = { w.jobs, k, NULL, done, &w, progress };
        rc = moe_digestq_run(&q, pool, e);
    }
    while (rc == 0 && w.told < n)
        rc = finish(&w, e);
    free(w.jobs);
    return rc;
}

int
verify_leaf_digest(const char *tensor, const char *type, const char *shape, uint64_t bytes,
    const moe_merkle_hash root, moe_merkle_hash leaf, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc;

    moe_buf_add(&b, tensor, strlen(tensor) + 1);
    moe_buf_add(&b, type, strlen(type) + 1);
    moe_buf_add(&b, shape, strlen(shape) + 1);
    moe_buf_fmt(&b, "%" PRIu64, bytes);
    moe_buf_byte(&b, '\0');
    moe_buf_add(&b, root, MOE_DIGEST_LEN);
    rc = b.bad ? moe_err_set(e, MOE_ENOMEM, "out of memory") : moe_merkle_leaf(b.p, b.len, leaf, e);
    moe_buf_fini(&b);
    return rc;
}
