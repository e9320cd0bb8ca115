/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns `moe-verify scrub`: reading within a time and at a rate, and what is
 * said of it. The order is scrubplan's, the memory scrubstate's.
 */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmd/moe-verify/verify_box.h"
#include "cmd/moe-verify/verify_file.h"
#include "cmd/moe-verify/verify_list.h"
#include "cmd/moe-verify/verify_scrub.h"
#include "cmd/moe-verify/verify_scrubstate.h"
#include "common/base/clock.h"
#include "common/base/num.h"
#include "common/base/out.h"
#include "common/base/read.h"
#include "common/base/stop.h"
#include "common/base/tool.h"
#include "common/trust/reread.h"

#define PIECE ((size_t)256 << 10)
#define SAVES 200                       /* of the state in a pass, so that < 1 % is lost */
#define SAVE_NS (NS / 5)                /* but not more often than this, for the disk's sake */
#define NS UINT64_C(1000000000)
#define OUT_OF_TIME 1                   /* beside 0 and the MOE_E* */
#define DIFFERS 2

enum { BUDGET = 1, RATE, STATE, PERIOD, HOT, METRICS, PLUGIN, QUIET };

static const struct moe_opt rows[] = {
    { BUDGET, 'b', "budget", MOE_OPT_WORD, "TIME", "stop after 90s, 10m, 2h", NULL, false, false },
    { RATE, 'r', "rate", MOE_OPT_WORD, "SIZE", "read at most so much a second: 200M", NULL, false,
        false },
    { STATE, 's', "state", MOE_OPT_FILE, "FILE", "remember here what was read when", NULL, false,
        false },
    { PERIOD, 'p', "period", MOE_OPT_WORD, "TIME", "all within this; default 7d", NULL, false,
        false },
    { HOT, 0, "hot", MOE_OPT_FILE, "FILE", "patterns of what comes first", NULL, false, false },
    { METRICS, 0, "metrics", MOE_OPT_FILE, "FILE", "write figures for Prometheus", NULL, false,
        false },
    { PLUGIN, 0, "plugin", MOE_OPT_NONE, NULL, "line and status of a monitoring plugin", NULL,
        false, false },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "say nothing when all is well", NULL, false,
        false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[-q] [-b TIME] [-r SIZE] [-s FILE] [-p TIME] LIST ...",
    NULL };

const struct moe_opt_cmd verify_scrub_cmd = {
    "moe-verify scrub", usage, "Check the part of what is listed that has waited longest.", rows,
    NULL
};

struct args {
    const char *state, *hot, *metrics;
    int64_t budget, period;     /* seconds; budget 0: no end */
    uint64_t rate;              /* bytes a second; 0: as fast as it goes */
    bool plugin, quiet;
};

/* What the lists name, and the file that is open. */
struct scrub {
    const struct args *a;
    struct verify_list v;
    struct moe_scrubplan_unit *u;   /* [v.n] */
    struct moe_scrubplan plan;
    struct verify_scrubstate state;
    struct verify_box box;
    const char *open;               /* whose box and fd these are, or NULL */
    int fd;
    struct stat st;
    unsigned char *buf;
    struct moe_digest d;
    uint64_t start, read, saved, saved_ns, total;
    size_t well, differ, troubles, overdue, left;
};

static int
seconds(const char *s, const char *what, int64_t *out, struct moe_err *e)
{
    static const struct { char unit; int64_t s; } units[] = { { 's', 1 }, { 'm', 60 },
        { 'h', 3600 }, { 'd', 86400 }, { 'w', 604800 } };
    size_t n = strlen(s);
    char digits[16];

    for (size_t i = 0; n > 1 && n <= sizeof(digits) && i < sizeof(units) / sizeof(units[0]); i++) {
        if (s[n - 1] != units[i].unit)
            continue;
        memcpy(digits, s, n - 1);
        digits[n - 1] = '\0';
        if (moe_num_int(digits, 1, INT32_MAX, what, out, e) != 0)
            return e->code;
        *out *= units[i].s;
        return 0;
    }
    return moe_err_set(e, MOE_EUSAGE, "%s: %s: is no time such as 90s, 10m, 2h, 7d", what, s);
}

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;

    switch (id) {
    case BUDGET: return seconds(arg, "--budget", &a->budget, e);
    case RATE: return moe_num_size(arg, PIECE, UINT64_C(1) << 50, "--rate", &a->rate, e);
    case STATE: a->state = arg; break;
    case PERIOD: return seconds(arg, "--period", &a->period, e);
    case HOT: a->hot = arg; break;
    case METRICS: a->metrics = arg; break;
    case PLUGIN: a->plugin = true; break;
    default: a->quiet = true;
    }
    return 0;
}

