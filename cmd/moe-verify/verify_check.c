/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns `moe-verify check`: what each line of a list turns out to be, and the
 * verdict over all of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/moe-verify/verify_box.h"
#include "cmd/moe-verify/verify_check.h"
#include "cmd/moe-verify/verify_file.h"
#include "cmd/moe-verify/verify_list.h"
#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/base/pool.h"
#include "common/base/stop.h"
#include "common/base/tool.h"
#include "common/trust/digestq.h"

#define NOT_AS_LISTED (-100)        /* a job's result beside the MOE_E*: another type or shape */

enum { JSON = 1, ZERO, THREADS, QUIET, STATUS, IGNORE_MISSING, STRICT };

static const struct moe_opt rows[] = {
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "print JSON Lines", NULL, false, false },
    { ZERO, 'z', "zero", MOE_OPT_NONE, NULL, "records end in NUL, names are not escaped", NULL,
        false, false },
    { THREADS, 'j', "threads", MOE_OPT_WORD, "N", "threads; default: the processors", NULL,
        false, false },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "no line for what is as listed", NULL, false,
        false },
    { STATUS, 0, "status", MOE_OPT_NONE, NULL, "no output, only the exit status", NULL, false,
        false },
    { IGNORE_MISSING, 0, "ignore-missing", MOE_OPT_NONE, NULL, "pass over files that are missing",
        NULL, false, false },
    { STRICT, 0, "strict", MOE_OPT_NONE, NULL, "a bad line is an error (always so)", NULL, false,
        false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = {
    "[-qz] [-j N] [--json] [--status] [LIST ...]", NULL
};

const struct moe_opt_cmd verify_check_cmd = {
    "moe-verify check", usage, "Compare files and tensors with lists of digests.", rows, NULL
};

struct args {
    bool json, zero;
    bool quiet;             /* no line for what is fine; no progress */
    bool status;            /* nothing on stdout */
    bool ignore_missing;    /* a missing file is no answer */
    int threads;            /* 0: as many as there are processors */
};

enum verdict { OK, DIFFERS, MISSING, UNREADABLE, VERDICTS };

struct check {
    const struct args *o;
    struct moe_pool *pool;
    const char *list;                       /* that is checked */
    const struct moe_sumlist_line *lines;   /* of the queue that runs */
    struct moe_digestq_job *jobs;           /* likewise */
    const struct verify_box *box;           /* whose tensors the lines name, or NULL */
    struct moe_buf out;
    bool silent;                            /* no progress */
    size_t count[VERDICTS], bad_lines, bad_lists;
};

/* "NAME: OK", or "FILE: TENSOR: OK". */
static void
text_line(struct check *c, const struct moe_sumlist_line *l, enum verdict v)
{
    static const char *const words[VERDICTS] = { "OK", "FAILED", "FAILED open or read",
        "FAILED open or read" };

    moe_buf_show(&c->out, l->name, strlen(l->name));
    if (l->tensor != NULL) {
        moe_buf_str(&c->out, ": ");
        moe_buf_show(&c->out, l->tensor, strlen(l->tensor));
    }
    moe_buf_fmt(&c->out, ": %s\n", words[v]);
}

static void
json_line(struct check *c, const struct moe_sumlist_line *l, enum verdict v,
    const unsigned char *sum)
{
    static const char *const words[VERDICTS] = { "ok", "differs", "missing", "unreadable" };
    struct moe_jsonw w = { &c->out, false };
    char hex[MOE_DIGEST_HEX];

    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "list");
    moe_jsonw_str(&w, c->list, strlen(c->list));
    moe_jsonw_key(&w, "line");
    moe_jsonw_uint(&w, l->number);
    moe_jsonw_key(&w, "file");
    moe_jsonw_str(&w, l->name, strlen(l->name));
    if (l->tensor != NULL) {
        moe_jsonw_key(&w, "tensor");
        moe_jsonw_str(&w, l->tensor, strlen(l->tensor));
    }
    moe_jsonw_key(&w, "verdict");
    moe_jsonw_str(&w, words[v], strlen(words[v]));
    moe_jsonw_key(&w, "listed");
    moe_jsonw_str(&w, moe_digest_hex(l->sum, hex), MOE_DIGEST_HEX - 1);
    moe_jsonw_key(&w, "sha256");
    if (sum != NULL)
        moe_jsonw_str(&w, moe_digest_hex(sum, hex), MOE_DIGEST_HEX - 1);
    else
        moe_jsonw_null(&w);
    moe_jsonw_close(&w, '}');
    moe_buf_byte(&c->out, '\n');
}

