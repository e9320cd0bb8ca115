/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the drawing of the progress line. Does not know what the work is.
 */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/num.h"
#include "common/base/progress.h"
#include "common/base/utf8.h"

static const uint64_t FIRST_NS = 1000000000;
static const uint64_t EVERY_NS = 100000000;

/* Columns of the terminal; a longer line would wrap and could not be wiped. */
static size_t
columns(void)
{
    struct winsize w;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 1 ? w.ws_col : 80;
}

static void
draw(const struct moe_progress *p, uint64_t now)
{
    char line[MOE_ERR_TEXT + 128], rate[24], tail[64] = "", share[16] = "";
    double seconds = (double)(now - p->start_ns) / 1e9;
    uint64_t done = p->done;
    double bps = (double)done / seconds;
    size_t cut = 0, limit = columns() - 1;
    struct moe_err what;

    (void)moe_err_set(&what, 0, "%.100s", p->what);
    if (p->total > 0) {
        double part = done < p->total ? (double)done / (double)p->total : 1;

        (void)snprintf(share, sizeof(share), "  %.0f %%", part * 100);
        if (bps > 0 && part < 1) {
            uint64_t left = (uint64_t)((double)(p->total - done) / bps + 0.5);

            (void)snprintf(tail, sizeof(tail), "  %llu:%02llu left", (unsigned long long)left / 60,
                (unsigned long long)left % 60);
        }
    }
    (void)snprintf(line, sizeof(line), "%s%s  %s/s%s", what.text, share,
        moe_num_human(rate, sizeof(rate), (uint64_t)bps), tail);
    for (size_t k, n = strlen(line); cut < n && cut < limit; cut += k)
        if ((k = moe_utf8_len(line + cut, n - cut)) == 0)
            break;
    fprintf(stderr, "\r%.*s\033[K", (int)cut, line);
}

void
moe_progress_start(struct moe_progress *p, const char *what, uint64_t total, bool quiet)
{
    p->what = what;
    p->total = total;
    p->done = 0;
    p->drawn_ns = 0;
    p->start_ns = moe_clock_ns();
    p->on = !quiet && isatty(STDERR_FILENO);
}

void
moe_progress_add(struct moe_progress *p, uint64_t bytes)
{
    uint64_t now, last;

    atomic_fetch_add_explicit(&p->done, bytes, memory_order_relaxed);
    if (!p->on)
        return;
    now = moe_clock_ns();
    last = p->drawn_ns;
    if (now - p->start_ns < FIRST_NS || (last != 0 && now - last < EVERY_NS))
        return;
    /* The one thread that moves drawn_ns draws. */
    if (atomic_compare_exchange_strong(&p->drawn_ns, &last, now))
        draw(p, now);
}

void
moe_progress_end(struct moe_progress *p)
{
    if (p->on && p->drawn_ns != 0)
        fputs("\r\033[K", stderr);
    p->on = false;
}
