/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns `moe-verify sum`: which digests are computed, and their lines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/moe-verify/verify_box.h"
#include "cmd/moe-verify/verify_file.h"
#include "cmd/moe-verify/verify_sum.h"
#include "common/base/beneath.h"
#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/base/pool.h"
#include "common/base/tool.h"
#include "common/formats/source.h"
#include "common/trust/digestq.h"
#include "common/trust/sumlist.h"

enum { TENSORS = 1, JSON, ZERO, THREADS, QUIET };

static const struct moe_opt rows[] = {
    { TENSORS, 't', "tensors", MOE_OPT_NONE, NULL, "digests of tensors, not of files", NULL,
        false, false },
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "print JSON Lines", NULL, false, false },
    { ZERO, 'z', "zero", MOE_OPT_NONE, NULL, "records end in NUL, names are not escaped", NULL,
        false, false },
    { THREADS, 'j', "threads", MOE_OPT_WORD, "N", "threads; default: the processors", NULL,
        false, false },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "no progress", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[-qz] [-j N] [--json] [--tensors] [FILE | DIR ...]", NULL };

const struct moe_opt_cmd verify_sum_cmd = {
    "moe-verify sum", usage, "Print digests of files, or of their tensors.", rows, NULL
};

struct args {
    bool tensors, json, zero, quiet;
    int threads;                    /* 0: as many as there are processors */
};

struct sum {
    const struct args *o;
    struct moe_pool *pool;
    struct moe_progress progress;
    struct verify_files files;
    struct moe_digestq_job *jobs;   /* of the queue that runs */
    const char *file;               /* whose tensors they are, or NULL */
    const struct verify_box *box;
    struct moe_buf line;
    size_t lines, troubles;
    bool silent;                    /* no progress: unwanted, or lines go to the same terminal */
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;
    int64_t n = 0;
    int rc = 0;

    switch (id) {
    case TENSORS: a->tensors = true; break;
    case JSON: a->json = true; break;
    case ZERO: a->zero = true; break;
    case QUIET: a->quiet = true; break;
    default:
        rc = moe_num_int(arg, 1, MOE_POOL_MAX, "--threads", &n, e);
        a->threads = (int)n;
    }
    return rc;
}

static int
write_line(struct sum *s, struct moe_err *e)
{
    if (s->line.bad)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    if (fwrite(s->line.p, 1, s->line.len, stdout) != s->line.len)
        return moe_err_set(e, MOE_EIO, "standard output");
    s->lines++;
    return 0;
}

static void
json_line(struct sum *s, const struct moe_digestq_job *j, const struct verify_tensor *t)
{
    const char *file = t != NULL ? s->file : j->name;
    struct moe_jsonw w = { &s->line, false };
    char hex[MOE_DIGEST_HEX];

    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "file");
    moe_jsonw_str(&w, file, strlen(file));
    if (t != NULL) {
        moe_jsonw_key(&w, "tensor");
        moe_jsonw_str(&w, t->name, strlen(t->name));
        moe_jsonw_key(&w, "dtype");
        moe_jsonw_str(&w, t->type, strlen(t->type));
        moe_jsonw_key(&w, "shape");
        moe_jsonw_open(&w, '[');
        for (int i = 0; i < t->rank; i++)
            moe_jsonw_uint(&w, t->dims[i]);
        moe_jsonw_close(&w, ']');
    }
    moe_jsonw_key(&w, "bytes");
    moe_jsonw_uint(&w, j->bytes);
    moe_jsonw_key(&w, "sha256");
    moe_jsonw_str(&w, moe_digest_hex(j->sum, hex), MOE_DIGEST_HEX - 1);
    moe_jsonw_close(&w, '}');
    moe_buf_byte(&s->line, '\n');
}

static void
tensor_line(struct sum *s, const struct moe_digestq_job *j, const struct verify_tensor *t)
{
    struct moe_buf shape = MOE_BUF_INIT;

    verify_box_shape(&shape, t);
    if (shape.bad)
        s->line.bad = true;
    else
        moe_sumlist_put_tensor(&s->line, j->sum, s->file, t->name, t->type, shape.p);
    moe_buf_fini(&shape);
}