/* ---- Reading ------------------------------------------------------------------------- */

static bool
out_of_time(const struct scrub *s)
{
    return s->a->budget > 0 && moe_clock_ns() - s->start >= (uint64_t)s->a->budget * NS;
}

/* Sleep as long as the bytes read so far are more than the rate allows, but not past the budget. */
static int
pace(const struct scrub *s, struct moe_err *e)
{
    while (s->a->rate > 0 && !out_of_time(s)) {
        double due = (double)s->read / (double)s->a->rate;
        double ahead = due - (double)(moe_clock_ns() - s->start) / (double)NS;
        struct timespec nap = { 0, 0 };
        int rc = moe_stop_check(e);
        if (rc != 0)
            return rc;
        if (ahead <= 0)
            break;
        nap.tv_nsec = ahead > 0.1 ? 100000000L : (long)(ahead * 1e9);
        (void)nanosleep(&nap, NULL);
    }
    return moe_stop_check(e);
}

static void
close_file(struct scrub *s)
{
    verify_box_close(&s->box);
    if (s->fd >= 0)
        (void)close(s->fd);
    s->fd = -1;
    s->open = NULL;
}

/* Have the file of line l open, with its header if a tensor is asked for. */
static int
open_file(struct scrub *s, const struct moe_sumlist_line *l, struct moe_err *e)
{
    if (s->open != NULL && strcmp(s->open, l->name) == 0 &&
        (l->tensor == NULL || s->box.t != NULL))
        return 0;
    close_file(s);
    if ((s->fd = verify_file_open(l->name, e)) < 0)
        return s->fd;
    if (fstat(s->fd, &s->st) != 0)
        return moe_err_set(e, MOE_EIO, "%s: cannot be looked at", l->name);
    s->open = l->name;
    return l->tensor != NULL ? verify_box_open(&s->box, s->fd, l->name, e) : 0;
}

/* Where the bytes of line l lie; DIFFERS if the tensor is not as listed. */
static int
place(const struct scrub *s, const struct moe_sumlist_line *l, uint64_t *at, uint64_t *len,
    struct moe_err *e)
{
    const struct verify_tensor *t;
    struct moe_buf shape = MOE_BUF_INIT;
    bool same;

    *at = 0;
    *len = (uint64_t)s->st.st_size;
    if (l->tensor == NULL)
        return 0;
    if ((t = verify_box_find(&s->box, l->tensor)) == NULL)
        return moe_err_set(e, MOE_ENOENT, "%s: %s: no such tensor", l->name, l->tensor);
    verify_box_shape(&shape, t);
    same = !shape.bad && strcmp(t->type, l->type) == 0 && strcmp(shape.p, l->shape) == 0;
    moe_buf_fini(&shape);
    *at = t->at;
    *len = t->len;
    return same ? 0 : DIFFERS;
}

/* Read [at, at + len) in time. */
static int
digest(struct scrub *s, const char *name, uint64_t at, uint64_t len,
    unsigned char *sum, struct moe_err *e)
{
    int rc = moe_digest_begin(&s->d, e);

    while (rc == 0 && len > 0) {
        size_t k = len < PIECE ? (size_t)len : PIECE;
        if (out_of_time(s))
            return OUT_OF_TIME;
        if ((rc = moe_read_at(s->fd, name, s->buf, k, at, e)) != 0)
            break;
        moe_digest_add(&s->d, s->buf, k);
        s->read += k;
        at += k;
        len -= k;
        rc = pace(s, e);
    }
    return rc == 0 ? moe_digest_end(&s->d, sum, e) : rc;
}

/* ---- Verdicts ------------------------------------------------------------------------ */

