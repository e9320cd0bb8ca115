/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files, pipes, limits, ranges, and signals in the middle. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/read.h"
#include "common/base/stop.h"
#include "tests/tap.h"

#define N 300000

static unsigned char data[N];

static void
file(const char *path, int fd)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    unsigned char part[100];

    moe_buf_str(&b, "left over");
    tap_is_int(moe_read_file(path, N, &b, &e), 0, "a whole file at its limit");
    tap_ok(b.len == N && memcmp(b.p, data, N) == 0, "its bytes, and no others");
    tap_is_int(moe_read_file(path, N - 1, &b, &e), MOE_ELIMIT, "over the limit");
    tap_is_int(moe_read_file("/dev/null", 10, &b, &e), 0, "an empty one");
    tap_ok(b.len == 0 && b.p != NULL && b.p[0] == '\0', "is an empty string");
    tap_is_int(moe_read_file("/dev/zero", 1000000, &b, &e), MOE_ELIMIT, "an endless one");
    tap_is_int(moe_read_file("/nonexistent/x", 10, &b, &e), MOE_ENOENT, "a missing one");
    tap_is_int(moe_read_file("/", 10, &b, &e), MOE_EIO, "a directory");
    tap_is_int(moe_read_file("/proc/self/stat", 9999, &b, &e), 0, "one that hides its size");
    tap_ok(b.len > 10, "is read too");
    moe_buf_fini(&b);
    tap_is_int(moe_read_at(fd, "f", part, 100, N - 100, &e), 0, "a range up to the end");
    tap_is_mem(part, data + N - 100, 100, "its bytes");
    tap_is_int(moe_read_at(fd, "f", part, 100, N - 99, &e), MOE_EFORMAT, "past the end");
    tap_is_str(e.text, "f: offset 300000: the file ends, 1 bytes early", "said where");
    tap_is_int(moe_read_at(fd, "f", part, 1, UINT64_MAX, &e), MOE_EFORMAT, "beyond any offset");
    tap_is_int(moe_read_at(-1, "f", part, 1, 0, &e), MOE_EIO, "a bad descriptor");
    tap_is_int(moe_read_at(fd, "f", part, 0, N + 5, &e), 0, "nothing is nowhere");
}

/*
 * A child writes half of the data, sends `times` signals to us, 2 ms apart, and
 * then the rest. It is killed in the middle when times is large.
 */
static int
feed(int sig, int times, int *child)
{
    int fd[2];

    if (pipe(fd) != 0)
        exit(2);
    if ((*child = fork()) == 0) {
        close(fd[0]);
        signal(SIGPIPE, SIG_DFL);
        for (size_t at = 0; at < N;) {
            ssize_t put = write(fd[1], data + at, at < N / 2 ? N / 2 - at : N - at);

            at += put > 0 ? (size_t)put : 0;
            while (at == N / 2 && times-- > 0 && usleep(2000) == 0)
                kill(getppid(), sig);
        }
        _exit(0);
    }
    close(fd[1]);
    return fd[0];
}

static void
nothing(int sig)
{
    (void)sig;
}

static void
pipes(void)
{
    struct sigaction sa;
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    int child, fd;

    memset(&sa, 0, sizeof(sa));
    sa.sa_handler = nothing;
    sigaction(SIGUSR1, &sa, NULL);
    sa.sa_handler = moe_stop_set;
    sigaction(SIGUSR2, &sa, NULL);
    fd = feed(SIGUSR1, 10, &child);
    tap_is_int(moe_read_fd(fd, "p", N, &b, &e), 0, "a pipe, with signals");
    tap_ok(b.len == N && memcmp(b.p, data, N) == 0, "its bytes");
    close(fd);
    waitpid(child, NULL, 0);
    fd = feed(SIGUSR1, 10, &child);
    tap_is_int(moe_read_fd(fd, "p", N - 1, &b, &e), MOE_ELIMIT, "a pipe over the limit");
    close(fd);
    waitpid(child, NULL, 0);
    fd = feed(SIGUSR2, 100000, &child);
    tap_is_int(moe_read_fd(fd, "p", N, &b, &e), MOE_ESTOP, "a stop while waiting");
    close(fd);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    moe_stop_set(0);
    moe_buf_fini(&b);
}

int
main(void)
{
    char path[] = P_tmpdir "/moe-read-XXXXXX";
    int fd = mkstemp(path);

    for (size_t i = 0; i < N; i++)
        data[i] = (unsigned char)(i % 251 ^ i / 65536);
    if (fd < 0 || write(fd, data, N) != N) {
        perror(path);
        return 2;
    }
    file(path, fd);
    close(fd);
    unlink(path);
    pipes();
    return tap_done();
}
