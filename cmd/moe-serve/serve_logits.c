/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns --logits: lists of ids on stdin, one a line; their logits as a stream of
 * safetensors on stdout. The header needs all lengths, so the lists are read
 * first; the logits themselves are written row by row and never held.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-serve/serve.h"
#include "common/base/num.h"
#include "common/base/out.h"
#include "common/base/read.h"
#include "common/formats/safet.h"

struct list {
    size_t first, n;        /* in the ids of all lists */
};

struct lists {
    struct moe_tokens ids;
    struct list *list;
    size_t n, cap;
};

static int
add_list(struct lists *a, size_t first, struct moe_err *e)
{
    if (a->n == a->cap) {
        size_t cap = a->cap == 0 ? 16 : 2 * a->cap;
        struct list *p = realloc(a->list, cap * sizeof(*p));

        if (p == NULL)
            return moe_err_set(e, MOE_ENOMEM, "stdin: out of memory");
        a->list = p;
        a->cap = cap;
    }
    a->list[a->n++] = (struct list){ first, a->ids.n - first };
    return 0;
}

/* One line into a new list. */
static int
read_line(struct lists *a, const struct serve_engine *g, const char *p, const char *end,
    struct moe_err *e)
{
    size_t first = a->ids.n, line = a->n + 1;
    uint32_t id;
    bool bad;
    int rc;

    while (serve_text_id(&p, end, &id, &bad)) {
        if (id >= g->model->hp.vocab)
            return moe_err_set(e, MOE_EFORMAT,
                "stdin: line %zu: token %lu is not in the vocabulary of %zu", line,
                (unsigned long)id, g->model->hp.vocab);
        if ((rc = moe_tokens_add(&a->ids, id, e)) != 0)
            return rc;
    }
    if (bad)
        return moe_err_set(e, MOE_EFORMAT, "stdin: line %zu: not a list of token ids", line);
    if (a->ids.n == first)
        return moe_err_set(e, MOE_EFORMAT, "stdin: line %zu: no token ids", line);
    if (a->ids.n - first > g->context)
        return moe_err_set(e, MOE_ELIMIT, "stdin: line %zu: %zu tokens, the context is %zu", line,
            a->ids.n - first, g->context);
    return add_list(a, first, e);
}

static int
read_lists(struct lists *a, const struct serve_engine *g, struct moe_err *e)
{
    struct moe_buf in = MOE_BUF_INIT;
    const char *p, *end;
    int rc;

    if ((rc = moe_read_file("-", SERVE_MAX_STDIN, &in, e)) != 0)
        goto out;
    p = in.p;
    end = in.p + in.len;
    while (p < end && rc == 0) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));

        eol = eol == NULL ? end : eol;
        rc = read_line(a, g, p, eol, e);
        p = eol < end ? eol + 1 : end;
    }
    if (rc == 0 && a->n == 0)
        rc = moe_err_set(e, MOE_EFORMAT, "stdin: no token ids");
out:
    moe_buf_fini(&in);
    return rc;
}

static int
write_header(const struct lists *a, size_t vocab, struct moe_out *out, struct moe_err *e)
{
    struct moe_tensor *t = calloc(a->n, sizeof(*t));
    uint64_t (*shape)[2] = calloc(a->n, sizeof(*shape));
    char (*name)[32] = calloc(a->n, sizeof(*name));
    struct moe_buf head = MOE_BUF_INIT;
    uint64_t at = 0;
    int rc;

    if (t == NULL || shape == NULL || name == NULL) {
        rc = moe_err_set(e, MOE_ENOMEM, "stdout: out of memory");
        goto out;
    }
    for (size_t i = 0; i < a->n; i++) {
        snprintf(name[i], sizeof(name[i]), "logits_%zu", i);
        shape[i][0] = a->list[i].n;
        shape[i][1] = vocab;
        t[i] = (struct moe_tensor){ .name = name[i], .dtype = MOE_F32, .rank = 2,
            .shape = shape[i], .begin = at };
        at += (uint64_t)a->list[i].n * vocab * sizeof(float);
        t[i].end = at;
    }
    if ((rc = moe_safet_write(&head, t, a->n, NULL, 8, e)) == 0)
        rc = moe_out_write(out, head.p, head.len, e);
out:
    moe_buf_fini(&head);
    free(t);
    free(shape);
    free(name);
    return rc;
}

static int
write_row(void *ctx, struct moe_session *s, size_t at, const float *logits, struct moe_err *e)
{
    const struct serve_engine *g = ((void **)ctx)[0];
    struct moe_out *out = ((void **)ctx)[1];

    (void)s;
    (void)at;
    return moe_out_write(out, logits, g->model->hp.vocab * sizeof(*logits), e);
}

static int
write_list(struct serve_engine *g, const uint32_t *id, size_t n, struct moe_out *out,
    struct moe_err *e)
{
    static const struct moe_sampler_options greedy = MOE_SAMPLER_GREEDY;
    void *ctx[2] = { g, out };
    struct moe_session *s;
    int rc;

    if ((rc = moe_session_new(g->model, g->kv, g->context, n, &greedy, &s, e)) != 0)
        return rc;
    if ((rc = moe_session_add(s, id, n, e)) == 0)
        rc = moe_session_run(g->forward, s, true, write_row, ctx, e);
    moe_session_free(s);
    return rc;
}

int
serve_logits_run(const struct serve_options *o, struct moe_err *e)
{
    struct lists a = { MOE_TOKENS_INIT, NULL, 0, 0 };
    struct moe_out *out = NULL;
    struct serve_engine g;
    int rc;

    if ((rc = serve_engine_open(o, &g, e)) != 0)
        return rc;
    if ((rc = read_lists(&a, &g, e)) != 0)
        goto out;
    if ((rc = moe_out_open("-", false, 0, &out, e)) != 0)
        goto out;
    rc = write_header(&a, g.model->hp.vocab, out, e);
    for (size_t i = 0; i < a.n && rc == 0; i++)
        rc = write_list(&g, a.ids.id + a.list[i].first, a.list[i].n, out, e);
    if (rc == 0) {
        rc = moe_out_commit(out, e);
        out = NULL;
    }
out:
    moe_out_abort(out);
    free(a.list);
    moe_tokens_fini(&a.ids);
    serve_engine_close(&g);
    return rc;
}
