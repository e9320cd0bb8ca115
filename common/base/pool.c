/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns a team of threads and handing out jobs to it. Knows nothing of the jobs.
 *
 * A run is open or closed. Workers that come while it is open enter, are
 * counted, and leave when no job is left. The caller opens it, works along,
 * closes it, and waits for those inside. A worker that the system did not give
 * a processor in that time is not waited for: it finds the run closed.
 *
 * Both waits spin for SPIN_NS and then sleep: workers on `epoch`, which each run
 * changes, the caller on `gate`, which the last worker changes. With more
 * threads than processors nobody spins, because that holds up whom it waits for.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/pool.h"

/* About what a futex wake costs; a kernel call a layer of a model comes sooner. */
#define SPIN_NS 50000
/* The clock is looked at once in so many pauses. */
#define SPIN_BATCH 32

/* The gate: how many workers are inside, and two flags. */
#define CLOSED 0x80000000U
#define SLEEPS 0x40000000U  /* the caller sleeps until the last has left */
#define INSIDE 0x3fffffffU

struct worker {
    struct moe_pool *pool;
    pthread_t thread;
    int id;
};

struct moe_pool {
    /* Each on a cache line of its own: the jobs hit `next`, the waits the others. */
    alignas(64) _Atomic size_t next;
    alignas(64) _Atomic uint32_t gate;
    alignas(64) _Atomic uint32_t epoch;
    _Atomic uint32_t asleep;
    atomic_bool quit;
    bool crowded;       /* more threads than processors */
    int size;
    /* Written by the caller while the run is closed and nobody is inside. */
    moe_pool_fn *fn;
    void *ctx;
    size_t n;
    struct worker *worker;
};

static void
futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void
futex_wake(_Atomic uint32_t *word, int most)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0);
}

static void
pause_once(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Spin while (*word & mask) is value, but not for long; whether it changed. */
static bool
spin(const struct moe_pool *p, _Atomic uint32_t *word, uint32_t mask, uint32_t value)
{
    uint64_t start;

    if ((atomic_load_explicit(word, memory_order_acquire) & mask) != value)
        return true;
    if (p->crowded)
        return false;
    start = moe_clock_ns();
    do
        for (int i = 0; i < SPIN_BATCH; i++) {
            pause_once();
            if ((atomic_load_explicit(word, memory_order_acquire) & mask) != value)
                return true;
        }
    while (moe_clock_ns() - start < SPIN_NS);
    return false;
}

/* ---- Workers --------------------------------------------------------------------------- */

static void
work(struct moe_pool *p, int id)
{
    moe_pool_fn *fn = p->fn;
    void *ctx = p->ctx;
    size_t n = p->n, i;

    while ((i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed)) < n)
        fn(ctx, i, id);
}

static bool
enter(struct moe_pool *p)
{
    uint32_t g = atomic_load_explicit(&p->gate, memory_order_relaxed);

    do
        if (g & CLOSED)
            return false;
    while (!atomic_compare_exchange_weak_explicit(&p->gate, &g, g + 1, memory_order_acquire,
        memory_order_relaxed));
    return true;
}

static void
leave(struct moe_pool *p)
{
    uint32_t g = atomic_fetch_sub_explicit(&p->gate, 1, memory_order_release) - 1;

    if (g == (CLOSED | SLEEPS))
        futex_wake(&p->gate, 1);
}

static void *
worker_main(void *arg)
{
    struct worker *w = arg;
    struct moe_pool *p = w->pool;
    uint32_t seen = 0;

    for (;;) {
        while (!spin(p, &p->epoch, UINT32_MAX, seen)) {
            /* Either the caller sees this count, or the kernel the new epoch. */
            atomic_fetch_add(&p->asleep, 1);
            futex_wait(&p->epoch, seen);
            atomic_fetch_sub(&p->asleep, 1);
        }
        seen = atomic_load(&p->epoch);
        if (atomic_load(&p->quit))
            return NULL;
        if (enter(p)) {
            work(p, w->id);
            leave(p);
        }
    }
}

/* Let waiting workers look, at most so many of those that sleep. */
static void
call_workers(struct moe_pool *p, size_t most)
{
    atomic_fetch_add(&p->epoch, 1);
    if (atomic_load(&p->asleep) > 0)
        futex_wake(&p->epoch, most < INT_MAX ? (int)most : INT_MAX);
}

