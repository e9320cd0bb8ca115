/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns reading forward. A pipe is handed on as it comes. A regular file is read
 * in large pieces while the kernel is told to fetch the next one; with O_DIRECT
 * there is no such advice, so a thread of the stream reads one piece while the
 * caller uses the other. Does not seek.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/stop.h"
#include "common/base/stream.h"

/* Buffers and offsets of O_DIRECT are multiples of this on every file system. */
#define ALIGN ((size_t)4096)
#define PIPE_BYTES ((size_t)1 << 20)
#define MIN_PIECE ((size_t)64 << 10)

/* One of two buffers: empty when the reader may fill it, else the caller's. */
struct piece {
    unsigned char *p;
    size_t len, skip;   /* skip: bytes before the stream's beginning */
    int sys;            /* errno of the read, or 0 */
    bool full;
};

struct moe_stream {
    const char *name;
    int fd;                     /* the caller's */
    int direct;                 /* our own description of the same file, or -1 */
    bool regular, end;
    size_t size;                /* of a piece */
    uint64_t at;                /* offset in a regular file of the next read */
    uint64_t pos;               /* bytes handed out */
    const unsigned char *p;     /* read and not handed out */
    size_t n;
    struct piece piece[2];
    int turn;                   /* the piece that is used next */
    bool using;                 /* the other one is the caller's */
    /* The thread that reads ahead, when `threaded`; piece[].full and quit are the lock's. */
    bool threaded, quit;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
};

/* ---- O_DIRECT ------------------------------------------------------------------ */

/* Fill piece b from the own descriptor at s->at; short only at the end. */
static void
fill_direct(struct moe_stream *s, struct piece *b)
{
    b->len = 0;
    b->sys = 0;
    while (b->len < s->size) {
        ssize_t got = pread(s->direct, b->p + b->len, s->size - b->len, (off_t)s->at);

        if (got == 0)
            break;
        if (got > 0) {
            b->len += (size_t)got;
            s->at += (uint64_t)got;
        } else if (errno == EINVAL && fcntl(s->direct, F_GETFL) & O_DIRECT) {
            /* An odd end of the file, or a file system that only pretends. */
            if (fcntl(s->direct, F_SETFL, O_RDONLY) != 0) {
                b->sys = EINVAL;
                break;
            }
        } else if (errno != EINTR) {
            b->sys = errno;
            break;
        }
    }
}

static void *
read_ahead(void *arg)
{
    struct moe_stream *s = arg;
    bool last = false;

    for (int k = 0; !last; k = 1 - k) {
        struct piece *b = &s->piece[k];

        pthread_mutex_lock(&s->lock);
        while (b->full && !s->quit)
            pthread_cond_wait(&s->change, &s->lock);
        last = s->quit;
        pthread_mutex_unlock(&s->lock);
        if (last)
            break;
        fill_direct(s, b);
        last = b->sys != 0 || b->len == 0;
        pthread_mutex_lock(&s->lock);
        b->full = true;
        pthread_cond_signal(&s->change);
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

/* Start the thread; without one the caller reads by itself. */
static void
start_thread(struct moe_stream *s)
{
    pthread_attr_t attr;
    sigset_t all;

    if (pthread_attr_init(&attr) != 0)
        return;
    sigfillset(&all);
    /* Signals are for the threads of the program. */
    if (pthread_attr_setsigmask_np(&attr, &all) == 0 && pthread_mutex_init(&s->lock, NULL) == 0) {
        if (pthread_cond_init(&s->change, NULL) == 0) {
            s->threaded = pthread_create(&s->thread, &attr, read_ahead, s) == 0;
            if (!s->threaded)
                pthread_cond_destroy(&s->change);
        }
        if (!s->threaded)
            pthread_mutex_destroy(&s->lock);
    }
    pthread_attr_destroy(&attr);
}

static void
stop_thread(struct moe_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    pthread_cond_signal(&s->change);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->change);
    pthread_mutex_destroy(&s->lock);
}

/* Give back the piece in use and take the next. */
static struct piece *
take_direct(struct moe_stream *s)
{
    struct piece *old = &s->piece[1 - s->turn], *b = &s->piece[s->turn];

    if (!s->threaded) {
        b = &s->piece[0];
        fill_direct(s, b);
        return b;
    }
    pthread_mutex_lock(&s->lock);
    /* Before the first piece is taken the other may be full already, and unread. */
    if (s->using) {
        old->full = false;
        pthread_cond_signal(&s->change);
    }
    while (!b->full)
        pthread_cond_wait(&s->change, &s->lock);
    pthread_mutex_unlock(&s->lock);
    s->turn = 1 - s->turn;
    s->using = true;
    return b;
}

/*
 * A description of our own, so that the caller's keeps its flags and place.
 * Any failure means no O_DIRECT.
 */
static void
open_direct(struct moe_stream *s)
{
    char path[64];
    size_t skip = (size_t)(s->at % ALIGN);

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", s->fd);
    if ((s->direct = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT)) < 0)
        return;
    if ((s->piece[1].p = aligned_alloc(ALIGN, s->size)) == NULL) {
        close(s->direct);
        s->direct = -1;
        return;
    }
    s->at -= skip;
    s->piece[0].skip = skip;
    start_thread(s);
}

