/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any grammar is refused or can be followed: whatever bytes come, the place is
 * known or the way is refused, and from every place the output can be ended.
 */
/* covers: common/engine/gbnf.c common/engine/grammar.c common/engine/matcher.c */
/* covers: common/engine/codeset.c */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/gbnf.h"
#include "common/engine/matcher.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Go on by some byte that is a way on, the later of those tried by chance. */
static int
any_way(struct moe_matcher *m, unsigned *x)
{
    bool ok = false;

    for (int i = 0; i < 256; i++) {
        char c = (char)((*x >> 8) + (unsigned)i);
        int rc = moe_matcher_bytes(m, &c, 1, &ok, NULL);

        if (rc != 0)
            return rc;
        if (ok)
            break;
    }
    *x = *x * 1103515245 + 12345;
    if (!ok && !moe_matcher_complete(m))
        abort();
    return ok ? 0 : 1;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct moe_err e = { 0, "" };
    struct moe_grammar *g;
    struct moe_matcher *m;
    unsigned x = (unsigned)n;
    bool ok;
    int rc = moe_gbnf_parse((const char *)p, n, "g", &g, &e);

    if (rc != 0) {
        if (g != NULL || e.code != rc || e.text[0] == '\0')
            abort();
        return 0;
    }
    rc = moe_matcher_new(g, NULL, &m, &e);
    for (int i = 0; rc == 0 && i < 64; i++)
        rc = any_way(m, &x);
    if (rc == 0 && (rc = moe_matcher_restart(m, &e)) == 0)
        (void)moe_matcher_bytes(m, (const char *)p, n, &ok, &e);
    moe_matcher_free(m);
    moe_grammar_free(g);
    return 0;
}