/* Wait until nobody is inside the closed run. */
static void
wait_empty(struct moe_pool *p)
{
    for (;;) {
        uint32_t g = atomic_load_explicit(&p->gate, memory_order_acquire);

        if ((g & INSIDE) == 0)
            return;
        if (spin(p, &p->gate, UINT32_MAX, g))
            continue;
        if (!(g & SLEEPS) && !atomic_compare_exchange_strong(&p->gate, &g, g | SLEEPS))
            continue;
        futex_wait(&p->gate, g | SLEEPS);
    }
}

/* ---- Public ---------------------------------------------------------------------------- */

/* The processors that this process may run on, at least 1. */
static int
processors(void)
{
    int n = 0;

    for (int most = 1024; n == 0 && most <= 1 << 20; most *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)most);
        size_t bytes = CPU_ALLOC_SIZE((size_t)most);

        if (set == NULL)
            break;
        if (sched_getaffinity(0, bytes, set) == 0)
            n = CPU_COUNT_S(bytes, set);
        else if (errno != EINVAL)
            most = 1 << 20;
        CPU_FREE(set);
    }
    return n > 0 ? n : 1;
}

/* Start workers 1 .. size - 1; p->size tells how many there are. */
static int
start_workers(struct moe_pool *p, int size)
{
    pthread_attr_t attr;
    sigset_t all;
    int rc;

    if ((rc = pthread_attr_init(&attr)) != 0)
        return rc;
    /* Signals are for the threads of the program. */
    sigfillset(&all);
    rc = pthread_attr_setsigmask_np(&attr, &all);
    while (rc == 0 && p->size < size) {
        struct worker *w = &p->worker[p->size];

        w->pool = p;
        w->id = p->size;
        if ((rc = pthread_create(&w->thread, &attr, worker_main, w)) == 0)
            p->size++;
    }
    (void)pthread_attr_destroy(&attr);
    return rc;
}

int
moe_pool_new(int threads, struct moe_pool **out, struct moe_err *e)
{
    int cpus = processors(), size = threads == 0 ? cpus : threads, rc;
    struct moe_pool *p;

    *out = NULL;
    size = size > MOE_POOL_MAX && threads == 0 ? MOE_POOL_MAX : size;
    if (size < 1 || size > MOE_POOL_MAX)
        return moe_err_set(e, MOE_ELIMIT, "%d threads: not within 1 to %d", threads, MOE_POOL_MAX);
    if ((p = aligned_alloc(alignof(struct moe_pool), sizeof(*p))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "threads: out of memory");
    *p = (struct moe_pool){ .size = 1, .crowded = size > cpus };
    atomic_init(&p->gate, CLOSED);
    if ((p->worker = calloc((size_t)size, sizeof(*p->worker))) == NULL) {
        moe_pool_free(p);
        return moe_err_set(e, MOE_ENOMEM, "threads: out of memory");
    }
    if ((rc = start_workers(p, size)) != 0) {
        moe_pool_free(p);
        return moe_err_sys(e, MOE_ENOMEM, rc, "%d threads", size);
    }
    *out = p;
    return 0;
}

void
moe_pool_free(struct moe_pool *p)
{
    if (p == NULL)
        return;
    atomic_store(&p->quit, true);
    call_workers(p, INT_MAX);
    for (int i = 1; i < p->size; i++)
        (void)pthread_join(p->worker[i].thread, NULL);
    free(p->worker);
    free(p);
}

int
moe_pool_size(const struct moe_pool *p)
{
    return p->size;
}

void
moe_pool_run(struct moe_pool *p, size_t n, moe_pool_fn *fn, void *ctx)
{
    if (p->size == 1 || n <= 1) {
        for (size_t i = 0; i < n; i++)
            fn(ctx, i, 0);
        return;
    }
    p->fn = fn;
    p->ctx = ctx;
    p->n = n;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    atomic_store_explicit(&p->gate, 0, memory_order_release);
    call_workers(p, n - 1);
    work(p, 0);
    (void)atomic_fetch_or_explicit(&p->gate, CLOSED, memory_order_acq_rel);
    wait_empty(p);
}
