/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns a ring of pieces that one thread fills and the caller empties.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/trust/ahead.h"

#define PIECE ((size_t)128 << 10)   /* two of them fit a second-level cache */
#define PIECES 4

struct moe_ahead {
    int fd;
    uint64_t at, left;              /* of the next read */
    uint64_t given;                 /* where the consumer stands */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t filled, freed;
    unsigned char *ring;
    ssize_t len[PIECES];            /* bytes, 0 at the end, -errno */
    unsigned head, tail;            /* pieces filled, pieces given back */
    bool held;                      /* the consumer has piece `tail` */
    bool quit;
};

/* Wait for room; NULL when the consumer has gone. */
static unsigned char *
room(struct moe_ahead *a)
{
    unsigned char *p = NULL;

    pthread_mutex_lock(&a->lock);
    while (!a->quit && a->head - a->tail == PIECES)
        pthread_cond_wait(&a->freed, &a->lock);
    if (!a->quit)
        p = a->ring + a->head % PIECES * PIECE;
    pthread_mutex_unlock(&a->lock);
    return p;
}

static void
publish(struct moe_ahead *a, ssize_t n)
{
    pthread_mutex_lock(&a->lock);
    a->len[a->head % PIECES] = n;
    a->head++;
    pthread_cond_signal(&a->filled);
    pthread_mutex_unlock(&a->lock);
}

static void *
fill(void *arg)
{
    struct moe_ahead *a = arg;
    unsigned char *p;
    ssize_t n = 1;

    while (n > 0 && (p = room(a)) != NULL) {
        do
            n = pread(a->fd, p, a->left < PIECE ? (size_t)a->left : PIECE, (off_t)a->at);
        while (n < 0 && errno == EINTR);
        publish(a, n < 0 ? -errno : n);
        if (n > 0) {
            a->at += (uint64_t)n;
            a->left -= (uint64_t)n;
        }
    }
    return NULL;
}

int
moe_ahead_open(int fd, uint64_t at, uint64_t len, struct moe_ahead **out, struct moe_err *e)
{
    struct moe_ahead *a = calloc(1, sizeof(*a));
    sigset_t all, old;
    int sys;

    *out = NULL;
    if (a == NULL || (a->ring = aligned_alloc(4096, PIECES * PIECE)) == NULL) {
        free(a);
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    }
    a->fd = fd;
    a->at = a->given = at;
    a->left = len;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->filled, NULL);
    pthread_cond_init(&a->freed, NULL);
    sigfillset(&all);               /* signals are for the caller's threads */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    sys = pthread_create(&a->thread, NULL, fill, a);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (sys != 0) {
        free(a->ring);
        free(a);
        return moe_err_sys(e, MOE_ENOMEM, sys, "no thread");
    }
    *out = a;
    return 0;
}

int
moe_ahead_next(struct moe_ahead *a, const char *name, const unsigned char **p, size_t *n,
    struct moe_err *e)
{
    ssize_t len;

    pthread_mutex_lock(&a->lock);
    if (a->held) {
        a->held = false;
        a->tail++;
        pthread_cond_signal(&a->freed);
    }
    while (a->head == a->tail)
        pthread_cond_wait(&a->filled, &a->lock);
    len = a->len[a->tail % PIECES];
    *p = a->ring + a->tail % PIECES * PIECE;
    a->held = len > 0;              /* the last piece stays, so the end can be seen again */
    pthread_mutex_unlock(&a->lock);
    *n = len > 0 ? (size_t)len : 0;
    if (len < 0)
        return moe_err_sys(e, MOE_EIO, (int)-len, "%s: byte %" PRIu64 ": read", name, a->given);
    a->given += *n;
    return 0;
}

void
moe_ahead_close(struct moe_ahead *a)
{
    if (a == NULL)
        return;
    pthread_mutex_lock(&a->lock);
    a->quit = true;
    pthread_cond_signal(&a->freed);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    pthread_cond_destroy(&a->filled);
    pthread_cond_destroy(&a->freed);
    pthread_mutex_destroy(&a->lock);
    free(a->ring);
    free(a);
}
