/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the grammar of an output: its file, the model's vocabulary in order, the place in it. */
#include <stdlib.h>

#include "cmd/moe-serve/serve.h"
#include "common/base/read.h"
#include "common/engine/gbnf.h"
#include "common/engine/schema.h"

struct serve_grammar {
    struct moe_grammar *grammar;
    struct moe_lexicon *lexicon;
    struct moe_matcher *matcher;
};

static int
read_grammar(const struct serve_options *o, struct moe_grammar **out, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc;

    if (o->grammar != NULL) {
        if ((rc = moe_read_file(o->grammar, MOE_GBNF_MAX_BYTES, &b, e)) == 0)
            rc = moe_gbnf_parse(b.len == 0 ? "" : b.p, b.len, o->grammar, out, e);
    } else if ((rc = moe_read_file(o->schema, MOE_SCHEMA_MAX_BYTES, &b, e)) == 0) {
        rc = moe_schema_parse(b.len == 0 ? "" : b.p, b.len, o->schema, out, e);
    }
    moe_buf_fini(&b);
    return rc;
}

int
serve_grammar_open(const struct serve_options *o, const struct moe_tokenizer *t, size_t vocab,
    struct serve_grammar **out, struct moe_err *e)
{
    struct serve_grammar *g = NULL;
    int rc;

    *out = NULL;
    if (o->grammar == NULL && o->schema == NULL)
        return 0;
    if (o->grammar != NULL && o->schema != NULL)
        return moe_err_set(e, MOE_EUSAGE, "--grammar or --schema, not both");
    if ((g = calloc(1, sizeof(*g))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "grammar: out of memory");
    if ((rc = read_grammar(o, &g->grammar, e)) != 0
        || (rc = moe_lexicon_new(t, (uint32_t)vocab, &g->lexicon, e)) != 0
        || (rc = moe_matcher_new(g->grammar, g->lexicon, &g->matcher, e)) != 0)
        goto out;
    *out = g;
    g = NULL;
out:
    serve_grammar_close(g);
    return rc;
}

void
serve_grammar_close(struct serve_grammar *g)
{
    if (g == NULL)
        return;
    moe_matcher_free(g->matcher);
    moe_lexicon_free(g->lexicon);
    moe_grammar_free(g->grammar);
    free(g);
}

int
serve_grammar_bind(struct serve_grammar *g, struct moe_session *s, struct moe_err *e)
{
    return g == NULL ? 0 : moe_chooser_constrain(moe_session_chooser(s), g->matcher, e);
}
