/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stop texts: all cuts of small outputs against a search of the whole, what is
 * held back, limits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/stopper.h"
#include "tests/tap.h"

/* Where the first text to be complete begins, the longest of several; n if none is. */
static size_t
reference(const char *p, size_t n, const char *const *stops)
{
    for (size_t end = 1; end <= n; end++) {
        size_t best = 0;

        for (size_t k = 0; stops[k] != NULL; k++) {
            size_t len = strlen(stops[k]);

            if (len <= end && len > best && memcmp(p + end - len, stops[k], len) == 0)
                best = len;
        }
        if (best > 0)
            return end - best;
    }
    return n;
}

/* Put p in pieces that end where the bits of cut say; what comes out, or NULL on failure. */
static char *
through(const char *p, size_t n, const char *const *stops, unsigned cut, bool *ended)
{
    struct moe_stopper *s = NULL;
    struct moe_buf out = MOE_BUF_INIT;
    size_t from = 0;
    int rc = moe_stopper_new(&s, NULL);

    *ended = false;
    for (size_t k = 0; rc == 0 && stops[k] != NULL; k++)
        rc = moe_stopper_add(s, stops[k], strlen(stops[k]), NULL);
    for (size_t i = 1; rc == 0 && !*ended && i <= n; i++) {
        if (i < n && (cut >> (i - 1) & 1) == 0)
            continue;
        rc = moe_stopper_put(s, p + from, i - from, &out, ended, NULL);
        from = i;
    }
    if (rc == 0 && !*ended)
        rc = moe_stopper_end(s, &out, NULL);
    moe_stopper_free(s);
    if (rc == 0)
        return moe_buf_take(&out);
    moe_buf_fini(&out);
    return NULL;
}

static void
all_cuts(const char *p, const char *const *stops)
{
    size_t n = strlen(p), want = reference(p, n, stops);
    bool same = true, ended;

    for (unsigned cut = 0; cut < 1u << (n - 1); cut++) {
        char *got = through(p, n, stops, cut, &ended);

        same = same && got != NULL && strlen(got) == want && memcmp(got, p, want) == 0
            && ended == (want < n);
        free(got);
    }
    tap_ok(same, "%s: the first %zu bytes, in every cut", p, want);
}

static void
holds(void)
{
    struct moe_stopper *s = NULL;
    struct moe_buf out = MOE_BUF_INIT;
    bool ended;

    (void)moe_stopper_new(&s, NULL);
    (void)moe_stopper_add(s, "abac", 4, NULL);
    (void)moe_stopper_put(s, "xaba", 4, &out, &ended, NULL);
    tap_is_str(out.p, "x", "what may be a beginning is held");
    (void)moe_stopper_put(s, "b", 1, &out, &ended, NULL);
    tap_is_str(out.p, "xab", "and released as soon as it is none");
    (void)moe_stopper_end(s, &out, NULL);
    tap_is_str(out.p, "xabab", "or at the end");
    moe_buf_fini(&out);
    moe_stopper_free(s);
}

static void
limits(void)
{
    static char big[MOE_STOPPER_MAX_BYTES + 1];
    struct moe_stopper *s = NULL;
    struct moe_err e;
    int rc = 0;

    (void)moe_stopper_new(&s, NULL);
    tap_is_int(moe_stopper_add(s, "", 0, &e), MOE_EUSAGE, "an empty text");
    tap_is_int(moe_stopper_add(s, big, sizeof(big), &e), MOE_ELIMIT, "a long text");
    for (int i = 0; i < MOE_STOPPER_MAX && rc == 0; i++)
        rc = moe_stopper_add(s, big, 1, &e);
    tap_is_int(rc, 0, "many texts");
    tap_is_int(moe_stopper_add(s, big, 1, &e), MOE_ELIMIT, "too many texts");
    moe_stopper_free(s);
}

int
main(void)
{
    static const char *const one[] = { "aab", NULL }, *const two[] = { "abc", "b", NULL },
        *const inner[] = { "ab", "cab", "xx", NULL }, *const none[] = { NULL };

    all_cuts("aaaabaab", one);
    all_cuts("aaaacaac", one);
    all_cuts("xxabcabc", two);
    all_cuts("acacabxx", inner);
    all_cuts("zxzxcxab", inner);
    all_cuts("anything", none);
    holds();
    limits();
    return tap_done();
}
