/* SPDX-License-Identifier: Apache-2.0 */
/* Any GGUF header as tokenizer.json and tokenizer_config.json: JSON, or refused with a reason. */
#include <jansson.h>
#include <stdlib.h>

#include "common/engine/gguftokens.h"

#define AFTER ((uint64_t)1 << 40)   /* bytes of data that the header may speak of */

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
check(int rc, const struct moe_buf *b, const struct moe_err *e)
{
    json_t *tree;

    if (rc != 0) {
        if (e->code != rc || e->text[0] == '\0')
            abort();
        return;
    }
    /* What is not UTF-8, or a NUL, is for the reader of the JSON to refuse. */
    if ((tree = json_loadb(b->p, b->len, 0, NULL)) != NULL && !json_is_object(tree))
        abort();
    json_decref(tree);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    struct moe_gguf *g;

    if (moe_gguf_parse(p, n, n + AFTER, "fuzz", &g, &e) != 0)
        return 0;
    e = (struct moe_err){ 0, "" };
    check(moe_gguftokens_json(g, "fuzz", &b, &e), &b, &e);
    moe_buf_clear(&b);
    e = (struct moe_err){ 0, "" };
    check(moe_gguftokens_config(g, "fuzz", &b, &e), &b, &e);
    moe_buf_fini(&b);
    moe_gguf_free(g);
    return 0;
}
