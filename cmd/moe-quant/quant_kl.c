/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the comparison of logits, a few rows of both models at a time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_kl.h"
#include "cmd/moe-quant/quant_reader.h"
#include "common/base/jsonw.h"
#include "common/base/progress.h"

#define ROWS 64                 /* whose logits are held at once */

struct kl {
    struct quant_reader r[2];
    struct moe_tokens ids;
    size_t vocab;
    float *logits;              /* [ROWS][vocab] of the first model */
    size_t first;               /* position in the window of their first row */
    size_t n, scored, same;
    double nll[2], kl, most;
    struct moe_progress progress;
};

static int
keep(void *ctx, struct moe_session *s, size_t at, const float *logits, struct moe_err *e)
{
    struct kl *k = ctx;

    (void)s, (void)e;
    memcpy(k->logits + (at - k->first) * k->vocab, logits, k->vocab * sizeof(*logits));
    return 0;
}

static size_t
largest(const float *x, size_t n)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

/* The logarithm of the sum of exponentials. */
static double
log_sum(const float *x, size_t n)
{
    double sum = 0, top = (double)x[largest(x, n)];

    for (size_t i = 0; i < n; i++)
        sum += exp((double)x[i] - top);
    return log(sum) + top;
}

static int
compare(void *ctx, struct moe_session *s, size_t at, const float *b, struct moe_err *e)
{
    struct kl *k = ctx;
    const float *a = k->logits + (at - k->first) * k->vocab;
    double la = log_sum(a, k->vocab), lb = log_sum(b, k->vocab), kl = 0;

    for (size_t i = 0; i < k->vocab; i++)
        kl += exp((double)a[i] - la) * ((double)a[i] - la - (double)b[i] + lb);
    if (!isfinite(kl))
        return moe_err_set(e, MOE_EFORMAT, "logits that are not finite");
    kl = kl > 0 ? kl : 0;
    k->kl += kl;
    k->most = kl > k->most ? kl : k->most;
    k->same += largest(a, k->vocab) == largest(b, k->vocab);
    k->n++;
    if (at + 1 < moe_session_len(s)) {
        uint32_t next = moe_session_tokens(s)[at + 1];

        k->nll[0] += la - (double)a[next];
        k->nll[1] += lb - (double)b[next];
        k->scored++;
    }
    return 0;
}

static int
window(struct kl *k, const uint32_t *id, size_t n, struct moe_err *e)
{
    struct moe_session *s[2] = { NULL, NULL };
    int rc = quant_reader_begin(&k->r[0], id, n, &s[0], e);

    if (rc == 0)
        rc = quant_reader_begin(&k->r[1], id, n, &s[1], e);
    for (k->first = 0; rc == 0 && k->first < n; k->first += ROWS) {
        size_t rows = n - k->first < ROWS ? n - k->first : ROWS;

        for (int i = 0; rc == 0 && i < 2; i++) {
            struct moe_session_part part = { s[i], rows, true };

            rc = moe_session_step(k->r[i].forward, &part, 1, i == 0 ? keep : compare, k, e);
        }
        moe_progress_add(&k->progress, rows);
    }
    moe_session_free(s[0]);
    moe_session_free(s[1]);
    return rc;
}

static void
real(struct moe_jsonw *w, const char *key, double v)
{
    moe_jsonw_key(w, key);
    moe_jsonw_real(w, v);
}

static void
tell(const struct kl *k, struct moe_buf *out)
{
    struct moe_jsonw w = { out, false };
    double n = k->n > 0 ? (double)k->n : 1, scored = k->scored > 0 ? (double)k->scored : 1;

    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "tokens");
    moe_jsonw_uint(&w, k->n);
    moe_jsonw_key(&w, "scored");
    moe_jsonw_uint(&w, k->scored);
    real(&w, "ppl_a", exp(k->nll[0] / scored));
    real(&w, "ppl_b", exp(k->nll[1] / scored));
    real(&w, "kl", k->kl / n);
    real(&w, "kl_max", k->most);
    real(&w, "same_top", (double)k->same / n);
    moe_jsonw_close(&w, '}');
    moe_buf_byte(out, '\n');
}

int
quant_kl_models(const char *a, const char *b, const struct quant_kl_options *o,
    struct moe_buf *out, struct moe_err *e)
{
    struct kl k = { .ids = MOE_TOKENS_INIT };
    const char *path[2] = { a, b };
    int rc = 0;

    for (int i = 0; rc == 0 && i < 2; i++)
        rc = quant_reader_open(&k.r[i], path[i], ROWS, o->pool, e);
    if (rc != 0)
        goto out;
    k.vocab = k.r[0].model->hp.vocab;
    if (k.r[1].model->hp.vocab != k.vocab)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: %zu tokens, %s has %zu", b,
            k.r[1].model->hp.vocab, a, k.vocab);
    else if ((k.logits = malloc(ROWS * k.vocab * sizeof(*k.logits))) == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    else
        rc = quant_reader_tokens(&k.r[0], o->text, 2, o->tokens, &k.ids, e);
    moe_progress_start(&k.progress, "reading", k.ids.n, o->quiet);
    for (size_t at = 0; rc == 0 && at < k.ids.n; at += QUANT_READER_CONTEXT) {
        size_t left = k.ids.n - at;

        rc = window(&k, k.ids.id + at, left < QUANT_READER_CONTEXT ? left : QUANT_READER_CONTEXT,
            e);
    }
    moe_progress_end(&k.progress);
    if (rc == 0)
        tell(&k, out);
out:
    quant_reader_close(&k.r[0]);
    quant_reader_close(&k.r[1]);
    moe_tokens_fini(&k.ids);
    free(k.logits);
    return rc;
}