/* Print the line of a digest that is done, of a tensor or of a file. */
static int
print(struct sum *s, const struct moe_digestq_job *j, const struct verify_tensor *t,
    struct moe_err *e)
{
    moe_buf_clear(&s->line);
    if (s->o->json)
        json_line(s, j, t);
    else if (t != NULL)
        tensor_line(s, j, t);
    else
        moe_sumlist_put(&s->line, j->sum, j->name, s->o->zero);
    return write_line(s, e);
}

static int
done(void *ctx, size_t i, struct moe_err *e)
{
    struct sum *s = ctx;

    if (s->jobs[i].rc != 0) {
        moe_tool_warn("%s", e->text);
        s->troubles++;
        return 0;
    }
    return print(s, &s->jobs[i], s->box != NULL ? &s->box->t[i] : NULL, e);
}

static int
open_file(void *ctx, size_t i, struct moe_err *e)
{
    struct sum *s = ctx;

    return verify_file_at(&s->files, i, e);
}

/* Something that one file or operand has: a line on stderr, and the others go on. */
static int
trouble(struct sum *s, int rc, const struct moe_err *e)
{
    if (rc == 0 || rc == MOE_ESTOP || rc == MOE_ENOMEM || ferror(stdout))
        return rc;
    moe_tool_warn("%s", e->text);
    s->troubles++;
    return 0;
}

static int
run(struct sum *s, struct moe_digestq_job *jobs, size_t n, struct moe_err *e)
{
    struct moe_digestq q = { jobs, n, open_file, done, s, &s->progress };

    s->jobs = jobs;
    return moe_digestq_run(&q, s->pool, e);
}

static int
sum_files(struct sum *s, char *const *operands, int n, struct moe_err *e)
{
    struct moe_digestq_job *jobs;
    uint64_t total = 0;
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++)
        rc = trouble(s, verify_file_add(&s->files, operands[i], e), e);
    s->troubles += s->files.troubles;
    if (rc != 0 || s->files.n == 0)
        return rc;
    if ((jobs = calloc(s->files.n, sizeof(*jobs))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < s->files.n; i++) {
        bool in = strcmp(s->files.f[i].name, "-") == 0;
        jobs[i] = (struct moe_digestq_job){ .name = s->files.f[i].name,
            .fd = in ? STDIN_FILENO : -1, .at = in ? MOE_DIGESTQ_HERE : 0,
            .len = MOE_DIGESTQ_REST };
        total += s->files.f[i].bytes;
    }
    moe_progress_start(&s->progress, "sum", total, s->silent);
    rc = run(s, jobs, s->files.n, e);
    moe_progress_end(&s->progress);
    free(jobs);
    return rc;
}

/* The tensors of an open file. */
static int
sum_box(struct sum *s, int fd, const char *name, struct moe_err *e)
{
    struct verify_box box = VERIFY_BOX_INIT;
    struct moe_digestq_job *jobs = NULL;
    uint64_t total = 0;
    int rc = verify_box_open(&box, fd, name, e);

    if (rc != 0)
        return rc;
    if ((jobs = calloc(box.n + 1, sizeof(*jobs))) == NULL) {
        rc = moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
        goto out;
    }
    for (size_t i = 0; i < box.n; i++) {
        jobs[i] = (struct moe_digestq_job){ .name = name, .fd = fd, .at = box.t[i].at,
            .len = box.t[i].len };
        total += box.t[i].len;
    }
    s->file = name;
    s->box = &box;
    moe_progress_start(&s->progress, "sum", total, s->silent);
    rc = run(s, jobs, box.n, e);
    moe_progress_end(&s->progress);
    s->box = NULL;
out:
    free(jobs);
    verify_box_close(&box);
    return rc;
}

/* The n bytes that come next. */
static int
sum_next(struct moe_stream *in, uint64_t n, struct moe_digest *d, void *buf, size_t cap,
    struct moe_err *e)
{
    int rc = moe_digest_begin(d, e);

    while (rc == 0 && n > 0) {
        size_t k = n < cap ? (size_t)n : cap;
        if ((rc = moe_stream_get(in, buf, k, e)) == 0)
            moe_digest_add(d, buf, k);
        n -= k;
    }
    return rc;
}

