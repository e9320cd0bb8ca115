/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs: what they hold, when they appear, and that any failure, also each
 * call of the system failing in turn, leaves the old state and no temporary.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/out.h"
#include "common/base/stop.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#define MIB ((size_t)1 << 20)
#define N (3 * MIB + 777)

static unsigned char data[N];

/* ---- Calls of the system that fail when asked to -------------------------------------- */

/* The call that fails (counted from 1; 0: none), the calls so far, and the errno. */
static int fail_at, calls, fail_with;

static bool
fails(void)
{
    if (++calls != fail_at)
        return false;
    errno = fail_with;
    return true;
}

/* These stand in for libc's: the library in this program calls them. */
int
fsync(int fd)
{
    return fails() ? -1 : (int)syscall(SYS_fsync, fd);
}

int
fallocate(int fd, int mode, off_t at, off_t n)
{
    return fails() ? -1 : (int)syscall(SYS_fallocate, fd, mode, at, n);
}

int
ftruncate(int fd, off_t n)
{
    return fails() ? -1 : (int)syscall(SYS_ftruncate, fd, n);
}

/* Short writes, too: never more than 1 MB at once. */
ssize_t
pwrite(int fd, const void *p, size_t n, off_t at)
{
    return fails() ? -1 : syscall(SYS_pwrite64, fd, p, n < 1000000 ? n : 1000000, at);
}

int
renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
    return fails() ? -1 : (int)syscall(SYS_renameat2, a, from, b, to, flags);
}

int
renameat(int a, const char *from, int b, const char *to)
{
    return fails() ? -1 : (int)syscall(SYS_renameat2, a, from, b, to, 0);
}

/* ---- Whole outputs ----------------------------------------------------------------------- */

/* Write all of data in odd parts and commit. */
static int
write_all(const char *path, bool force, uint64_t hint, struct moe_err *e)
{
    static const size_t part[] = { 1, 4095, 70000, MIB, 2 * MIB };
    struct moe_out *o;
    size_t at = 0;
    int rc;

    if ((rc = moe_out_open(path, force, hint, &o, e)) != 0)
        return rc;
    for (int i = 0; at < N; i++) {
        size_t n = part[i % 5] < N - at ? part[i % 5] : N - at;

        if ((rc = moe_out_write(o, data + at, n, e)) != 0) {
            moe_out_abort(o);
            return rc;
        }
        at += n;
    }
    return moe_out_commit(o, e);
}

static bool
holds_data(const char *path)
{
    static unsigned char got[N + 1];
    int fd = open(path, O_RDONLY);
    size_t at = 0;
    ssize_t n;

    while (fd >= 0 && (n = read(fd, got + at, sizeof(got) - at)) > 0)
        at += (size_t)n;
    if (fd >= 0)
        close(fd);
    return at == N && memcmp(got, data, N) == 0;
}

static void
basics(void)
{
    struct moe_err e = { 0, "" };
    struct moe_out *o;
    struct stat st;

    tap_is_int(write_all("a", false, 0, &e), 0, "a new file %s", e.text);
    tap_ok(holds_data("a"), "its bytes");
    tap_is_int(write_all("a", false, 0, &e), MOE_EEXIST, "again");
    tap_is_str(e.text, "a: exists already", "said so");
    tap_is_int(write_all("a", true, N + 10 * MIB, &e), 0, "by force, with more reserved");
    tap_ok(holds_data("a") && stat("a", &st) == 0 && st.st_blocks * 512 < (off_t)(N + MIB),
        "the rest is given back");
    tap_is_int(moe_out_open("b", false, 0, &o, &e), 0, "begun");
    moe_out_write(o, data, 5, &e);
    tap_ok(moe_out_pos(o) == 5 && !moe_out_is_stream(o), "five bytes so far");
    tap_is_int(scratch_count("."), 2, "a temporary is there");
    moe_out_abort(o);
    tap_is_int(scratch_count("."), 1, "and goes when it is thrown away");
    moe_out_abort(NULL);
    tap_ok(mkdir("d", 0755) == 0, "a directory");
    tap_is_int(moe_out_open("d", true, 0, &o, &e), MOE_EEXIST, "is never replaced by a file");
    tap_is_int(moe_out_open("c/", true, 0, &o, &e), MOE_EIO, "nor is a/ a file");
    tap_is_int(moe_out_open("none/c", false, 0, &o, &e), MOE_EIO, "nor one in no directory");
    rmdir("d");
    moe_out_open("b", false, 0, &o, &e);
    scratch_put("b", "came between");
    tap_is_int(moe_out_commit(o, &e), MOE_EEXIST, "a name that was taken meanwhile");
    tap_ok(scratch_holds("b", "came between"), "stays whose it is");
    unlink("b");
}

