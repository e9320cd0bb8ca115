/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues of files and ranges: digests against OpenSSL for teams of one to
 * three, order of telling, failures, a pipe, a file read ahead.
 */
#include <fcntl.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/base/stop.h"
#include "common/trust/digestq.h"
#include "tests/tap.h"

#define FILES 12
#define LONGEST ((size_t)9 << 20)

static const size_t sizes[FILES] = { 0, 1, 63, 64, 65, 4096, 131071, 131072, 131073, 400000,
    LONGEST, 100 };
static unsigned char *bytes;            /* file i is the first sizes[i] of them, from i on */
static char dir[] = P_tmpdir "/moe-digestq-XXXXXX";
static char paths[FILES][64];

static void
make_files(void)
{
    uint32_t x = 7;

    if (mkdtemp(dir) == NULL || (bytes = malloc(LONGEST + FILES)) == NULL)
        exit(2);
    for (size_t i = 0; i < LONGEST + FILES; i++) {
        x = x * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(x >> 24);
    }
    for (size_t i = 0; i < FILES; i++) {
        snprintf(paths[i], sizeof(paths[i]), "%s/%zu", dir, i);
        FILE *f = fopen(paths[i], "wb");
        if (f == NULL || fwrite(bytes + i, 1, sizes[i], f) != sizes[i] || fclose(f) != 0)
            exit(2);
    }
}

static void
remove_files(void)
{
    for (size_t i = 0; i < FILES; i++)
        (void)unlink(paths[i]);
    (void)rmdir(dir);
    free(bytes);
}

static bool
is_evp(const unsigned char *sum, const unsigned char *p, size_t n)
{
    unsigned char want[EVP_MAX_MD_SIZE];

    EVP_Digest(p, n, want, NULL, EVP_sha256(), NULL);
    return memcmp(sum, want, MOE_DIGEST_LEN) == 0;
}

/* What the callbacks saw. */
struct seen {
    struct moe_digestq_job *jobs;
    size_t n, failed, out_of_order, end_at;
    char text[MOE_ERR_TEXT];
};

static int
open_job(void *ctx, size_t i, struct moe_err *e)
{
    struct seen *s = ctx;
    int fd = open(s->jobs[i].name, O_RDONLY);

    return fd >= 0 ? fd : moe_err_set(e, MOE_ENOENT, "%s: missing", s->jobs[i].name);
}

static int
done_job(void *ctx, size_t i, struct moe_err *e)
{
    struct seen *s = ctx;

    s->out_of_order += i != s->n;
    s->n++;
    if (s->jobs[i].rc != 0) {
        s->failed++;
        snprintf(s->text, sizeof(s->text), "%s", e->text);
    }
    return s->n == s->end_at ? moe_err_set(e, MOE_EIO, "enough") : 0;
}

static struct moe_pool *
team(int n)
{
    struct moe_pool *p;
    struct moe_err e;

    if (moe_pool_new(n, &p, &e) != 0) {
        printf("Bail out! %s\n", e.text);
        exit(1);
    }
    return p;
}

static void
whole_files(int threads)
{
    struct moe_pool *pool = team(threads);
    struct moe_digestq_job jobs[FILES + 1];
    struct seen s = { .jobs = jobs };
    struct moe_digestq q = { jobs, FILES + 1, open_job, done_job, &s, NULL };
    struct moe_err e = { 0 };
    size_t wrong = 0;

    memset(jobs, 0, sizeof(jobs));
    for (size_t i = 0; i <= FILES; i++)
        jobs[i] = (struct moe_digestq_job){ .name = i < FILES ? paths[i] : "nonexistent/file",
            .fd = -1, .len = MOE_DIGESTQ_REST };
    tap_is_int(moe_digestq_run(&q, pool, &e), 0, "%d threads: run", threads);
    for (size_t i = 0; i < FILES; i++)
        wrong += jobs[i].rc != 0 || jobs[i].bytes != sizes[i] ||
            !is_evp(jobs[i].sum, bytes + i, sizes[i]);
    tap_is_int((long long)wrong, 0, "%d threads: digests of %d files", threads, FILES);
    tap_ok(s.n == FILES + 1 && s.out_of_order == 0, "%d threads: told in order", threads);
    tap_ok(s.failed == 1 && jobs[FILES].rc == MOE_ENOENT &&
        strcmp(s.text, "nonexistent/file: missing") == 0, "%d threads: the missing one", threads);
    moe_pool_free(pool);
}

/* Ranges of one open file, one of them past its end. */
static void
ranges(int threads)
{
    struct moe_pool *pool = team(threads);
    struct moe_digestq_job jobs[60];
    struct seen s = { .jobs = jobs };
    struct moe_digestq q = { jobs, 60, NULL, done_job, &s, NULL };
    struct moe_err e = { 0 };
    size_t wrong = 0;
    int fd = open(paths[10], O_RDONLY);

    memset(jobs, 0, sizeof(jobs));
    for (size_t i = 0; i < 60; i++)
        jobs[i] = (struct moe_digestq_job){ .name = "m", .fd = fd, .at = i * 150001,
            .len = i * 7919 % 150000 };
    jobs[59].len = LONGEST;
    tap_is_int(moe_digestq_run(&q, pool, &e), 0, "%d threads: ranges", threads);
    for (size_t i = 0; i < 59; i++)
        wrong += jobs[i].rc != 0 || !is_evp(jobs[i].sum, bytes + 10 + jobs[i].at, jobs[i].len);
    tap_is_int((long long)wrong, 0, "%d threads: digests of 59 ranges", threads);
    tap_is_int(jobs[59].rc, MOE_EFORMAT, "%d threads: past the end", threads);
    tap_is_str(s.text, "m: ends at byte 9437184, 8850059 short", "%d threads: and where", threads);
    (void)close(fd);
    moe_pool_free(pool);
}

