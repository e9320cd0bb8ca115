/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the loop over tensors and pieces, and the threads.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_move.h"
#include "cmd/moe-shard/shard_ranks.h"
#include "common/base/pool.h"
#include "common/base/stop.h"

#define PIECE ((size_t)4 << 20)         /* bytes of a tensor at a time */
#define MEMORY ((size_t)32 << 20)       /* of all workers' pieces and scratch */
#define MIN_PIECE ((size_t)64 << 10)

struct run {
    const struct shard_move *m;
    struct shard_move_hand *hands;
    size_t piece;
    size_t first;
    int *rc;                    /* [SHARD_RANKS_BATCH] */
    struct moe_err *err;        /* [SHARD_RANKS_BATCH] */
};

static int
move_tensor(struct run *r, size_t i, struct shard_move_hand *h, struct moe_err *e)
{
    const struct shard_move *m = r->m;
    const struct moe_cutplan_item *x = &m->plan->items[i];
    struct moe_digest d = MOE_DIGEST_INIT;
    unsigned char sum[MOE_DIGEST_LEN];
    uint64_t len = x->t->end - x->t->begin;
    size_t piece = moe_scatter_piece(&x->scatter, r->piece);
    int rc = moe_digest_begin(&d, e);

    /* What is made, not cut, is small and goes whole. */
    if (x->scatter.cut.fill != MOE_CUT_BYTES)
        piece = (size_t)len + 1;
    for (uint64_t at = 0; rc == 0 && at < len; at += piece) {
        size_t n = len - at < piece ? (size_t)(len - at) : piece;

        moe_buf_clear(&h->piece);
        if (moe_buf_room(&h->piece, n) == NULL)
            rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
        else if ((rc = moe_stop_check(e)) == 0 &&
            (rc = m->read(m->ctx, i, at, h->piece.p, n, h, e)) == 0) {
            moe_digest_add(&d, h->piece.p, n);
            rc = m->write(m->ctx, i, at, h->piece.p, n, h, e);
            moe_progress_add(m->progress, n);
        }
    }
    if (rc == 0)
        rc = moe_digest_end(&d, sum, e);
    moe_digest_fini(&d);
    return rc == 0 && m->done != NULL ? m->done(m->ctx, i, sum, h, e) : rc;
}

static void
job(void *ctx, size_t i, int worker)
{
    struct run *r = ctx;
    struct shard_move_hand *h = &r->hands[worker];

    r->rc[i] = move_tensor(r, r->first + i, h, &h->err);
    if (r->rc[i] != 0)
        moe_err_set(&r->err[i], r->rc[i], "%s", h->err.text);
}

static int
batch(struct run *r, struct moe_pool *pool, size_t n, struct moe_err *e)
{
    r->m->batch(r->m->ctx, r->first, n);
    if (r->m->in_order) {
        for (size_t i = 0; i < n; i++) {
            int rc = move_tensor(r, r->first + i, &r->hands[0], e);

            if (rc != 0)
                return rc;
        }
        return 0;
    }
    moe_pool_run(pool, n, job, r);
    for (size_t i = 0; i < n; i++) {
        if (r->rc[i] != 0)
            return moe_err_set(e, r->rc[i], "%s", r->err[i].text);
    }
    return 0;
}

int
shard_move_run(const struct shard_move *m, struct moe_err *e)
{
    struct run r = { .m = m };
    struct moe_pool *pool = NULL;
    size_t workers = 0;
    int rc = moe_pool_new(m->in_order ? 1 : m->threads, &pool, e);

    if (rc != 0)
        return rc;
    workers = (size_t)moe_pool_size(pool);
    r.hands = calloc(workers, sizeof(*r.hands));
    r.rc = calloc(SHARD_RANKS_BATCH, sizeof(*r.rc));
    r.err = calloc(SHARD_RANKS_BATCH, sizeof(*r.err));
    if (r.hands == NULL || r.rc == NULL || r.err == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    r.piece = MEMORY / 2 / workers;
    r.piece = r.piece > PIECE ? PIECE : r.piece < MIN_PIECE ? MIN_PIECE : r.piece;
    for (size_t n; rc == 0 && r.first < m->plan->n; r.first += n) {
        n = m->plan->n - r.first;
        if (n > SHARD_RANKS_BATCH)
            n = SHARD_RANKS_BATCH;
        rc = batch(&r, pool, n, e);
    }
    for (size_t w = 0; r.hands != NULL && w < workers; w++) {
        moe_buf_fini(&r.hands[w].piece);
        moe_buf_fini(&r.hands[w].scratch);
    }
    free(r.hands);
    free(r.rc);
    free(r.err);
    moe_pool_free(pool);
    return rc;
}
