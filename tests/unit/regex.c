/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns: what is refused and why, empty matches, and that no pattern takes
 * for ever. What patterns match is tested by the pre-tokeniser's golden words.
 */
#include <string.h>

#include "common/engine/regex.h"
#include "tests/tap.h"

static void
refused(const char *pattern, int want)
{
    struct moe_err e = { 0 };
    struct moe_regex *r;

    tap_is_int(moe_regex_compile(pattern, strlen(pattern), "f", &r, &e), want, "%s: %s", pattern,
        e.text);
    moe_regex_free(r);
}

/* Matches of a pattern as "from-to ..."; rc of the last search. */
static int
matches(const char *pattern, const char *text, size_t n, struct moe_buf *out)
{
    struct moe_regex_run *run = NULL;
    struct moe_regex *r = NULL;
    size_t from, to;
    int rc = moe_regex_compile(pattern, strlen(pattern), "f", &r, NULL);

    if (rc == 0)
        rc = moe_regex_run_new(r, &run, NULL);
    if (rc == 0) {
        moe_regex_start(run, text, n);
        while ((rc = moe_regex_next(run, &from, &to, NULL)) == 1)
            moe_buf_fmt(out, "%zu-%zu ", from, to);
    }
    moe_regex_run_free(run);
    moe_regex_free(r);
    return rc;
}

static void
check(const char *pattern, const char *text, const char *want)
{
    struct moe_buf out = MOE_BUF_INIT;

    tap_is_int(matches(pattern, text, strlen(text), &out), 0, "%s searches", pattern);
    tap_is_str(out.p == NULL ? "" : out.p, want, "%s finds", pattern);
    moe_buf_fini(&out);
}

int
main(void)
{
    static char long_text[200000];
    struct moe_buf out = MOE_BUF_INIT;
    char deep[400];

    refused("(a", MOE_EFORMAT);
    refused("a)", MOE_EFORMAT);
    refused("[a", MOE_EFORMAT);
    refused("*a", MOE_EFORMAT);
    refused("a\\", MOE_EFORMAT);
    refused("[z-a]", MOE_EFORMAT);
    refused("\\x{110000}", MOE_EFORMAT);
    refused("\\p{L", MOE_EFORMAT);
    refused("(a)\\1", MOE_EUNSUP);
    refused("[a&&b]", MOE_EUNSUP);
    refused("[[:alpha:]]", MOE_EUNSUP);
    refused("[^\\W]", MOE_EUNSUP);
    refused("\\h", MOE_EUNSUP);
    refused("(?x) a", MOE_EUNSUP);
    refused("(?~a)", MOE_EUNSUP);
    refused("(*COMMIT)", MOE_EUNSUP);
    refused("(?i:ss)", MOE_EUNSUP);
    refused("\\p{Nowhere}", MOE_EUNSUP);
    memset(deep, '(', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = '\0';
    refused(deep, MOE_ELIMIT);

    check("x*", "axxb", "0-0 1-3 4-4 ");
    check("", "\xc3\xa9z", "0-0 2-2 3-3 ");
    check("x*", "", "");
    check("\\n|$", "a\nb", "1-2 3-3 ");
    check("(?i:'s)", "'S'\xc5\xbf", "0-2 2-5 ");

    memset(long_text, 'a', sizeof(long_text));
    tap_is_int(matches("(a+)+[b-c]", long_text, 50, &out), MOE_ELIMIT, "an exploding pattern ends");
    memset(long_text, ' ', sizeof(long_text));
    moe_buf_clear(&out);
    tap_is_int(matches("\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", long_text, sizeof(long_text), &out), 0,
        "a long run of spaces is searched");
    tap_is_str(out.p, "0-200000 ", "and is one match");
    moe_buf_fini(&out);
    return tap_done();
}