/* The tensors of a safetensors stream on standard input, as they come. */
static int
sum_stdin(struct sum *s, struct moe_err *e)
{
    enum { PIECE = 1 << 18 };
    struct verify_box box = VERIFY_BOX_INIT;
    struct moe_digest d = MOE_DIGEST_INIT;
    struct moe_stream *in = NULL;
    unsigned char *buf = malloc(PIECE);
    const void *p;
    size_t n;
    int rc;

    if (buf == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    if ((rc = moe_stream_open(STDIN_FILENO, "-", false, &in, e)) != 0 ||
        (rc = verify_box_stream(&box, in, "-", e)) != 0)
        goto out;
    s->file = "-";
    for (size_t i = 0; i < box.n && rc == 0; i++) {
        struct moe_digestq_job j = { .name = "-", .bytes = box.t[i].len };
        if (sum_next(in, box.t[i].len, &d, buf, PIECE, e) != 0)
            rc = moe_err_at(e, "%s", box.t[i].name);
        else if ((rc = moe_digest_end(&d, j.sum, e)) == 0)
            rc = print(s, &j, &box.t[i], e);
    }
    if (rc == 0 && (rc = moe_stream_next(in, &p, &n, e)) == 0 && n > 0)
        rc = moe_err_set(e, MOE_EFORMAT, "-: bytes after the last tensor");
out:
    moe_digest_fini(&d);
    verify_box_close(&box);
    moe_stream_close(in);
    free(buf);
    return rc;
}

/* The weights of a model's directory, which has been found whole. */
static int
sum_model(struct sum *s, const char *path, struct moe_err *e)
{
    struct moe_source *source;
    struct moe_buf name = MOE_BUF_INIT;
    int dir, rc = moe_source_open(path, &source, e);

    if (rc != 0)
        return rc;
    if ((dir = moe_beneath_dir(path, e)) < 0) {
        moe_source_close(source);
        return dir;
    }
    for (size_t f = 0; f < moe_source_files(source) && rc == 0; f++) {
        int fd = moe_beneath_open(dir, path, moe_source_file(source, f), e);
        moe_buf_clear(&name);
        moe_buf_str(&name, path);
        if (path[strlen(path) - 1] != '/')
            moe_buf_byte(&name, '/');
        moe_buf_str(&name, moe_source_file(source, f));
        rc = fd < 0 ? fd : name.bad ? moe_err_set(e, MOE_ENOMEM, "out of memory") :
            sum_box(s, fd, name.p, e);
        if (fd >= 0)
            (void)close(fd);
    }
    moe_buf_fini(&name);
    (void)close(dir);
    moe_source_close(source);
    return rc;
}

static int
sum_tensors(struct sum *s, const char *path, struct moe_err *e)
{
    struct stat st;
    int fd, rc;

    if (strcmp(path, "-") == 0)
        return sum_stdin(s, e);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return sum_model(s, path, e);
    if ((fd = verify_file_open(path, e)) < 0)
        return fd;
    rc = sum_box(s, fd, path, e);
    (void)close(fd);
    return rc;
}

static int
sum_all(const struct args *o, char *const *operands, int n, struct moe_err *e)
{
    struct sum s = { .o = o, .files = VERIFY_FILES_INIT, .line = MOE_BUF_INIT };
    int rc = moe_pool_new(o->threads, &s.pool, e);

    if (rc != 0)
        return rc;
    s.silent = o->quiet || isatty(STDOUT_FILENO);
    if (!o->tensors)
        rc = sum_files(&s, operands, n, e);
    for (int i = 0; o->tensors && i < n && rc == 0; i++)
        rc = trouble(&s, sum_tensors(&s, operands[i], e), e);
    if (rc == 0 && s.lines == 0 && s.troubles == 0)
        rc = moe_err_set(e, MOE_EFORMAT, "no tensor to digest");
    moe_buf_fini(&s.line);
    verify_file_fini(&s.files);
    moe_pool_free(s.pool);
    if (ferror(stdout))
        return MOE_EXIT_TROUBLE;        /* the end of main says so */
    return rc != 0 ? rc : s.troubles > 0 ? MOE_EXIT_TROUBLE : MOE_EXIT_YES;
}

int
verify_sum(int argc, char **argv, struct moe_err *e)
{
    char in[] = "-";
    char *const standard[] = { in };
    struct args a = { .threads = 0 };
    bool helped = false;
    int first, rc = moe_opt_parse(&verify_sum_cmd, argc, argv, option, &a, &first, &helped, e);

    if (rc != 0 || helped)
        return rc;
    if (a.tensors && a.zero)
        return moe_err_set(e, MOE_EUSAGE, "--tensors has no form with --zero");
    return first < argc ? sum_all(&a, argv + first, argc - first, e) :
        sum_all(&a, standard, 1, e);
}
