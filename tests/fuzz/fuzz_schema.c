/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any schema is refused or becomes a grammar, and what the grammar takes is
 * JSON. A byte 1 first: the rest is a pattern.
 */
/* covers: common/engine/schema.c common/engine/schema_check.c common/engine/schema_flat.c */
/* covers: common/engine/schema_not.c common/engine/schema_value.c common/engine/schema_array.c */
/* covers: common/engine/schema_object.c common/engine/numberset.c common/engine/stringset.c */
/* covers: common/engine/pattern.c common/engine/spell.c */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/json.h"
#include "common/engine/matcher.h"
#include "common/engine/schema.h"
#include "common/engine/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
one_pattern(const uint8_t *p, size_t n)
{
    struct moe_err e = { 0, "" };
    struct moe_pattern *t;
    bool yes;
    int rc = moe_pattern_compile((const char *)p, n, &t, &e);

    if (rc != 0 && (t != NULL || e.code != rc || e.text[0] == '\0'))
        abort();
    if (rc == 0)
        (void)moe_pattern_test(t, (const char *)p, n, &yes, &e);
    moe_pattern_free(t);
}

/* Go on by some byte that is a way on; ends first where it may, then by chance. */
static int
any_way(struct moe_matcher *m, struct moe_buf *out, unsigned *x)
{
    static const char first[] = "\"}],:0";
    bool ok = false;

    for (int i = 0; i < 262; i++) {
        char c = i < 6 ? first[(*x + (unsigned)i) % 6] : (char)((*x >> 8) + (unsigned)i);
        int rc = moe_matcher_bytes(m, &c, 1, &ok, NULL);

        if (rc != 0)
            return rc;
        if (ok) {
            moe_buf_byte(out, c);
            break;
        }
    }
    *x = *x * 1103515245 + 12345;
    if (!ok && !moe_matcher_complete(m))
        abort();
    return ok ? 0 : 1;
}

/* What was taken is JSON for our own reader, but for what a grammar cannot see. */
static void
read_back(const struct moe_buf *out)
{
    struct moe_err e = { 0, "" };
    json_t *tree = NULL;
    int rc = moe_json_parse(out->p, out->len, "t", &tree, &e);

    if (rc == MOE_EFORMAT && strstr(e.text, "uplicate") == NULL && strstr(e.text, "range") == NULL
        && strstr(e.text, "key") == NULL && strstr(e.text, "U+0000") == NULL)
        abort();
    json_decref(tree);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct moe_buf out = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    struct moe_matcher *m = NULL;
    struct moe_grammar *g;
    unsigned x = (unsigned)n;
    int rc;

    if (n > 0 && p[0] == 1) {
        one_pattern(p + 1, n - 1);
        return 0;
    }
    rc = moe_schema_parse((const char *)p, n, "s", &g, &e);
    if (rc != 0) {
        if (g != NULL || e.code != rc || e.text[0] == '\0')
            abort();
        return 0;
    }
    rc = moe_matcher_new(g, NULL, &m, &e);
    for (int i = 0; rc == 0 && i < 200; i++)
        rc = any_way(m, &out, &x);
    if (rc >= 0 && out.len > 0 && moe_matcher_complete(m))
        read_back(&out);
    moe_buf_fini(&out);
    moe_matcher_free(m);
    moe_grammar_free(g);
    return 0;
}