/* Count and print what line l is. sum: the digest that was found, or NULL. */
static int
judge(struct check *c, const struct moe_sumlist_line *l, enum verdict v,
    const unsigned char *sum, struct moe_err *e)
{
    if (v == MISSING && c->o->ignore_missing)
        return 0;
    c->count[v]++;
    if (c->o->status || (v == OK && c->o->quiet))
        return 0;
    moe_buf_clear(&c->out);
    if (c->o->json)
        json_line(c, l, v, sum);
    else
        text_line(c, l, v);
    if (c->out.bad)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    if (fwrite(c->out.p, 1, c->out.len, stdout) != c->out.len)
        return moe_err_set(e, MOE_EIO, "standard output");
    return 0;
}

/* A line whose bytes could not be had; rc and e say why. */
static int
judge_failed(struct check *c, const struct moe_sumlist_line *l, int rc, struct moe_err *e)
{
    enum verdict v = rc == MOE_ENOENT ? MISSING : UNREADABLE;

    if (rc == MOE_ESTOP || rc == MOE_ENOMEM)
        return rc;
    if (!(v == MISSING && (c->o->ignore_missing || c->o->status)))
        moe_tool_warn("%s", e->text);
    return judge(c, l, v, NULL, e);
}

static int
done(void *ctx, size_t i, struct moe_err *e)
{
    struct check *c = ctx;
    const struct moe_digestq_job *j = &c->jobs[i];
    const struct moe_sumlist_line *l = &c->lines[i];

    if (j->rc == NOT_AS_LISTED) {
        moe_tool_warn("%s", e->text);
        return judge(c, l, DIFFERS, NULL, e);
    }
    if (j->rc != 0)
        return judge_failed(c, l, j->rc, e);
    return judge(c, l, memcmp(j->sum, l->sum, sizeof(l->sum)) == 0 ? OK : DIFFERS, j->sum, e);
}

static int
run(struct check *c, const struct moe_sumlist_line *l, struct moe_digestq_job *jobs, size_t n,
    uint64_t total, int (*open)(void *ctx, size_t i, struct moe_err *e), struct moe_err *e)
{
    struct moe_progress progress;
    struct moe_digestq q = { jobs, n, open, done, c, &progress };
    int rc;

    c->lines = l;
    c->jobs = jobs;
    moe_progress_start(&progress, "check", total, c->silent);
    rc = moe_digestq_run(&q, c->pool, e);
    moe_progress_end(&progress);
    return rc;
}

static int
open_line(void *ctx, size_t i, struct moe_err *e)
{
    struct check *c = ctx;

    if (strcmp(c->lines[i].name, "-") == 0)
        return moe_err_set(e, MOE_EIO, "-: standard input is the list");
    return verify_file_open(c->lines[i].name, e);
}

/* Lines that name whole files. */
static int
check_files(struct check *c, const struct moe_sumlist_line *l, size_t n, struct moe_err *e)
{
    struct moe_digestq_job *jobs = calloc(n, sizeof(*jobs));
    bool in_is_list = strcmp(c->list, "-") == 0;
    uint64_t total = 0;
    struct stat st;
    int rc;

    if (jobs == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        bool in = strcmp(l[i].name, "-") == 0 && !in_is_list;
        jobs[i] = (struct moe_digestq_job){ .name = l[i].name, .fd = in ? STDIN_FILENO : -1,
            .at = in ? MOE_DIGESTQ_HERE : 0, .len = MOE_DIGESTQ_REST };
        if (!in && !c->silent && stat(l[i].name, &st) == 0 && S_ISREG(st.st_mode))
            total += (uint64_t)st.st_size;
    }
    rc = run(c, l, jobs, n, total, open_line, e);
    free(jobs);
    return rc;
}