static int
failed(struct scrub *s, const struct moe_sumlist_line *l, const char *why, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc = 0;

    s->differ++;
    moe_buf_show(&b, l->name, strlen(l->name));
    if (l->tensor != NULL) {
        moe_buf_str(&b, ": ");
        moe_buf_show(&b, l->tensor, strlen(l->tensor));
    }
    moe_buf_fmt(&b, ": FAILED (%s)\n", why);
    if (b.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    else if (!s->a->plugin && fwrite(b.p, 1, b.len, stdout) != b.len)
        rc = moe_err_set(e, MOE_EIO, "standard output");
    moe_buf_fini(&b);
    return rc;
}

/* Read unit i; 0, OUT_OF_TIME or what ends the run. */
static int
unit(struct scrub *s, size_t i, struct moe_err *e)
{
    const struct moe_sumlist_line *l = &s->v.l[i];
    unsigned char sum[MOE_DIGEST_LEN];
    uint64_t at = 0, len = 0;
    enum moe_reread why;
    int rc = open_file(s, l, e);

    if (rc == 0)
        rc = place(s, l, &at, &len, e);
    if (rc == DIFFERS) {
        rc = failed(s, l, "type or shape", e);
        moe_scrubplan_tell(&s->plan, i, false, 0);
        return rc;
    }
    if (rc == 0)
        rc = digest(s, l->name, at, len, sum, e);
    if (rc == 0 && memcmp(sum, l->sum, sizeof(sum)) == 0) {
        s->well++;
        moe_scrubplan_tell(&s->plan, i, true, (int64_t)time(NULL));
        return 0;
    }
    if (rc == 0 && (rc = moe_reread_judge(s->fd, l->name, at, len, l->sum, &s->st, &why, e)) == 0)
        rc = failed(s, l, moe_reread_name(why), e);
    else if (rc == MOE_ENOENT)
        rc = failed(s, l, "missing", e);
    else if (rc < 0 && rc != MOE_ESTOP && rc != MOE_ENOMEM) {
        moe_tool_warn("%s", e->text);
        s->troubles++;
        close_file(s);
        rc = 0;
    }
    if (rc == 0)
        moe_scrubplan_tell(&s->plan, i, false, 0);
    return rc;
}

static int
pass(struct scrub *s, struct moe_err *e)
{
    size_t i;
    int rc = 0, saved;

    while (rc == 0 && !out_of_time(s) &&
        (i = moe_scrubplan_next(&s->plan)) != MOE_SCRUBPLAN_NONE) {
        rc = unit(s, i, e);
        if (rc == 0 && s->read - s->saved >= s->total / SAVES &&
            moe_clock_ns() - s->saved_ns >= SAVE_NS) {
            s->saved = s->read;
            s->saved_ns = moe_clock_ns();
            rc = verify_scrubstate_save(&s->state, s->u, e);
        }
    }
    if (rc == OUT_OF_TIME)
        rc = 0;
    if (rc == 0 || rc == MOE_ESTOP) {
        saved = verify_scrubstate_save(&s->state, s->u, rc == 0 ? e : NULL);
        rc = rc == 0 ? saved : rc;
    }
    return rc;
}

/* ---- Before and after ---------------------------------------------------------------- */

/* Patterns, one a line; a unit is hot if its tensor or its file matches one. */
static int
heat(struct scrub *s, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc = moe_read_file(s->a->hot, (size_t)64 << 20, &b, e);

    for (char *p = b.p, *end; rc == 0 && p != NULL && *p != '\0'; p = end) {
        end = p + strcspn(p, "\n");
        if (*end == '\n')
            *end++ = '\0';
        for (size_t i = 0; i < s->v.n && *p != '\0' && *p != '#'; i++) {
            const struct moe_sumlist_line *l = &s->v.l[i];
            if (!s->u[i].hot && fnmatch(p, l->tensor != NULL ? l->tensor : l->name, 0) == 0)
                s->u[i].hot = true;
        }
    }
    moe_buf_fini(&b);
    return rc;
}

static int
prepare(struct scrub *s, char *const *lists, int n, struct moe_err *e)
{
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++)
        rc = verify_list_read(&s->v, lists[i], false, e);
    if (rc == 0 && s->v.bad > 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%zu lines are none of a list", s->v.bad);
    if (rc != 0)
        return rc;
    s->u = calloc(s->v.n + 1, sizeof(*s->u));
    s->buf = malloc(PIECE);
    if (s->u == NULL || s->buf == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < s->v.n; i++) {
        struct stat st;
        bool same = i > 0 && strcmp(s->v.l[i].name, s->v.l[i - 1].name) == 0;
        s->u[i].group = i == 0 ? 0 : s->u[i - 1].group + !same;
        if (!same && stat(s->v.l[i].name, &st) == 0 && S_ISREG(st.st_mode))
            s->total += (uint64_t)st.st_size;
    }
    if (s->a->hot != NULL && (rc = heat(s, e)) != 0)
        return rc;
    return verify_scrubstate_open(&s->state, s->a->state, s->v.l, s->u, s->v.n, e);
}

static void
count(struct scrub *s)
{
    int64_t now = (int64_t)time(NULL);

    for (size_t i = 0; i < s->v.n; i++) {
        s->overdue += now - s->u[i].last >= s->a->period;
        s->left += s->u[i].suspect;
    }
}

static int
metrics(const struct scrub *s, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_out *out = NULL;
    int rc;
    const struct { const char *name, *help; uint64_t v; } m[] = {
        { "parts", "Parts that are listed", s->v.n },
        { "well", "Parts found as listed in the last run", s->well },
        { "differing", "Parts found different or missing in the last run", s->differ },
        { "troubles", "Parts that could not be read in the last run", s->troubles },
        { "suspects", "Parts that were not well when last read", s->left },
        { "overdue", "Parts that have waited longer than the period", s->overdue },
        { "read_bytes", "Bytes read in the last run", s->read },
        { "finished_timestamp_seconds", "When the last run ended", (uint64_t)time(NULL) },
    };

    for (size_t i = 0; i < sizeof(m) / sizeof(m[0]); i++)
        moe_buf_fmt(&b, "# HELP moe_scrub_%s %s.\n# TYPE moe_scrub_%s gauge\nmoe_scrub_%s %"
            PRIu64 "\n", m[i].name, m[i].help, m[i].name, m[i].name, m[i].v);
    if (b.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    else if ((rc = moe_out_open(s->a->metrics, true, 0, &out, e)) == 0) {
        if ((rc = moe_out_write(out, b.p, b.len, e)) == 0)
            rc = moe_out_commit(out, e);
        else
            moe_out_abort(out);
    }
    moe_buf_fini(&b);
    return rc;
}

/* The one line, and the status: of a plugin 0 OK, 1 WARNING, 2 CRITICAL; else the house's. */
static int
conclude(struct scrub *s, struct moe_err *e)
{
    char size[16];
    int rc, status = s->troubles > 0 ? MOE_EXIT_TROUBLE : s->differ > 0 ? MOE_EXIT_NO : 0;

    count(s);
    if (s->a->metrics != NULL && (rc = metrics(s, e)) != 0)
        return rc;
    if (s->a->plugin)
        status = s->troubles + s->differ + s->left > 0 ? 2 : s->overdue > 0;
    if (s->a->quiet && !s->a->plugin && status == 0)
        return 0;
    (void)printf("%s%zu of %zu parts read (%s): %zu as listed, %zu differ, %zu unreadable; "
        "%zu overdue", s->a->plugin ? status == 2 ? "SCRUB CRITICAL: " : status == 1 ?
        "SCRUB WARNING: " : "SCRUB OK: " : "", s->well + s->differ + s->troubles, s->v.n,
        moe_num_human(size, sizeof(size), s->read), s->well, s->differ, s->troubles, s->overdue);
    if (s->a->plugin)
        (void)printf(" | read=%" PRIu64 "B differ=%zu overdue=%zu", s->read, s->differ,
            s->overdue);
    (void)printf("\n");
    return status;
}

int
verify_scrub(int argc, char **argv, struct moe_err *e)
{
    struct args a = { .period = 7 * 86400 };
    struct scrub s = { .a = &a, .v = VERIFY_LIST_INIT, .plan = MOE_SCRUBPLAN_INIT,
        .state = VERIFY_SCRUBSTATE_INIT, .box = VERIFY_BOX_INIT, .fd = -1,
        .d = MOE_DIGEST_INIT, .start = moe_clock_ns() };
    bool helped = false;
    int first, rc = moe_opt_parse(&verify_scrub_cmd, argc, argv, option, &a, &first, &helped, e);

    if (rc != 0 || helped)
        return rc;
    if (first >= argc)
        return moe_err_set(e, MOE_EUSAGE, "which list?");
    if ((rc = prepare(&s, argv + first, argc - first, e)) == 0 &&
        (rc = moe_scrubplan_init(&s.plan, s.u, s.v.n, a.period, (int64_t)time(NULL), e)) == 0 &&
        (rc = pass(&s, e)) == 0)
        rc = conclude(&s, e);
    close_file(&s);
    moe_digest_fini(&s.d);
    moe_scrubplan_fini(&s.plan);
    verify_scrubstate_close(&s.state);
    verify_list_fini(&s.v);
    free(s.u);
    free(s.buf);
    return rc;
}
