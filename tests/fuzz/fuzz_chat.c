/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any template compiles or is refused, and renders or fails within the limits.
 */
/* covers: common/engine/chat.c common/engine/template_lex.c common/engine/template_parse.c */
/* covers: common/engine/template_expr.c common/engine/template_primary.c */
/* covers: common/engine/template_eval.c common/engine/template_calc.c */
/* covers: common/engine/template_call.c common/engine/template_access.c */
/* covers: common/engine/template_filter.c common/engine/template_filter_list.c */
/* covers: common/engine/template_filter_sort.c common/engine/template_filter_text.c */
/* covers: common/engine/template_method.c common/engine/template_method_text.c */
/* covers: common/engine/template_test.c common/engine/template_case.c */
/* covers: common/engine/template_string.c common/engine/template_print.c */
/* covers: common/engine/template_format.c common/engine/template_items.c */
/* covers: common/engine/template_compare.c common/engine/template_value.c */
/* covers: common/engine/template_number.c common/engine/template_dict.c */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/engine/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* The variables of the golden templates. */
static const char VARS[] =
    "{\"s\":\"Hello World\",\"e\":\"\",\"n\":3,\"z\":0,\"f\":2.5,\"t\":true,\"no\":false,"
    "\"nil\":null,\"l\":[3,1,2],\"el\":[],\"d\":{\"b\":2,\"a\":1,\"C\":null},\"ed\":{},"
    "\"ls\":[\"x\",\"Y\",\"z\"],\"u\":\"h\\u00e9llo \\u4e16 <&>\\\"'\",\"ws\":\"  pad\\t\\n\","
    "\"ml\":\"one\\n  two\\n\\nthree\",\"ms\":[{\"role\":\"system\",\"content\":\"S\"},"
    "{\"role\":\"user\",\"content\":\"U\",\"k\":1},{\"role\":\"assistant\",\"content\":null}],"
    "\"nest\":{\"x\":{\"y\":[10,{\"z\":\"deep\"}]}},\"messages\":[{\"role\":\"user\","
    "\"content\":\"hi\"}],\"add_generation_prompt\":true}";

static void
render(const struct moe_chat *c, const json_t *vars)
{
    struct moe_spans outside = MOE_SPANS_INIT;
    struct moe_buf out = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    int rc = moe_chat_render(c, vars, 1741507626LL, &out, &outside, &e);

    if (rc != 0 && e.code != rc)
        abort();
    if (rc == 0 && !moe_utf8_valid(out.p, out.len))
        abort();
    for (size_t i = 0; rc == 0 && i < outside.n; i++)
        if (outside.p[i].from >= outside.p[i].to || outside.p[i].to > out.len ||
            (i > 0 && outside.p[i - 1].to >= outside.p[i].from))
            abort();
    moe_span_fini(&outside);
    moe_buf_fini(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    json_t *vars = json_loads(VARS, 0, NULL);
    struct moe_err e = { 0, "" };
    struct moe_chat *c;
    int rc;

    /* A byte 1 first: the rest is a tokenizer_config.json. */
    if (n > 0 && p[0] == 1)
        rc = moe_chat_open((const char *)p + 1, n - 1, "config", NULL, 0, "t", &c, &e);
    else
        rc = moe_chat_compile((const char *)p, n, "t", &c, &e);
    if (rc != 0 && (c != NULL || e.code != rc || e.text[0] == '\0'))
        abort();
    if (rc == 0) {
        render(c, vars);
        render(c, vars);
        (void)moe_chat_token(c, "bos_token");
    }
    moe_chat_free(c);
    json_decref(vars);
    return 0;
}