static void
links(void)
{
    struct moe_err e = { 0, "" };
    struct stat st;

    mkdir("far", 0755);
    scratch_put("far/file", "old");
    chmod("far/file", 0640);
    tap_ok(symlink("far/file", "link") == 0 && symlink("none", "dangling") == 0, "links");
    tap_is_int(write_all("link", false, 0, &e), MOE_EEXIST, "what a link leads to exists");
    tap_is_int(write_all("link", true, 0, &e), 0, "and is replaced by force");
    tap_ok(lstat("link", &st) == 0 && S_ISLNK(st.st_mode) && holds_data("far/file"),
        "the link stays");
    tap_ok(stat("link", &st) == 0 && (st.st_mode & 0777) == 0640, "permissions too");
    tap_is_int(scratch_count("far"), 1, "nothing else is there");
    tap_is_int(write_all("dangling", true, 0, &e), MOE_EIO, "a link to nothing is refused");
    unlink("dangling");
    unlink("link");
    unlink("far/file");
    rmdir("far");
}

static void
pieces(void)
{
    struct moe_err e = { 0, "" };
    struct moe_out *o;

    /* Out of order, over what is still in the buffer and over what is not. */
    moe_out_open("p", false, 0, &o, &e);
    moe_out_write(o, "........", 8, &e);
    tap_is_int(moe_out_pwrite(o, "ab", 2, 3, &e), 0, "patched");
    moe_out_write(o, "----", 4, &e);
    tap_is_int(moe_out_pwrite(o, "Z", 1, 0, &e), 0, "patched again");
    tap_is_int(moe_out_pwrite(o, "end", 3, 14, &e), 0, "and past the end");
    tap_ok(moe_out_pos(o) == 12, "appended so far");
    tap_is_int(moe_out_pwrite(o, "x", 1, UINT64_MAX, &e), MOE_EIO, "beyond any file");
    tap_is_int(moe_out_write(o, "x", 1, &e), MOE_EIO, "after a failure all fails");
    tap_is_int(moe_out_commit(o, &e), MOE_EIO, "the commit, too");
    tap_ok(access("p", F_OK) != 0, "nothing is there");
    moe_out_open("p", false, 0, &o, &e);
    moe_out_write(o, "........", 8, &e);
    moe_out_pwrite(o, "ab", 2, 3, &e);
    moe_out_write(o, "----", 4, &e);
    moe_out_pwrite(o, "Z", 1, 0, &e);
    moe_out_pwrite(o, "end", 3, 14, &e);
    tap_is_int(moe_out_commit(o, &e), 0, "without the failure");
    tap_ok(truncate("p", 12) == 0 && scratch_holds("p", "Z..ab...----"), "all is in its place");
    unlink("p");
}

/* A named pipe and a device are written as they are. */
static void
streams(void)
{
    struct moe_err e = { 0, "" };
    struct moe_out *o;
    struct stat st;
    char got[6] = "";
    int fd;

    tap_is_int(write_all("/dev/null", false, 0, &e), 0, "a device needs no force");
    tap_ok(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode), "and stays one");
    mkfifo("fifo", 0600);
    fd = open("fifo", O_RDONLY | O_NONBLOCK);
    tap_is_int(moe_out_open("fifo", false, 0, &o, &e), 0, "a named pipe");
    tap_ok(moe_out_is_stream(o), "is a stream");
    tap_ok(moe_out_write(o, "hello", 5, &e) == 0 && moe_out_commit(o, &e) == 0, "written");
    tap_ok(read(fd, got, 5) == 5 && strcmp(got, "hello") == 0, "and read");
    moe_out_open("fifo", false, 0, &o, &e);
    tap_is_int(moe_out_pwrite(o, "x", 1, 0, &e), MOE_EIO, "no pwrite there");
    moe_out_abort(o);
    moe_out_open("fifo", false, 0, &o, &e);
    close(fd);
    moe_out_write(o, "x", 1, &e);
    tap_is_int(moe_out_commit(o, &e), MOE_EIO, "a pipe that nobody reads");
    tap_is_str(e.text, "fifo: Broken pipe", "said so");
    unlink("fifo");
}

