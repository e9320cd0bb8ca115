/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns decoding token by token. The steps are decoder.c's.
 */
#include <stdlib.h>

#include "common/engine/detokenizer.h"
#include "common/engine/tokenizer_file.h"

struct moe_detokenizer {
    const struct moe_tokenizer *t;      /* borrowed */
    struct moe_decoder_run *run;
    bool skip_special;
};

int
moe_detokenizer_new(const struct moe_tokenizer *t, bool skip_special,
    struct moe_detokenizer **out, struct moe_err *e)
{
    struct moe_detokenizer *d = calloc(1, sizeof(*d));
    int rc;

    *out = NULL;
    if (d == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    d->t = t;
    d->skip_special = skip_special;
    if ((rc = moe_decoder_run_new(t->decoder, true, &d->run, e)) == 0)
        *out = d;
    else
        moe_detokenizer_free(d);
    return rc;
}

void
moe_detokenizer_free(struct moe_detokenizer *d)
{
    if (d == NULL)
        return;
    moe_decoder_run_free(d->run);
    free(d);
}

int
moe_detokenizer_put(struct moe_detokenizer *d, uint32_t id, struct moe_buf *out,
    struct moe_err *e)
{
    const char *p;
    size_t n;

    if (id >= d->t->vocab.n)
        return moe_err_set(e, MOE_EFORMAT, "no token has id %u", id);
    if (!moe_vocab_text(&d->t->vocab, id, &p, &n) ||
        (d->skip_special && moe_tokenizer_is_special(d->t, id)))
        return 0;
    return moe_decoder_put(d->run, p, n, out, e);
}

int
moe_detokenizer_end(struct moe_detokenizer *d, struct moe_buf *out, struct moe_err *e)
{
    return moe_decoder_end(d->run, out, e);
}
