/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns --ppl: how well the model foretells a text. The text's tokens are cut
 * into windows of the context, each on its own; nothing is added, and the first
 * token of a window is not scored.
 */
#include <math.h>
#include <stdlib.h>

#include "cmd/moe-serve/serve.h"
#include "common/base/jsonw.h"
#include "common/base/progress.h"
#include "common/base/read.h"

#define MAX_PARTS 256       /* windows of a step */

struct ppl {
    struct serve_engine *g;
    struct moe_tokens ids;
    size_t bytes;           /* of the text */
    size_t scored;
    double nll;             /* sum of -ln p */
    struct moe_progress progress;
};

/* -ln of the probability that logits give to id. */
static double
surprise(const float *logits, size_t n, uint32_t id)
{
    float top = logits[0];
    double sum = 0;

    for (size_t i = 1; i < n; i++)
        top = logits[i] > top ? logits[i] : top;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - (double)top);
    return log(sum) + (double)top - (double)logits[id];
}

static int
score(void *ctx, struct moe_session *s, size_t at, const float *logits, struct moe_err *e)
{
    struct ppl *p = ctx;
    double v;

    if (at + 1 == moe_session_len(s))
        return 0;
    v = surprise(logits, p->g->model->hp.vocab, moe_session_tokens(s)[at + 1]);
    if (!isfinite(v))
        return moe_err_set(e, MOE_EFORMAT, "%s: the logits are not finite",
            moe_source_path(p->g->model->source));
    p->nll += v;
    p->scored++;
    return 0;
}

/* Windows that are under way, in the order of the text. */
struct windows {
    struct moe_session *s[MAX_PARTS];
    size_t n, next;         /* next token of the text that no window has */
};

static int
open_window(struct ppl *p, struct windows *w, struct moe_err *e)
{
    static const struct moe_sampler_options greedy = MOE_SAMPLER_GREEDY;
    size_t left = p->ids.n - w->next, n = left < p->g->context ? left : p->g->context;
    int rc;

    if ((rc = moe_session_new(p->g->model, p->g->kv, p->g->context, n, &greedy, &w->s[w->n],
        e)) != 0)
        return rc;
    w->n++;
    if ((rc = moe_session_add(w->s[w->n - 1], p->ids.id + w->next, n, e)) != 0)
        return rc;
    w->next += n;
    return 0;
}

/* As much as a step takes: what is left of a window, and new ones. */
static int
step(struct ppl *p, struct windows *w, struct moe_err *e)
{
    struct moe_session_part parts[MAX_PARTS];
    size_t rows = moe_forward_rows(p->g->forward), count = 0, closed = 0, done;
    int rc;

    for (done = 0; done < rows && count < MAX_PARTS; count++) {
        size_t n;

        if (count == w->n) {
            if (w->next == p->ids.n)
                break;
            if ((rc = open_window(p, w, e)) != 0)
                return rc;
        }
        n = moe_session_pending(w->s[count]);
        n = n < rows - done ? n : rows - done;
        parts[count] = (struct moe_session_part){ w->s[count], n, true };
        done += n;
    }
    if ((rc = moe_session_step(p->g->forward, parts, count, score, p, e)) != 0)
        return rc;
    for (size_t i = 0; i < w->n; i++) {
        if (moe_session_pending(w->s[i]) == 0)
            moe_session_free(w->s[i]);
        else
            w->s[closed++] = w->s[i];
    }
    w->n = closed;
    moe_progress_add(&p->progress, p->bytes * done / p->ids.n);
    return 0;
}

static int
run(struct ppl *p, struct moe_err *e)
{
    struct windows w = { { NULL }, 0, 0 };
    int rc = 0;

    while (rc == 0 && (w.next < p->ids.n || w.n > 0))
        rc = step(p, &w, e);
    for (size_t i = 0; i < w.n; i++)
        moe_session_free(w.s[i]);
    if (rc == 0 && p->scored == 0)
        rc = moe_err_set(e, MOE_EFORMAT, "stdin: a text of %zu tokens has none to score",
            p->ids.n);
    return rc;
}

static int
print(const struct ppl *p, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_jsonw w = { &b, false };
    const char *arith = p->g->arith == MOE_ARITH_FAST ? "fast" : "f32";
    int rc;

    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "tokens");
    moe_jsonw_uint(&w, p->scored);
    moe_jsonw_key(&w, "nll");
    moe_jsonw_real(&w, p->nll);
    moe_jsonw_key(&w, "ppl");
    moe_jsonw_real(&w, exp(p->nll / (double)p->scored));
    moe_jsonw_key(&w, "context");
    moe_jsonw_uint(&w, p->g->context);
    moe_jsonw_key(&w, "arith");
    moe_jsonw_str(&w, arith, p->g->arith == MOE_ARITH_FAST ? 4 : 3);
    moe_jsonw_close(&w, '}');
    moe_buf_byte(&b, '\n');
    rc = b.bad ? moe_err_set(e, MOE_ENOMEM, "stdout: out of memory")
        : serve_text_put(b.p, b.len, e);
    moe_buf_fini(&b);
    return rc;
}

int
serve_ppl_run(const struct serve_options *o, struct moe_err *e)
{
    struct serve_engine g;
    struct ppl p = { .g = &g, .ids = MOE_TOKENS_INIT };
    struct moe_tokenizer *t = NULL;
    struct moe_buf in = MOE_BUF_INIT;
    int rc;

    if ((rc = serve_engine_open(o, &g, e)) != 0)
        return rc;
    if ((rc = serve_text_tokenizer(g.model->source, &t, e)) != 0)
        goto out;
    if ((rc = moe_read_file("-", SERVE_MAX_STDIN, &in, e)) != 0)
        goto out;
    if (moe_tokenizer_encode(t, in.p, in.len, MOE_ADDED_ALL, false, &p.ids, e) != 0) {
        rc = moe_err_at(e, "stdin");
        goto out;
    }
    p.bytes = in.len;
    moe_progress_start(&p.progress, "perplexity", in.len, o->quiet);
    rc = run(&p, e);
    moe_progress_end(&p.progress);
    if (rc == 0)
        rc = print(&p, e);
out:
    moe_buf_fini(&in);
    moe_tokens_fini(&p.ids);
    moe_tokenizer_free(t);
    serve_engine_close(&g);
    return rc;
}