/* Standard output, to a file and full. */
static void
to_stdout(void)
{
    struct moe_err e = { 0, "" };
    struct moe_out *o;
    int old = dup(1), rc, full = open("/dev/full", O_WRONLY);

    fflush(stdout);
    if (freopen("copy", "w", stdout) == NULL)
        exit(2);
    rc = write_all("-", false, 12345, &e);
    dup2(old, 1);
    tap_is_int(rc, 0, "standard output");
    tap_ok(holds_data("copy"), "its bytes");
    unlink("copy");
    fflush(stdout);
    dup2(full, 1);
    rc = moe_out_open("-", false, 0, &o, &e);
    rc = rc == 0 ? moe_out_write(o, "x", 1, &e) : rc;
    rc = rc == 0 ? moe_out_commit(o, &e) : rc;
    dup2(old, 1);
    tap_is_int(rc, MOE_EIO, "standard output that is full");
    tap_is_str(e.text, "stdout: No space left on device", "said so");
    close(full);
    close(old);
}

/* ---- Faults -------------------------------------------------------------------------------- */

/* Fail the first call, then the second ... until none is left to fail. */
static void
each_fails(bool force)
{
    int bad = 0, untold = 0, dirt = 0, total = 0;

    for (fail_at = 1;; fail_at++) {
        struct moe_err e = { 0, "" };
        int rc;

        unlink("f");
        if (force)
            scratch_put("f", "old");
        calls = 0;
        fail_with = fail_at % 2 ? EIO : ENOSPC;
        rc = write_all("f", force, N, &e);
        if (calls < fail_at)
            break;
        total++;
        /* The last call syncs the directory: the file is there by then, and that is said. */
        if (strstr(e.text, "is there") != NULL)
            bad += !holds_data("f");
        else
            bad += force ? !scratch_holds("f", "old") : access("f", F_OK) == 0;
        untold += rc != MOE_EIO || e.text[0] == '\0';
        dirt += scratch_count(".") > 2;
    }
    fail_at = 0;
    tap_ok(total >= 7 && holds_data("f"), "%d calls fail in turn (force %d)", total, force);
    tap_is_int(bad, 0, "and leave the old state");
    tap_is_int(untold, 0, "with an error");
    tap_is_int(dirt, 0, "and no temporary");
    unlink("f");
}

static void
interrupted(void)
{
    struct moe_err e = { 0, "" };
    struct moe_out *o;

    fail_with = EINTR;
    for (fail_at = 1; fail_at <= 3; fail_at++) {
        calls = 0;
        tap_ok(write_all("f", true, N, &e) == 0 && holds_data("f"), "interrupted: %s", e.text);
    }
    fail_at = 0;
    moe_stop_set(SIGTERM);
    tap_is_int(write_all("f", true, 0, &e), MOE_ESTOP, "stopped");
    moe_stop_set(0);
    moe_out_open("g", false, 0, &o, &e);
    moe_out_write(o, "x", 1, &e);
    moe_stop_set(SIGTERM);
    tap_is_int(moe_out_commit(o, &e), MOE_ESTOP, "stopped before the commit");
    moe_stop_set(0);
    tap_ok(holds_data("f") && scratch_count(".") == 2, "and nothing is left");
    unlink("f");
}