/* ---- Filling -------------------------------------------------------------------- */

/* read() once into p, continued after signals; 0 at the end. */
static int
read_some(struct moe_stream *s, void *p, size_t n, size_t *got, struct moe_err *e)
{
    unsigned long long at = s->pos;
    ssize_t k;
    int rc;

    while ((k = read(s->fd, p, n)) < 0) {
        if (errno != EINTR)
            return moe_err_sys(e, MOE_EIO, errno, "%s: offset %llu", s->name, at);
        if ((rc = moe_stop_check(e)) != 0)
            return rc;
    }
    *got = (size_t)k;
    s->at += (uint64_t)k;
    s->end = k == 0;
    return 0;
}

static int
fill(struct moe_stream *s, struct moe_err *e)
{
    struct piece *b = &s->piece[0];
    int rc;

    if ((rc = moe_stop_check(e)) != 0)
        return rc;
    if (s->direct < 0) {
        if ((rc = read_some(s, b->p, s->size, &s->n, e)) != 0)
            return rc;
        s->p = b->p;
        if (s->regular && !s->end)
            (void)posix_fadvise(s->fd, (off_t)s->at, (off_t)s->size, POSIX_FADV_WILLNEED);
        return 0;
    }
    b = take_direct(s);
    if (b->sys != 0) {
        s->end = true;  /* the thread is gone */
        return moe_err_sys(e, MOE_EIO, b->sys, "%s: offset %llu", s->name,
            (unsigned long long)s->pos);
    }
    s->end = b->len <= b->skip;
    s->p = b->p + b->skip;
    s->n = s->end ? 0 : b->len - b->skip;
    b->skip = 0;
    return 0;
}

/* ---- Public --------------------------------------------------------------------- */

/* A piece for `left` bytes of a regular file: room for the byte that shows the end. */
static size_t
piece_size(uint64_t left)
{
    if (left >= MOE_STREAM_PIECE)
        return MOE_STREAM_PIECE;
    return left < MIN_PIECE ? MIN_PIECE : ((size_t)left / ALIGN + 1) * ALIGN;
}

int
moe_stream_open(int fd, const char *name, bool direct, struct moe_stream **out,
    struct moe_err *e)
{
    struct moe_stream *s = calloc(1, sizeof(*s));
    struct stat st;
    off_t at;

    *out = NULL;
    if (s == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    s->name = name;
    s->fd = fd;
    s->direct = -1;
    s->size = PIPE_BYTES;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (at = lseek(fd, 0, SEEK_CUR)) >= 0) {
        s->regular = true;
        s->at = (uint64_t)at;
        s->size = piece_size(st.st_size > at ? (uint64_t)(st.st_size - at) : 0);
        (void)posix_fadvise(fd, at, 0, POSIX_FADV_SEQUENTIAL);
    } else {
        (void)fcntl(fd, F_SETPIPE_SZ, (int)PIPE_BYTES);
    }
    if ((s->piece[0].p = aligned_alloc(ALIGN, s->size)) == NULL) {
        free(s);
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    }
    if (direct && s->regular)
        open_direct(s);
    *out = s;
    return 0;
}

int
moe_stream_next(struct moe_stream *s, const void **p, size_t *n, struct moe_err *e)
{
    int rc;

    *p = NULL;
    *n = 0;
    if (s->n == 0 && !s->end && (rc = fill(s, e)) != 0)
        return rc;
    *p = s->p;
    *n = s->n;
    s->pos += s->n;
    s->n = 0;
    return 0;
}

int
moe_stream_get(struct moe_stream *s, void *p, size_t n, struct moe_err *e)
{
    unsigned char *to = p;
    int rc;

    while (n > 0) {
        size_t k = s->n < n ? s->n : n;

        if (k > 0) {
            memcpy(to, s->p, k);
            s->p += k;
            s->n -= k;
        } else if (s->end) {
            return moe_err_set(e, MOE_EFORMAT, "%s: offset %llu: the input ends, %zu bytes early",
                s->name, (unsigned long long)s->pos, n);
        } else if (s->direct < 0 && n >= s->size) {
            /* Large reads need no copy. */
            if ((rc = moe_stop_check(e)) != 0 ||
                (rc = read_some(s, to, n < MOE_STREAM_PIECE ? n : MOE_STREAM_PIECE, &k, e)) != 0)
                return rc;
        } else if ((rc = fill(s, e)) != 0) {
            return rc;
        }
        to += k;
        n -= k;
        s->pos += k;
    }
    return 0;
}

uint64_t
moe_stream_pos(const struct moe_stream *s)
{
    return s->pos;
}

void
moe_stream_close(struct moe_stream *s)
{
    if (s == NULL)
        return;
    if (s->threaded)
        stop_thread(s);
    if (s->direct >= 0)
        (void)close(s->direct);
    free(s->piece[0].p);
    free(s->piece[1].p);
    free(s);
}