/* Instead of opening: a line whose tensor is not there, or is another thing by that name. */
static int
no_tensor(void *ctx, size_t i, struct moe_err *e)
{
    struct check *c = ctx;
    const struct moe_sumlist_line *l = &c->lines[i];
    const struct verify_tensor *t = verify_box_find(c->box, l->tensor);
    struct moe_buf shape = MOE_BUF_INIT;
    int rc;

    if (t == NULL)
        return moe_err_set(e, MOE_ENOENT, "%s: %s: no such tensor", l->name, l->tensor);
    verify_box_shape(&shape, t);
    rc = moe_err_set(e, NOT_AS_LISTED, "%s: %s: is %s %s, listed as %s %s", l->name, l->tensor,
        t->type, shape.bad ? "" : shape.p, l->type, l->shape);
    moe_buf_fini(&shape);
    return rc;
}

/* The tensor that line l names, if it has the type and the shape that are listed. */
static const struct verify_tensor *
listed_tensor(const struct verify_box *box, const struct moe_sumlist_line *l)
{
    const struct verify_tensor *t = verify_box_find(box, l->tensor);
    struct moe_buf shape = MOE_BUF_INIT;

    if (t == NULL)
        return NULL;
    verify_box_shape(&shape, t);
    if (shape.bad || strcmp(t->type, l->type) != 0 || strcmp(shape.p, l->shape) != 0)
        t = NULL;
    moe_buf_fini(&shape);
    return t;
}

/* Lines of tensors of one open file. */
static int
check_box(struct check *c, int fd, const struct verify_box *box,
    const struct moe_sumlist_line *l, size_t n, struct moe_err *e)
{
    struct moe_digestq_job *jobs = calloc(n, sizeof(*jobs));
    uint64_t total = 0;
    int rc;

    if (jobs == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        const struct verify_tensor *t = listed_tensor(box, &l[i]);
        jobs[i].name = l[i].name;
        jobs[i].fd = t != NULL ? fd : -1;
        jobs[i].at = t != NULL ? t->at : 0;
        jobs[i].len = t != NULL ? t->len : 0;
        total += jobs[i].len;
    }
    c->box = box;
    rc = run(c, l, jobs, n, total, no_tensor, e);
    c->box = NULL;
    free(jobs);
    return rc;
}

/* Lines of tensors of one file; what fails for the file fails for each of them. */
static int
check_tensors(struct check *c, const struct moe_sumlist_line *l, size_t n, struct moe_err *e)
{
    struct verify_box box = VERIFY_BOX_INIT;
    int fd, rc, code;

    if (strcmp(l[0].name, "-") == 0)
        fd = moe_err_set(e, MOE_EUNSUP, "-: tensors of standard input are not checked");
    else
        fd = verify_file_open(l[0].name, e);
    code = fd < 0 ? fd : verify_box_open(&box, fd, l[0].name, e);
    if (code == 0) {
        rc = check_box(c, fd, &box, l, n, e);
    } else if (code == MOE_ESTOP || code == MOE_ENOMEM) {
        rc = code;
    } else {
        if (code != MOE_ENOENT || !(c->o->ignore_missing || c->o->status))
            moe_tool_warn("%s", e->text);
        rc = 0;
        for (size_t i = 0; i < n && rc == 0; i++)
            rc = judge(c, &l[i], code == MOE_ENOENT ? MISSING : UNREADABLE, NULL, e);
    }
    verify_box_close(&box);
    if (fd >= 0)
        (void)close(fd);
    return rc;
}

