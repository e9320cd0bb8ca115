/* SPDX-License-Identifier: Apache-2.0 */
/* Streams over files (with O_DIRECT and without) and pipes, at any cut. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/stop.h"
#include "common/base/stream.h"
#include "tests/tap.h"

/* Two pieces and a bit, an odd end. */
#define N (2 * MOE_STREAM_PIECE + 12345)

static unsigned char *data, *got;

static void
whole(int fd, bool direct, size_t from, const char *what)
{
    struct moe_stream *s;
    struct moe_err e = { 0, "" };
    size_t at = from, n = 0, most = 0, pieces = 0;
    const void *p;

    lseek(fd, (off_t)from, SEEK_SET);
    tap_is_int(moe_stream_open(fd, "f", direct, &s, &e), 0, "%s: open at %zu", what, from);
    if (direct)
        usleep(20000);  /* time enough to read both pieces ahead */
    memset(got, 0, N);
    while (moe_stream_next(s, &p, &n, &e) == 0 && n > 0 && n <= N - at) {
        memcpy(got + at, p, n);
        at += n;
        most = n > most ? n : most;
        pieces++;
    }
    tap_ok(at == N && n == 0 && memcmp(got + from, data + from, N - from) == 0, "%s: its bytes",
        what);
    tap_ok(most <= MOE_STREAM_PIECE, "%s: no piece too large (%zu pieces)", what, pieces);
    tap_ok(moe_stream_pos(s) == N - from, "%s: the place", what);
    tap_ok(moe_stream_next(s, &p, &n, &e) == 0 && n == 0, "%s: the end stays", what);
    moe_stream_close(s);
}

/* Gets of all sizes, among them larger than a piece, and one past the end. */
static void
parts(int fd, bool direct, const char *what)
{
    static const size_t cut[] = { 1, 4095, 0, 70000, MOE_STREAM_PIECE + 4321, 17, 1 << 20 };
    struct moe_stream *s;
    struct moe_err e = { 0, "" };
    size_t at = 0, n;
    const void *p;
    char want[100];

    lseek(fd, 0, SEEK_SET);
    moe_stream_open(fd, "f", direct, &s, &e);
    memset(got, 0, N);
    for (size_t i = 0; i < sizeof(cut) / sizeof(*cut); i++) {
        if (moe_stream_get(s, got + at, cut[i], &e) != 0)
            break;
        at += cut[i];
    }
    tap_ok(at == MOE_STREAM_PIECE + 4321 + 74113 + (1 << 20) && memcmp(got, data, at) == 0,
        "%s: parts", what);
    tap_ok(moe_stream_next(s, &p, &n, &e) == 0 && n > 0 && memcmp(p, data + at, n) == 0,
        "%s: the piece after them", what);
    at += n;
    tap_ok(moe_stream_pos(s) == at, "%s: the place", what);
    tap_is_int(moe_stream_get(s, got, N - at + 3, &e), MOE_EFORMAT, "%s: past the end", what);
    (void)snprintf(want, sizeof(want), "f: offset %zu: the input ends, 3 bytes early", N);
    tap_is_str(e.text, want, "%s: told where", what);
    moe_stream_close(s);
}

/* Closing in the middle ends the reading thread. */
static void
early(int fd)
{
    struct moe_stream *s;
    const void *p;
    size_t n;

    for (int i = 0; i < 3; i++) {
        lseek(fd, 0, SEEK_SET);
        moe_stream_open(fd, "f", true, &s, NULL);
        if (i > 0)
            moe_stream_next(s, &p, &n, NULL);
        moe_stream_close(s);
    }
    tap_ok(fcntl(fd, F_GETFD) >= 0, "the descriptor stays the caller's");
    moe_stream_close(NULL);
}

static int
feed(int *child)
{
    int fd[2];

    if (pipe(fd) != 0)
        exit(2);
    if ((*child = fork()) == 0) {
        close(fd[0]);
        signal(SIGPIPE, SIG_DFL);
        for (size_t at = 0; at < N;) {
            size_t n = N - at < 300007 ? N - at : 300007;
            ssize_t put = write(fd[1], data + at, n);

            at += put > 0 ? (size_t)put : 0;
        }
        _exit(0);
    }
    close(fd[1]);
    return fd[0];
}

static void
pipes(void)
{
    int child, fd = feed(&child);

    whole(fd, false, 0, "pipe");
    close(fd);
    waitpid(child, NULL, 0);
    fd = feed(&child);
    parts(fd, true, "pipe");
    close(fd);
    waitpid(child, NULL, 0);
}

int
main(void)
{
    char path[] = P_tmpdir "/moe-stream-XXXXXX";
    struct moe_stream *s;
    struct moe_err e = { 0, "" };
    int fd = mkstemp(path);
    const void *p;
    size_t n;

    data = malloc(N);
    got = malloc(N);
    for (size_t i = 0; data != NULL && i < N; i++)
        data[i] = (unsigned char)(i % 251 ^ i >> 16);
    if (data == NULL || got == NULL || fd < 0 || write(fd, data, N) != (ssize_t)N)
        return 2;
    unlink(path);
    whole(fd, false, 0, "file");
    whole(fd, true, 0, "direct");
    whole(fd, false, 5000, "file");
    whole(fd, true, 5000, "direct");
    whole(fd, true, N - 7, "direct");
    whole(fd, true, N, "direct");
    parts(fd, false, "file");
    parts(fd, true, "direct");
    early(fd);
    pipes();
    lseek(fd, 0, SEEK_SET);
    moe_stream_open(fd, "f", false, &s, &e);
    moe_stop_set(SIGTERM);
    tap_is_int(moe_stream_next(s, &p, &n, &e), MOE_ESTOP, "a stop between pieces");
    moe_stop_set(0);
    moe_stream_close(s);
    close(fd);
    fd = open("/", O_RDONLY);
    moe_stream_open(fd, "d", true, &s, &e);
    tap_is_int(moe_stream_next(s, &p, &n, &e), MOE_EIO, "a directory");
    moe_stream_close(s);
    close(fd);
    free(data);
    free(got);
    return tap_done();
}