/* Where renameat2 knows no flags, linking does. */
static void
old_kernel(void)
{
    struct moe_err e = { 0, "" };
    struct moe_out *o;

    fail_with = ENOSYS;
    calls = 0;
    fail_at = 2;    /* fsync, renameat2 */
    moe_out_open("f", false, 0, &o, &e);
    tap_is_int(moe_out_commit(o, &e), 0, "renamed by linking");
    tap_ok(access("f", F_OK) == 0 && scratch_count(".") == 2, "and the temporary is gone");
    calls = 0;
    unlink("f");
    moe_out_open("f", false, 0, &o, &e);
    scratch_put("f", "came between");
    tap_is_int(moe_out_commit(o, &e), MOE_EEXIST, "not over a file");
    calls = 0;
    fail_at = 1;
    unlink("f");
    tap_is_int(write_all("f", false, N, &e), 0, "without fallocate");
    fail_at = 0;
    tap_ok(holds_data("f"), "its bytes");
    unlink("f");
}

/* Killed in the middle: the old file stays, and the next run clears up. */
static void
killed(void)
{
    struct moe_err e = { 0, "" };
    struct moe_out *o;
    int ready[2], status;
    char c;
    pid_t child;

    scratch_put("f", "old");
    if (pipe(ready) != 0 || (child = fork()) < 0)
        exit(2);
    if (child == 0) {
        moe_out_open("f", true, N, &o, NULL);
        for (int i = 0;; i++) {
            moe_out_write(o, data, N, NULL);
            if (i == 2 && write(ready[1], "x", 1) != 1)
                _exit(2);
            if (i >= 2)
                usleep(10000);
        }
    }
    tap_ok(read(ready[0], &c, 1) == 1 && kill(child, SIGKILL) == 0 &&
        waitpid(child, &status, 0) == child && WIFSIGNALED(status), "killed while writing");
    tap_ok(scratch_holds("f", "old"), "the old file stays");
    tap_is_int(scratch_count("."), 3, "a temporary is left");
    tap_is_int(write_all("f", true, 0, &e), 0, "the next run");
    tap_ok(holds_data("f") && scratch_count(".") == 2, "clears up");
    close(ready[0]);
    close(ready[1]);
    unlink("f");
}

/* Run fn in a child that may not change this process; its status. */
static int
in_child(int (*fn)(void))
{
    pid_t child;
    int status;

    fflush(stdout);
    if ((child = fork()) == 0)
        _exit(fn());
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return 255;
    return WEXITSTATUS(status);
}

static int
file_limit(void)
{
    struct rlimit most = { 100000, 100000 };
    struct moe_err e = { 0, "" };

    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &most) != 0)
        return 1;
    if (write_all("f", false, 0, &e) != MOE_EIO || strcmp(e.text, "f: File too large") != 0)
        return 2;
    if (write_all("f", false, N, &e) != MOE_EIO || strstr(e.text, "File too large") == NULL)
        return 3;
    return 0;
}

/* A file system of 1 MiB of our own; 77: this machine allows none. */
static int
full_disk(void)
{
    struct moe_err e = { 0, "" };

    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mkdir("small", 0755) != 0)
        return 77;
    if (mount("tmpfs", "small", "tmpfs", 0, "size=1m") != 0)
        return 77;
    scratch_put("small/f", "old");
    if (write_all("small/f", true, N, &e) != MOE_EIO ||
        strcmp(e.text, "small/f: 3.0 MiB are needed: No space left on device") != 0)
        return 1;
    if (write_all("small/f", true, 0, &e) != MOE_EIO ||
        strcmp(e.text, "small/f: No space left on device") != 0)
        return 2;
    return scratch_holds("small/f", "old") && scratch_count("small") == 1 ? 0 : 3;
}

int
main(void)
{
    int rc;

    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < N; i++)
        data[i] = (unsigned char)(i % 251 ^ i >> 16);
    scratch_enter();
    basics();
    links();
    pieces();
    streams();
    to_stdout();
    each_fails(false);
    each_fails(true);
    interrupted();
    old_kernel();
    killed();
    tap_is_int(in_child(file_limit), 0, "a limit on file sizes");
    tap_is_int(scratch_count("."), 1, "leaves nothing");
    if ((rc = in_child(full_disk)) == 77)
        tap_skip("no right to mount a small file system");
    else
        tap_is_int(rc, 0, "a full disk");
    scratch_leave();
    return tap_done();
}
