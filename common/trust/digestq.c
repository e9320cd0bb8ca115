/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the queue of jobs: which thread takes which, reading, pairing, and the
 * order in which results are told. The digest itself is digest.c's.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/stop.h"
#include "common/trust/ahead.h"
#include "common/trust/digestq.h"

#define PIECE ((size_t)128 << 10)       /* two of them stay in a second-level cache */
#define LANES 2
#define AHEAD_MIN ((uint64_t)4 << 20)   /* a lone file of this size pays for a thread */
#define PENDING 1                       /* rc of a job that is not done */

struct run {
    const struct moe_digestq *q;
    size_t team;
    unsigned char *bufs;                /* [team][LANES][PIECE] */
    _Atomic size_t next;                /* job to take */
    _Atomic int halt;                   /* MOE_ESTOP, or what done() returned */
    pthread_mutex_t lock;
    size_t told;                        /* jobs that done() has seen */
    struct moe_err err;                 /* of the halt */
};

/* One job on its way through a thread. */
struct lane {
    bool busy;
    size_t i;
    int fd;
    bool ours;                          /* fd is to be closed */
    uint64_t left;
    struct moe_ahead *ahead;
    struct moe_digest d;
    unsigned char *buf;
    const unsigned char *p;             /* bytes read and not digested */
    size_t n;
};

static void
halt(struct run *r, int rc, const struct moe_err *e)
{
    int none = 0;

    if (atomic_compare_exchange_strong(&r->halt, &none, rc))
        r->err = *e;
}

/* Tell of every job that is done and whose predecessors are. */
static void
tell(struct run *r)
{
    const struct moe_digestq *q = r->q;

    for (; r->told < q->n && q->jobs[r->told].rc != PENDING; r->told++) {
        struct moe_digestq_job *j = &q->jobs[r->told];
        struct moe_err e = { 0 };
        int rc = 0;

        if (j->rc != 0)
            moe_err_set(&e, j->rc, "%s", j->why != NULL ? j->why : moe_err_name(j->rc));
        if (q->done != NULL && atomic_load(&r->halt) == 0)
            rc = q->done(q->ctx, r->told, &e);
        free(j->why);
        j->why = NULL;
        if (rc < 0)
            halt(r, rc, &e);
    }
}

/* The lane's job is over, with result rc and its text. */
static void
finish(struct run *r, struct lane *l, int rc, struct moe_err *e)
{
    struct moe_digestq_job *j = &r->q->jobs[l->i];

    moe_ahead_close(l->ahead);
    l->ahead = NULL;
    if (l->ours && l->fd >= 0)
        (void)close(l->fd);
    l->busy = false;
    l->n = 0;
    if (rc == 0)
        rc = moe_digest_end(&l->d, j->sum, e);
    if (rc == MOE_ESTOP)
        halt(r, rc, e);
    pthread_mutex_lock(&r->lock);
    j->why = rc != 0 ? strdup(e->text) : NULL;
    j->rc = rc;
    tell(r);
    pthread_mutex_unlock(&r->lock);
}

