/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns encoding and decoding: added tokens are cut out, the text between is
 * normalised, cut into words and merged. What each part does is in its own file.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/engine/tokenizer.h"
#include "common/engine/tokenizer_file.h"

int
moe_tokenizer_parse(const char *json, size_t n, const char *name, struct moe_tokenizer **out,
    struct moe_err *e)
{
    struct moe_tokenizer *t = calloc(1, sizeof(*t));
    int rc;

    *out = NULL;
    if (t == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    if ((rc = moe_tokenizer_file(t, json, n, name, e)) == 0)
        *out = t;
    else
        moe_tokenizer_free(t);
    return rc;
}

void
moe_tokenizer_free(struct moe_tokenizer *t)
{
    if (t == NULL)
        return;
    moe_bpe_fini(&t->bpe);
    moe_vocab_fini(&t->vocab);
    moe_added_fini(&t->added);
    moe_normalizer_free(t->normalizer);
    moe_pretokenizer_free(t->pretokenizer);
    moe_decoder_free(t->decoder);
    moe_tokens_fini(&t->before);
    moe_tokens_fini(&t->after);
    free(t->special);
    free(t);
}

/* ---- Encoding ------------------------------------------------------------------- */

struct encoding {
    const struct moe_tokenizer *t;
    enum moe_added added;
    const char *text;                   /* the whole of it */
    const struct moe_spans *outside;    /* parts of it without added tokens, or NULL */
    struct moe_tokens *out;
    struct moe_err *e;
    struct moe_pretokenizer_run *words;
    struct moe_bpe_run *bpe;
    struct moe_buf normal, tmp;
};

static int
word(void *ctx, const char *p, size_t n, struct moe_err *e)
{
    struct encoding *c = ctx;

    return moe_bpe_word(c->bpe, p, n, e);
}

static int section(struct encoding *c, enum moe_added added, bool normalized, const char *p,
    size_t n, bool first);

/* Text without added tokens of this round. */
static int
plain(struct encoding *c, bool normalized, const char *p, size_t n, bool first)
{
    enum moe_added added = c->added;
    size_t at;
    int rc;

    if (n == 0)
        return 0;
    if (normalized)
        return moe_pretokenizer_split(c->words, p, n, first, word, c, c->e);
    /* Normalising moves the marks: a piece that has one is text throughout. */
    at = (size_t)(p - c->text);
    if (c->outside != NULL && moe_span_overlaps(c->outside, at, at + n))
        added = MOE_ADDED_NONE;
    moe_buf_clear(&c->normal);
    rc = moe_normalizer_run(c->t->normalizer, p, n, &c->normal, &c->tmp, c->e);
    return rc != 0 ? rc : section(c, added, true, c->normal.p, c->normal.len, first);
}

/* Cut the added tokens of one round out: first the raw ones, then the normalised. */
static int
section(struct encoding *c, enum moe_added added, bool normalized, const char *p, size_t n,
    bool first)
{
    const struct moe_spans *outside = normalized ? NULL : c->outside;
    size_t at = 0, done = 0, was = 0;
    struct moe_added_hit hit;
    int rc;

    while (moe_added_next(&c->t->added, normalized, added, outside, p, n, &at, &done, &hit)) {
        if (hit.from > was && (rc = plain(c, normalized, p + was, hit.from - was,
            first && was == 0)) != 0)
            return rc;
        if ((rc = moe_tokens_add(c->out, hit.id, c->e)) != 0)
            return rc;
        was = done;
    }
    return was < n ? plain(c, normalized, p + was, n - was, first && was == 0) : 0;
}

static int
add_all(struct moe_tokens *out, const struct moe_tokens *list, struct moe_err *e)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < list->n; i++)
        rc = moe_tokens_add(out, list->id[i], e);
    return rc;
}

static int
encode(const struct moe_tokenizer *t, const char *text, size_t n, enum moe_added added,
    const struct moe_spans *outside, bool bos, struct moe_tokens *out, struct moe_err *e)
{
    struct encoding c = { .t = t, .added = added, .text = text, .outside = outside, .out = out,
        .e = e };
    size_t was = out->n;
    int rc;

    if (n > MOE_TOKENIZER_MAX_TEXT)
        return moe_err_set(e, MOE_ELIMIT, "text of more than %zu bytes", MOE_TOKENIZER_MAX_TEXT);
    if (!moe_utf8_valid(text, n))
        return moe_err_set(e, MOE_EFORMAT, "text is not UTF-8");
    if ((rc = moe_pretokenizer_run_new(t->pretokenizer, &c.words, e)) != 0 ||
        (rc = moe_bpe_run_new(&t->bpe, out, &c.bpe, e)) != 0 ||
        (bos && (rc = add_all(out, &t->before, e)) != 0) ||
        (rc = section(&c, added, false, text, n, true)) != 0)
        goto out;
    if (bos)
        rc = add_all(out, &t->after, e);
out:
    if (rc != 0)
        out->n = was;
    moe_bpe_run_free(c.bpe);
    moe_pretokenizer_run_free(c.words);
    moe_buf_fini(&c.normal);
    moe_buf_fini(&c.tmp);
    return rc;
}

int
moe_tokenizer_encode(const struct moe_tokenizer *t, const char *text, size_t n,
    enum moe_added added, bool bos, struct moe_tokens *out, struct moe_err *e)
{
    return encode(t, text, n, added, NULL, bos, out, e);
}

int
moe_tokenizer_encode_prompt(const struct moe_tokenizer *t, const char *text, size_t n,
    const struct moe_spans *outside, bool bos, struct moe_tokens *out, struct moe_err *e)
{
    return encode(t, text, n, MOE_ADDED_ALL, outside, bos, out, e);
}

/* ---- Tokens --------------------------------------------------------------------- */

uint32_t
moe_tokenizer_size(const struct moe_tokenizer *t)
{
    return t->vocab.n;
}

bool
moe_tokenizer_find(const struct moe_tokenizer *t, const char *text, size_t n, uint32_t *id)
{
    *id = moe_vocab_find(&t->vocab, text, n);
    return *id != MOE_VOCAB_NONE;
}

bool
moe_tokenizer_is_special(const struct moe_tokenizer *t, uint32_t id)
{
    return id < t->vocab.n && t->special[id];
}

int
moe_tokenizer_bytes(const struct moe_tokenizer *t, uint32_t id, struct moe_buf *out,
    struct moe_err *e)
{
    const char *p;
    size_t n;

    if (!moe_vocab_text(&t->vocab, id, &p, &n))
        return moe_err_set(e, MOE_EFORMAT, "no token has id %u", id);
    return moe_decoder_bytes(t->decoder, p, n, out, e);
}

int
moe_tokenizer_decode(const struct moe_tokenizer *t, const uint32_t *id, size_t n,
    bool skip_special, struct moe_buf *out, struct moe_err *e)
{
    struct moe_decoder_run *run;
    int rc = moe_decoder_run_new(t->decoder, false, &run, e);

    for (size_t i = 0; rc == 0 && i < n; i++) {
        const char *p;
        size_t len;

        if (id[i] >= t->vocab.n)
            rc = moe_err_set(e, MOE_EFORMAT, "no token has id %u", id[i]);
        else if (moe_vocab_text(&t->vocab, id[i], &p, &len) &&
            !(skip_special && t->special[id[i]]))
            rc = moe_decoder_put(run, p, len, out, e);
    }
    if (rc == 0)
        rc = moe_decoder_end(run, out, e);
    moe_decoder_run_free(run);
    return rc;
}
