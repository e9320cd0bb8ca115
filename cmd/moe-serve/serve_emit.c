/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns what --once writes: text as soon as it is whole and can be no stop text,
 * or a line of JSON for each token.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-serve/serve.h"
#include "common/base/jsonw.h"
#include "common/base/utf8.h"
#include "common/engine/detokenizer.h"
#include "common/engine/stopper.h"

struct serve_emit {
    const struct moe_tokenizer *t;
    struct moe_detokenizer *d;
    struct moe_stopper *stopper;
    bool json, ended;
    struct moe_buf text, out, piece;
};

int
serve_emit_new(const struct serve_options *o, const struct moe_tokenizer *t,
    struct serve_emit **out, struct moe_err *e)
{
    struct serve_emit *w = calloc(1, sizeof(*w));
    int rc;

    *out = NULL;
    if (w == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    w->t = t;
    w->json = o->logprobs;
    if ((rc = moe_detokenizer_new(t, true, &w->d, e)) != 0
        || (rc = moe_stopper_new(&w->stopper, e)) != 0)
        goto out;
    for (size_t i = 0; i < o->n_stop; i++) {
        if (moe_stopper_add(w->stopper, o->stop[i], strlen(o->stop[i]), e) != 0) {
            rc = moe_err_at(e, "--stop");
            goto out;
        }
    }
    *out = w;
    w = NULL;
out:
    serve_emit_free(w);
    return rc;
}

void
serve_emit_free(struct serve_emit *w)
{
    if (w == NULL)
        return;
    moe_detokenizer_free(w->d);
    moe_stopper_free(w->stopper);
    moe_buf_fini(&w->text);
    moe_buf_fini(&w->out);
    moe_buf_fini(&w->piece);
    free(w);
}

/* What a token stands for: its text, or its bytes when they are none. */
static int
write_piece(struct serve_emit *w, struct moe_jsonw *j, struct moe_logprob p, struct moe_err *e)
{
    int rc;

    moe_buf_clear(&w->piece);
    if ((rc = moe_tokenizer_bytes(w->t, p.id, &w->piece, e)) != 0)
        return rc;
    moe_jsonw_key(j, "id");
    moe_jsonw_uint(j, p.id);
    if (moe_utf8_valid(w->piece.p, w->piece.len)) {
        moe_jsonw_key(j, "token");
        moe_jsonw_str(j, w->piece.len == 0 ? "" : w->piece.p, w->piece.len);
    } else {
        moe_jsonw_key(j, "bytes");
        moe_jsonw_open(j, '[');
        for (size_t i = 0; i < w->piece.len; i++)
            moe_jsonw_uint(j, (unsigned char)w->piece.p[i]);
        moe_jsonw_close(j, ']');
    }
    moe_jsonw_key(j, "logprob");
    moe_jsonw_real(j, p.logprob);
    return 0;
}

static int
write_line(struct serve_emit *w, const struct moe_logprobs *lp, struct moe_err *e)
{
    struct moe_jsonw j = { &w->out, false };
    int rc;

    moe_buf_clear(&w->out);
    moe_jsonw_open(&j, '{');
    if ((rc = write_piece(w, &j, lp->chosen, e)) != 0)
        return rc;
    moe_jsonw_key(&j, "top");
    moe_jsonw_open(&j, '[');
    for (size_t i = 0; i < lp->n; i++) {
        moe_jsonw_open(&j, '{');
        if ((rc = write_piece(w, &j, lp->top[i], e)) != 0)
            return rc;
        moe_jsonw_close(&j, '}');
    }
    moe_jsonw_close(&j, ']');
    moe_jsonw_close(&j, '}');
    moe_buf_byte(&w->out, '\n');
    if (w->out.bad || w->piece.bad)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    return serve_text_put(w->out.p, w->out.len, e);
}

int
serve_emit_token(struct serve_emit *w, uint32_t id, const struct moe_logprobs *lp, bool *ended,
    struct moe_err *e)
{
    int rc;

    moe_buf_clear(&w->text);
    if ((rc = moe_detokenizer_put(w->d, id, &w->text, e)) != 0)
        return rc;
    moe_buf_clear(&w->out);
    if ((rc = moe_stopper_put(w->stopper, w->text.p, w->text.len, &w->out, ended, e)) != 0)
        return rc;
    w->ended = *ended;
    return w->json ? write_line(w, lp, e) : serve_text_put(w->out.p, w->out.len, e);
}

int
serve_emit_end(struct serve_emit *w, struct moe_err *e)
{
    bool ended = w->ended;
    int rc;

    if (w->json || ended)
        return 0;
    moe_buf_clear(&w->text);
    moe_buf_clear(&w->out);
    if ((rc = moe_detokenizer_end(w->d, &w->text, e)) != 0
        || (rc = moe_stopper_put(w->stopper, w->text.p, w->text.len, &w->out, &ended, e)) != 0)
        return rc;
    if (!ended && (rc = moe_stopper_end(w->stopper, &w->out, e)) != 0)
        return rc;
    return serve_text_put(w->out.p, w->out.len, e);
}