/* Lines that go together: files, or tensors of one file. */
static size_t
together(const struct moe_sumlist_line *l, size_t n)
{
    size_t k = 1;

    while (k < n && (l[0].tensor == NULL ? l[k].tensor == NULL :
        l[k].tensor != NULL && strcmp(l[k].name, l[0].name) == 0))
        k++;
    return k;
}

static int
check_list(struct check *c, const char *path, struct moe_err *e)
{
    struct verify_list v = VERIFY_LIST_INIT;
    int rc = verify_list_read(&v, path, c->o->zero, e);

    c->list = path;
    for (size_t i = 0, k; i < v.n && rc == 0; i += k) {
        k = together(v.l + i, v.n - i);
        rc = v.l[i].tensor == NULL ? check_files(c, v.l + i, k, e) :
            check_tensors(c, v.l + i, k, e);
        if (rc == 0)
            rc = moe_stop_check(e);
    }
    c->bad_lines += v.bad;
    verify_list_fini(&v);
    return rc;
}

/* One line on stderr that sums up what is not as it should be. */
static void
sum_up(const struct check *c, size_t all)
{
    if (c->o->status || (all == c->count[OK] && c->bad_lines == 0))
        return;
    moe_tool_warn("of %zu listed: %zu as listed, %zu differ, %zu missing, %zu unreadable; "
        "%zu bad lines", all, c->count[OK], c->count[DIFFERS], c->count[MISSING],
        c->count[UNREADABLE], c->bad_lines);
}

/* Trouble wins over "no", and nothing checked is trouble. */
static int
conclude(const struct check *c, struct moe_err *e)
{
    size_t all = 0;

    for (int v = 0; v < VERDICTS; v++)
        all += c->count[v];
    sum_up(c, all);
    if (c->bad_lists > 0 || c->bad_lines > 0 || c->count[UNREADABLE] > 0)
        return MOE_EXIT_TROUBLE;
    if (all == 0)
        return moe_err_set(e, MOE_EFORMAT, "no file was checked");
    return c->count[DIFFERS] + c->count[MISSING] > 0 ? MOE_EXIT_NO : MOE_EXIT_YES;
}

static int
check_all(const struct args *o, char *const *operands, int n, struct moe_err *e)
{
    struct check c = { .o = o, .out = MOE_BUF_INIT };
    int rc = moe_pool_new(o->threads, &c.pool, e);

    if (rc != 0)
        return rc;
    c.silent = o->quiet || o->status || isatty(STDOUT_FILENO);
    for (int i = 0; i < n && rc == 0; i++) {
        rc = check_list(&c, operands[i], e);
        if (rc != 0 && rc != MOE_ESTOP && rc != MOE_ENOMEM && !ferror(stdout)) {
            moe_tool_warn("%s", e->text);
            c.bad_lists++;
            rc = 0;
        }
    }
    moe_buf_fini(&c.out);
    moe_pool_free(c.pool);
    if (ferror(stdout))
        return MOE_EXIT_TROUBLE;        /* the end of main says so */
    return rc != 0 ? rc : conclude(&c, e);
}

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;
    int64_t n = 0;
    int rc = 0;

    switch (id) {
    case JSON: a->json = true; break;
    case ZERO: a->zero = true; break;
    case QUIET: a->quiet = true; break;
    case STATUS: a->status = true; break;
    case IGNORE_MISSING: a->ignore_missing = true; break;
    case STRICT: break;
    default:
        rc = moe_num_int(arg, 1, MOE_POOL_MAX, "--threads", &n, e);
        a->threads = (int)n;
    }
    return rc;
}

int
verify_check(int argc, char **argv, struct moe_err *e)
{
    char in[] = "-";
    char *const standard[] = { in };
    struct args a = { .threads = 0 };
    bool helped = false;
    int first, rc = moe_opt_parse(&verify_check_cmd, argc, argv, option, &a, &first, &helped, e);

    if (rc != 0 || helped)
        return rc;
    return first < argc ? check_all(&a, argv + first, argc - first, e) :
        check_all(&a, standard, 1, e);
}
