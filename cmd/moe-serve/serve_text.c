/* SPDX-License-Identifier: Apache-2.0 */
/* Owns --tokenize and --detokenize, the reading of ids, and writes to stdout. */
#include <errno.h>
#include <stdio.h>

#include "cmd/moe-serve/serve.h"
#include "common/base/read.h"
#include "common/engine/gguftokens.h"

int
serve_text_put(const void *p, size_t n, struct moe_err *e)
{
    if (n > 0 && (fwrite(p, 1, n, stdout) != n || fflush(stdout) != 0))
        return moe_err_sys(e, MOE_EIO, errno, "stdout");
    return 0;
}

int
serve_text_tokenizer(const struct moe_source *s, struct moe_tokenizer **out, struct moe_err *e)
{
    const struct moe_gguf *g = moe_source_gguf(s);
    const char *name = g != NULL ? moe_source_path(s) : "tokenizer.json";
    struct moe_buf b = MOE_BUF_INIT;
    int rc;

    *out = NULL;
    if (g != NULL)
        rc = moe_gguftokens_json(g, name, &b, e);
    else if ((rc = moe_source_aux(s, name, MOE_TOKENIZER_MAX_BYTES, &b, e)) == MOE_ENOENT)
        rc = moe_err_set(e, MOE_ENOENT, "%s: no tokenizer.json", moe_source_path(s));
    if (rc == 0)
        rc = moe_tokenizer_parse(b.p, b.len, name, out, e);
    moe_buf_fini(&b);
    return rc;
}

static bool
blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',';
}

bool
serve_text_id(const char **p, const char *end, uint32_t *id, bool *bad)
{
    uint64_t v = 0;
    const char *q = *p, *start;

    *bad = false;
    while (q < end && blank(*q))
        q++;
    start = q;
    while (q < end && *q >= '0' && *q <= '9' && v <= UINT32_MAX)
        v = 10 * v + (uint64_t)(*q++ - '0');
    *bad = v > UINT32_MAX || (q < end && !blank(*q));
    *id = (uint32_t)v;
    *p = q;
    return !*bad && q > start;
}

/* The tokenizer of the model on the command line, and stdin. */
static int
begin(const struct serve_options *o, struct moe_source **s, struct moe_tokenizer **t,
    struct moe_buf *in, struct moe_err *e)
{
    int rc;

    if ((rc = moe_source_open(o->model, s, e)) != 0)
        return rc;
    if ((rc = serve_text_tokenizer(*s, t, e)) != 0)
        return rc;
    return moe_read_file("-", SERVE_MAX_STDIN, in, e);
}

int
serve_text_tokenize(const struct serve_options *o, struct moe_err *e)
{
    struct moe_source *s = NULL;
    struct moe_tokenizer *t = NULL;
    struct moe_tokens ids = MOE_TOKENS_INIT;
    struct moe_buf in = MOE_BUF_INIT, out = MOE_BUF_INIT;
    int rc;

    if ((rc = begin(o, &s, &t, &in, e)) != 0)
        goto out;
    if (moe_tokenizer_encode(t, in.p, in.len, MOE_ADDED_ALL, false, &ids, e) != 0) {
        rc = moe_err_at(e, "stdin");
        goto out;
    }
    for (size_t i = 0; i < ids.n; i++)
        moe_buf_fmt(&out, "%s%lu", i == 0 ? "" : " ", (unsigned long)ids.id[i]);
    moe_buf_byte(&out, '\n');
    if (out.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "stdin: out of memory");
    else
        rc = serve_text_put(out.p, out.len, e);
out:
    moe_buf_fini(&in);
    moe_buf_fini(&out);
    moe_tokens_fini(&ids);
    moe_tokenizer_free(t);
    moe_source_close(s);
    return rc;
}

int
serve_text_detokenize(const struct serve_options *o, struct moe_err *e)
{
    struct moe_source *s = NULL;
    struct moe_tokenizer *t = NULL;
    struct moe_tokens ids = MOE_TOKENS_INIT;
    struct moe_buf in = MOE_BUF_INIT, out = MOE_BUF_INIT;
    const char *p;
    uint32_t id;
    bool bad;
    int rc;

    if ((rc = begin(o, &s, &t, &in, e)) != 0)
        goto out;
    p = in.p;
    while (rc == 0 && serve_text_id(&p, in.p + in.len, &id, &bad))
        rc = moe_tokens_add(&ids, id, e);
    if (rc == 0 && bad)
        rc = moe_err_set(e, MOE_EFORMAT, "stdin: offset %zu: not a token id", (size_t)(p - in.p));
    if (rc != 0)
        goto out;
    if (moe_tokenizer_decode(t, ids.id, ids.n, false, &out, e) != 0) {
        rc = moe_err_at(e, "stdin");
        goto out;
    }
    rc = out.bad ? moe_err_set(e, MOE_ENOMEM, "stdin: out of memory")
        : serve_text_put(out.p, out.len, e);
out:
    moe_buf_fini(&in);
    moe_buf_fini(&out);
    moe_tokens_fini(&ids);
    moe_tokenizer_free(t);
    moe_source_close(s);
    return rc;
}
