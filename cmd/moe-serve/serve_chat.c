/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the way from one user message to the text that the model's own chat
 * template makes of it.
 */
#include <time.h>

#include "cmd/moe-serve/serve.h"
#include "common/engine/chat.h"
#include "common/engine/gguftokens.h"

#define CONFIG "tokenizer_config.json"
#define TEMPLATE "chat_template.jinja"

/* A file beside the weights; b stays empty when it is not there. */
static int
read_beside(const struct moe_source *s, const char *name, size_t limit, struct moe_buf *b,
    struct moe_err *e)
{
    int rc = moe_source_aux(s, name, limit, b, e);

    return rc == MOE_ENOENT ? 0 : rc;
}

static int
open_template(const struct moe_source *s, struct moe_chat **out, struct moe_err *e)
{
    const struct moe_gguf *g = moe_source_gguf(s);
    struct moe_buf config = MOE_BUF_INIT, src = MOE_BUF_INIT;
    int rc;

    if ((rc = g != NULL ? moe_gguftokens_config(g, moe_source_path(s), &config, e) :
        read_beside(s, CONFIG, MOE_CHAT_MAX_CONFIG, &config, e)) != 0)
        goto out;
    if ((rc = read_beside(s, TEMPLATE, MOE_CHAT_MAX_SOURCE, &src, e)) != 0)
        goto out;
    rc = moe_chat_open(config.p, config.len, CONFIG, src.p, src.len, TEMPLATE, out, e);
    if (rc == MOE_ENOENT)
        rc = moe_err_set(e, rc, "%s: no chat template", moe_source_path(s));
out:
    moe_buf_fini(&config);
    moe_buf_fini(&src);
    return rc;
}

int
serve_chat_render(const struct moe_source *s, const char *text, size_t n, struct moe_buf *out,
    struct moe_spans *outside, struct moe_err *e)
{
    struct moe_chat *c = NULL;
    json_t *messages = NULL;
    int rc;

    if ((rc = open_template(s, &c, e)) != 0)
        return rc;
    messages = json_pack("[{s:s, s:s%}]", "role", "user", "content", n == 0 ? "" : text, n);
    if (messages == NULL)
        rc = moe_err_set(e, MOE_EFORMAT, "stdin: not UTF-8");
    else
        rc = moe_chat_messages(c, messages, true, (long long)time(NULL), out, outside, e);
    json_decref(messages);
    moe_chat_free(c);
    return rc;
}