static void
alone(int threads, size_t i, uint64_t at, uint64_t len, const char *what)
{
    struct moe_pool *pool = team(threads);
    struct moe_digestq_job job = { .name = paths[i], .fd = -1, .at = at, .len = len };
    struct seen s = { .jobs = &job };
    struct moe_digestq q = { &job, 1, open_job, done_job, &s, NULL };
    struct moe_err e = { 0 };
    size_t want = len == MOE_DIGESTQ_REST ? sizes[i] - at : len;

    tap_ok(moe_digestq_run(&q, pool, &e) == 0 && job.rc == 0 && job.bytes == want &&
        is_evp(job.sum, bytes + i + at, want), "%d threads: %s", threads, what);
    moe_pool_free(pool);
}

static void
pipe_here(void)
{
    struct moe_pool *pool = team(2);
    struct moe_digestq_job job = { .name = "-", .at = MOE_DIGESTQ_HERE, .len = MOE_DIGESTQ_REST };
    struct moe_digestq q = { &job, 1, NULL, NULL, NULL, NULL };
    struct moe_err e = { 0 };
    int fd[2];

    if (pipe(fd) != 0 || write(fd[1], bytes, 1000) != 1000)
        exit(2);
    (void)close(fd[1]);
    job.fd = fd[0];
    tap_ok(moe_digestq_run(&q, pool, &e) == 0 && job.bytes == 1000 &&
        is_evp(job.sum, bytes, 1000), "a pipe");
    (void)close(fd[0]);
    moe_pool_free(pool);
}

static void
on_alarm(int sig)
{
    moe_stop_set(sig);
}

/* A signal ends the wait for a pipe that stays silent: the run ends, no job is told. */
static void
pipe_stopped(void)
{
    struct moe_pool *pool = team(2);
    struct moe_digestq_job job = { .name = "-", .at = MOE_DIGESTQ_HERE, .len = MOE_DIGESTQ_REST };
    struct seen s = { .jobs = &job };
    struct moe_digestq q = { &job, 1, NULL, done_job, &s, NULL };
    struct sigaction sa = { .sa_handler = on_alarm };
    struct itimerval soon = { .it_value = { 0, 50000 }, .it_interval = { 0, 50000 } };
    struct itimerval never = { { 0, 0 }, { 0, 0 } };
    struct moe_err e = { 0 };
    int fd[2];

    if (pipe(fd) != 0)
        exit(2);
    job.fd = fd[0];
    (void)sigaction(SIGALRM, &sa, NULL);
    (void)setitimer(ITIMER_REAL, &soon, NULL);
    tap_is_int(moe_digestq_run(&q, pool, &e), MOE_ESTOP, "a signal while a pipe is waited for");
    (void)setitimer(ITIMER_REAL, &never, NULL);
    moe_stop_set(0);
    tap_ok(s.n == 0 && job.rc == MOE_ESTOP, "ends the run, and no job is told");
    (void)close(fd[0]);
    (void)close(fd[1]);
    moe_pool_free(pool);
}

/* A directory can be opened, but not read. */
static void
unreadable(void)
{
    struct moe_pool *pool = team(2);
    struct moe_digestq_job job = { .name = "here", .fd = open(dir, O_RDONLY),
        .len = MOE_DIGESTQ_REST };
    struct seen s = { .jobs = &job };
    struct moe_digestq q = { &job, 1, NULL, done_job, &s, NULL };
    struct moe_err e = { 0 };

    tap_is_int(moe_digestq_run(&q, pool, &e), 0, "an unreadable file ends nothing");
    tap_is_int(job.rc, MOE_EIO, "it is an error of its own");
    tap_is_str(s.text, "here: byte 0: read: Is a directory", "and says where");
    (void)close(job.fd);
    moe_pool_free(pool);
}

/* The run ends when done() says so, and when a stop is asked for. */
static void
ends(void)
{
    struct moe_pool *pool = team(2);
    struct moe_digestq_job jobs[FILES];
    struct seen s = { .jobs = jobs, .end_at = 3 };
    struct moe_digestq q = { jobs, FILES, open_job, done_job, &s, NULL };
    struct moe_err e = { 0 };

    memset(jobs, 0, sizeof(jobs));
    for (size_t i = 0; i < FILES; i++)
        jobs[i] = (struct moe_digestq_job){ .name = paths[i], .fd = -1,
            .len = MOE_DIGESTQ_REST };
    tap_is_int(moe_digestq_run(&q, pool, &e), MOE_EIO, "ended by done()");
    tap_ok(s.n == 3 && strcmp(e.text, "enough") == 0, "with its text, and not called again");
    s = (struct seen){ .jobs = jobs };
    moe_stop_set(2);
    tap_is_int(moe_digestq_run(&q, pool, &e), MOE_ESTOP, "ended by a signal");
    moe_stop_set(0);
    tap_ok(s.n == 0 && jobs[0].rc == MOE_ESTOP, "nothing was done");
    moe_pool_free(pool);
}

int
main(void)
{
    make_files();
    for (int threads = 1; threads <= 3; threads++) {
        whole_files(threads);
        ranges(threads);
        alone(threads, 10, 0, MOE_DIGESTQ_REST, "a lone long file");
        alone(threads, 10, 12345, 5000001, "a lone range of it");
        alone(threads, 0, 0, MOE_DIGESTQ_REST, "a lone empty file");
    }
    pipe_here();
    pipe_stopped();
    unreadable();
    ends();
    remove_files();
    return tap_done();
}
