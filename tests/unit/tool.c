/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end of a program, each case in a child of its own. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/stop.h"
#include "common/base/tool.h"
#include "tests/tap.h"

/* What a child of case `n` does; its value is the exit status. */
static int
child(int n)
{
    struct moe_err e = { 0, "" };
    int rc = 0;

    moe_tool_start("moe-x");
    switch (n) {
    case 0: printf("data\n"); break;
    case 1: rc = 1; break;
    case 2: rc = moe_err_set(&e, MOE_EFORMAT, "f: a\nb"); break;
    case 3: rc = moe_err_set(&e, MOE_EUSAGE, "no SRC"); break;
    case 4: (void)freopen("/dev/full", "w", stdout); printf("data\n"); break;
    case 5: (void)close(1); break;
    case 6: (void)close(1); printf("data\n"); break;
    case 7:
        (void)raise(SIGTERM);
        rc = moe_stop_check(&e);
        break;
    case 8: (void)raise(SIGINT); (void)raise(SIGINT); break;
    case 9: (void)raise(SIGPIPE); break;
    case 10: (void)raise(SIGTERM); break;
    default:
        (void)signal(SIGHUP, SIG_IGN);
        moe_tool_start("moe-x");
        (void)raise(SIGHUP);
        rc = moe_stop_check(&e);
        break;
    }
    return moe_tool_end(rc, &e);
}

static void
check(int n, int status, int sig, const char *err, const char *what)
{
    char got[256];
    ssize_t k, len = 0;
    int fds[2], st = 0;
    pid_t pid;

    fflush(stdout);
    if (pipe(fds) != 0 || (pid = fork()) < 0) {
        tap_ok(false, "%s: no child", what);
        return;
    }
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);

        (void)dup2(null, 1);
        (void)dup2(fds[1], 2);
        _exit(child(n));
    }
    (void)close(fds[1]);
    while ((k = read(fds[0], got + len, sizeof(got) - 1 - (size_t)len)) > 0)
        len += k;
    got[len] = '\0';
    (void)close(fds[0]);
    (void)waitpid(pid, &st, 0);
    tap_is_str(got, err, "%s: words", what);
    if (sig != 0)
        tap_ok(WIFSIGNALED(st) && WTERMSIG(st) == sig, "%s: ends by signal %d", what, sig);
    else
        tap_ok(WIFEXITED(st) && WEXITSTATUS(st) == status, "%s: status %d", what, status);
}

int
main(void)
{
    check(0, 0, 0, "", "done");
    check(1, 1, 0, "", "the answer is no");
    check(2, 2, 0, "moe-x: f: a\\x0ab\n", "bad input");
    check(3, 2, 0, "moe-x: no SRC (try moe-x --help)\n", "usage");
    check(4, 2, 0, "moe-x: standard output: No space left on device\n", "a full disk");
    check(5, 0, 0, "", "stdout closed and not used");
    check(6, 2, 0, "moe-x: standard output: Bad file descriptor\n", "stdout closed and used");
    check(7, 0, SIGTERM, "moe-x: stopped by SIGTERM\n", "stopped");
    check(8, 0, SIGINT, "", "the second signal ends at once");
    check(9, 0, 0, "", "SIGPIPE is ignored");
    check(10, 0, 0, "", "a signal after the work changes nothing");
    check(11, 0, 0, "", "an ignored SIGHUP stays ignored");
    return tap_done();
}