/* Take the next job, if there is one for this lane. */
static bool
take(struct run *r, struct lane *l, int which)
{
    const struct moe_digestq *q = r->q;
    struct moe_digestq_job *j;
    struct moe_err e = { 0 };
    struct stat st;
    int rc;

    /* A second job only when every thread has had the chance of a first one. */
    if (atomic_load(&r->halt) != 0 || (which > 0 && atomic_load(&r->next) < r->team))
        return false;
    l->i = atomic_fetch_add(&r->next, 1);
    if (l->i >= q->n)
        return false;
    j = &q->jobs[l->i];
    l->ours = j->fd < 0;
    l->fd = l->ours ? q->open(q->ctx, l->i, &e) : j->fd;
    l->left = j->len;
    l->busy = true;
    if (l->ours && l->fd >= 0)
        (void)posix_fadvise(l->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    rc = l->fd < 0 ? l->fd : moe_digest_begin(&l->d, &e);
    if (rc == 0 && j->leaf)
        moe_digest_add(&l->d, "", 1);
    if (rc == 0 && q->n == 1 && r->team > 1 && j->at != MOE_DIGESTQ_HERE &&
        fstat(l->fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size >= AHEAD_MIN)
        rc = moe_ahead_open(l->fd, j->at, j->len, &l->ahead, &e);
    if (rc != 0)
        finish(r, l, rc, &e);
    return true;
}

/* Up to a piece into the lane's buffer; *n = 0 at the end. */
static int
read_piece(const struct moe_digestq_job *j, struct lane *l, size_t *n, struct moe_err *e)
{
    size_t want = l->left < PIECE ? (size_t)l->left : PIECE;
    ssize_t got;

    for (;;) {
        got = j->at == MOE_DIGESTQ_HERE ? read(l->fd, l->buf, want) :
            pread(l->fd, l->buf, want, (off_t)(j->at + j->bytes));
        if (got >= 0)
            break;
        if (errno != EINTR)
            return moe_err_sys(e, MOE_EIO, errno, "%s: byte %" PRIu64 ": read", j->name,
                (j->at == MOE_DIGESTQ_HERE ? 0 : j->at) + j->bytes);
        if (moe_stop_check(e) != 0)
            return MOE_ESTOP;
    }
    l->p = l->buf;
    *n = (size_t)got;
    return 0;
}

/* Have bytes in the lane, finishing jobs and taking others; false when it stays empty. */
static bool
ready(struct run *r, struct lane *l, int which)
{
    while (l->n == 0) {
        struct moe_err e = { 0 };
        struct moe_digestq_job *j;
        size_t n = 0;
        int rc;

        if (!l->busy && !take(r, l, which))
            return false;
        if (!l->busy)
            continue;
        j = &r->q->jobs[l->i];
        rc = l->ahead != NULL ? moe_ahead_next(l->ahead, j->name, &l->p, &n, &e) :
            read_piece(j, l, &n, &e);
        if (rc == 0 && n == 0 && j->len != MOE_DIGESTQ_REST && l->left > 0)
            rc = moe_err_set(&e, MOE_EFORMAT, "%s: ends at byte %" PRIu64 ", %" PRIu64 " short",
                j->name, j->at + j->bytes, l->left);
        if (rc != 0 || n == 0) {
            finish(r, l, rc, &e);
            continue;
        }
        l->n = n;
        l->left -= n;
        j->bytes += n;
        if (r->q->progress != NULL)
            moe_progress_add(r->q->progress, n);
    }
    return true;
}

static void
skip(struct lane *l, size_t n)
{
    l->p += n;
    l->n -= n;
}

/* One thread's share. */
static void
work(void *ctx, size_t i, int w)
{
    struct run *r = ctx;
    struct lane l[LANES];
    struct moe_err e = { 0 };

    (void)w;
    memset(l, 0, sizeof(l));
    for (size_t k = 0; k < LANES; k++)
        l[k].buf = r->bufs + (i * LANES + k) * PIECE;
    for (;;) {
        if (moe_stop_check(&e) != 0)
            halt(r, MOE_ESTOP, &e);
        if (atomic_load(&r->halt) != 0)
            break;
        bool a = ready(r, &l[0], 0), b = ready(r, &l[1], 1);
        size_t n = a && b ? (l[0].n < l[1].n ? l[0].n : l[1].n) : a ? l[0].n : l[1].n;
        if (!a && !b)
            break;
        if (a && b)
            moe_digest_add2(&l[0].d, l[0].p, n, &l[1].d, l[1].p, n);
        else
            moe_digest_add(&l[a ? 0 : 1].d, l[a ? 0 : 1].p, n);
        if (a)
            skip(&l[0], n);
        if (b)
            skip(&l[1], n);
    }
    for (size_t k = 0; k < LANES; k++) {
        if (l[k].busy)
            finish(r, &l[k], MOE_ESTOP, &e);
        moe_digest_fini(&l[k].d);
    }
}

int
moe_digestq_run(const struct moe_digestq *q, struct moe_pool *pool, struct moe_err *e)
{
    struct run r = { .q = q, .team = (size_t)moe_pool_size(pool) };
    size_t workers = r.team < q->n ? r.team : q->n;
    int rc;

    for (size_t i = 0; i < q->n; i++) {
        q->jobs[i].rc = PENDING;
        q->jobs[i].bytes = 0;
        q->jobs[i].why = NULL;
    }
    if (workers == 0)
        return 0;
    if ((r.bufs = aligned_alloc(4096, workers * LANES * PIECE)) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    pthread_mutex_init(&r.lock, NULL);
    if (workers == 1)
        work(&r, 0, 0);     /* in this thread, whose read() a signal ends */
    else
        moe_pool_run(pool, workers, work, &r);
    pthread_mutex_destroy(&r.lock);
    free(r.bufs);
    for (size_t i = 0; i < q->n; i++)
        if (q->jobs[i].rc == PENDING)
            q->jobs[i].rc = MOE_ESTOP;
    rc = atomic_load(&r.halt);
    if (rc != 0 && e != NULL)
        *e = r.err;
    return rc;
}
