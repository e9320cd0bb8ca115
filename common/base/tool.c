/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns what a program's main does at its start and end: signals, the line on
 * stderr, the exit status. The only file of the library that writes to stderr
 * beside progress.c; only main calls it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

#include "common/base/stop.h"
#include "common/base/tool.h"

/* Set once by main, before any thread. */
static const char *name = "moe";

static void
on_signal(int sig)
{
    moe_stop_set(sig);
}

/*
 * A standard descriptor that was closed would be given to the first file opened, and words or data
 * would go into it. It is taken up by one that can do neither, whose use is the error it should be.
 */
static void
keep_standard(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}

void
moe_tool_start(const char *program)
{
    static const int stops[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction sa, old;

    name = program;
    keep_standard();
    memset(&sa, 0, sizeof(sa));
    sigemptyset(&sa.sa_mask);
    sa.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &sa, NULL);
    /* A limit on file sizes is then an error of write() like a full disk. */
    (void)sigaction(SIGXFSZ, &sa, NULL);
    /* Without SA_RESTART a blocked read returns; a second signal ends at once. */
    sa.sa_handler = on_signal;
    sa.sa_flags = SA_RESETHAND;
    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++)
        if (sigaction(stops[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            (void)sigaction(stops[i], &sa, NULL);
}

void
moe_tool_warn(const char *fmt, ...)
{
    char raw[MOE_ERR_TEXT];
    struct moe_err line;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(raw, sizeof(raw), fmt, ap);
    va_end(ap);
    (void)moe_err_set(&line, 0, "%s", raw);
    /* On a terminal a progress line may stand there. */
    fprintf(stderr, "%s%s: %s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", name, line.text);
}

/* Flush and close stdout. A descriptor that was closed from the start is no error unless used. */
static bool
close_stdout(void)
{
    bool used = __fpending(stdout) != 0, bad = ferror(stdout) != 0;

    errno = 0;
    if (fclose(stdout) != 0)
        bad = bad || used || errno != EBADF;
    return !bad;
}

int
moe_tool_end(int rc, const struct moe_err *e)
{
    if (rc == MOE_EUSAGE)
        moe_tool_warn("%s (try %s --help)", e->text, name);
    else if (rc < 0)
        moe_tool_warn("%s", e->text);
    if (!close_stdout()) {
        int sys = errno;

        if (rc >= 0)
            moe_tool_warn("standard output: %s", sys != 0 ? strerror(sys) : "write failed");
        rc = rc < 0 ? rc : MOE_EIO;
    }
    if (rc == MOE_ESTOP && moe_stop_signal() != 0) {
        (void)signal(moe_stop_signal(), SIG_DFL);
        (void)raise(moe_stop_signal());
    }
    return rc == MOE_EXIT_YES || rc == MOE_EXIT_NO ? rc : MOE_EXIT_TROUBLE;
}
