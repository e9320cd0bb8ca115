/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line, drawn on a pseudo-terminal. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/base/progress.h"
#include "tests/tap.h"

static const uint64_t SECOND = 1000000000;

/* What has been written to the terminal since the last call. */
static const char *
drawn(int master)
{
    static char text[1024];
    ssize_t n = read(master, text, sizeof(text) - 1);

    text[n > 0 ? n : 0] = '\0';
    return text;
}

int
main(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK), slave, err = dup(2);
    struct winsize size = { 24, 60, 0, 0 };
    struct moe_progress p;
    const char *s;

    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 ||
        (slave = open(ptsname(master), O_RDWR | O_NOCTTY)) < 0) {
        tap_skip("no pseudo-terminal");
        return tap_done();
    }
    (void)ioctl(slave, TIOCSWINSZ, &size);
    moe_progress_start(&p, "x", 1000, false);
    p.start_ns -= 2 * SECOND;
    moe_progress_add(&p, 500);
    moe_progress_end(&p);
    tap_ok(!p.on && p.done == 500 && p.drawn_ns == 0, "not a terminal: counted, not drawn");

    (void)dup2(slave, 2);
    moe_progress_start(&p, "x", 1000, true);
    tap_ok(!p.on, "quiet");
    moe_progress_start(&p, "quant\n", (uint64_t)1000 << 20, false);
    moe_progress_add(&p, 1 << 20);
    tap_is_str(drawn(master), "", "nothing in the first second");
    p.start_ns -= 200 * SECOND;
    moe_progress_add(&p, 499 << 20);
    s = drawn(master);
    tap_ok(strncmp(s, "\rquant\\x0a  50 %  2.5 MiB/s  3:20 left", 37) == 0, "the line: '%s'", s);
    moe_progress_add(&p, 1);
    tap_is_str(drawn(master), "", "not redrawn at once");
    p.drawn_ns -= SECOND / 5;
    moe_progress_add(&p, 500 << 20);
    s = drawn(master);
    tap_ok(strstr(s, "100 %") != NULL && strstr(s, "left") == NULL, "all done: '%s'", s);
    moe_progress_end(&p);
    tap_is_str(drawn(master), "\r\033[K", "wiped at the end");

    moe_progress_start(&p, "a name that is much too long for a terminal of sixty columns", 0,
        false);
    p.start_ns -= 2 * SECOND;
    moe_progress_add(&p, 1 << 20);
    s = drawn(master);
    tap_is_int((long long)strlen(s), 1 + 59 + 3, "cut to the width");
    moe_progress_end(&p);
    (void)dup2(err, 2);
    return tap_done();
}
