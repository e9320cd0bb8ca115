/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of numbers: every spelling of many small numbers against exact integer
 * arithmetic, and bounds of many digits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/matcher.h"
#include "common/engine/numberset.h"
#include "tests/tap.h"

/* In thousandths; LONG_MIN-like values mean none. */
#define NONE (-999999999L)

struct spec { long min, above, max, below, multiple, other; };

static void
bound(struct moe_numberset *s, enum moe_bound kind, long v)
{
    struct moe_decimal d;
    char text[32];
    int n = snprintf(text, sizeof(text), "%lde-3", v);

    if (v != NONE && (moe_numberset_decimal(text, (size_t)n, &d, NULL) != 0
        || moe_numberset_bound(s, kind, &d, NULL) != 0))
        abort();
}

static void
multiple(struct moe_numberset *s, long v, bool divides)
{
    struct moe_decimal d;
    char text[32];
    int n = snprintf(text, sizeof(text), "%lde-3", v);

    if (v != NONE && (moe_numberset_decimal(text, (size_t)n, &d, NULL) != 0
        || moe_numberset_multiple(s, &d, divides, NULL) != 0))
        abort();
}

static struct moe_matcher *
matcher(const struct moe_numberset *s, struct moe_grammar **g)
{
    struct moe_matcher *m = NULL;
    struct moe_err e = { 0 };
    uint32_t rule;

    (void)moe_grammar_new(g, NULL);
    rule = moe_grammar_rule(*g);
    if (moe_numberset_add(*g, (*g)->rule[rule].start, s, (*g)->rule[rule].end, &e) != 0
        || moe_grammar_finish(*g, rule, &e) != 0 || moe_matcher_new(*g, NULL, &m, &e) != 0)
        tap_ok(false, "a set: %s", e.text);
    return m;
}

static bool
takes(struct moe_matcher *m, const char *p)
{
    bool ok = false;

    return moe_matcher_restart(m, NULL) == 0 && moe_matcher_bytes(m, p, strlen(p), &ok, NULL) == 0
        && ok && moe_matcher_complete(m);
}

static bool
in(const struct spec *p, long v)
{
    return (p->min == NONE || v >= p->min) && (p->above == NONE || v > p->above)
        && (p->max == NONE || v <= p->max) && (p->below == NONE || v < p->below)
        && (p->multiple == NONE || v % p->multiple == 0)
        && (p->other == NONE || v % p->other != 0);
}

/* v thousandths, spelled in several ways. */
static bool
spelled(struct moe_matcher *m, long v, bool want)
{
    const char *sign = v < 0 ? "-" : "";
    long a = labs(v);
    char text[64];
    bool ok;

    (void)snprintf(text, sizeof(text), "%s%ld.%03ld", sign, a / 1000, a % 1000);
    ok = takes(m, text) == want;
    (void)snprintf(text, sizeof(text), "%s%ld.%03ld00", sign, a / 1000, a % 1000);
    ok = ok && takes(m, text) == want;
    (void)snprintf(text, sizeof(text), "%s%ld.%05ldE+2", sign, a / 100000, a % 100000);
    ok = ok && takes(m, text) == want;
    (void)snprintf(text, sizeof(text), "%s%ld.%01lde-2", sign, a / 10, a % 10);
    ok = ok && takes(m, text) == want;
    if (a % 1000 == 0) {
        (void)snprintf(text, sizeof(text), "%s%ld", sign, a / 1000);
        ok = ok && takes(m, text) == want;
        (void)snprintf(text, sizeof(text), "%s%lde0", sign, a / 1000);
        ok = ok && takes(m, text) == want;
        (void)snprintf(text, sizeof(text), "%s%ld0e-1", sign, a / 1000);
        ok = ok && takes(m, text) == (want && a > 0);
        (void)snprintf(text, sizeof(text), "%s0%ld", sign, a / 1000);
        ok = ok && !takes(m, text);
    }
    return ok;
}

static void
check(struct spec p)
{
    struct moe_numberset s = { .n_bounds = 0 };
    struct moe_grammar *g;
    struct moe_matcher *m;
    long v = -12500;
    bool ok = true;

    bound(&s, MOE_BOUND_MIN, p.min);
    bound(&s, MOE_BOUND_ABOVE, p.above);
    bound(&s, MOE_BOUND_MAX, p.max);
    bound(&s, MOE_BOUND_BELOW, p.below);
    multiple(&s, p.multiple, true);
    multiple(&s, p.other, false);
    if ((m = matcher(&s, &g)) != NULL) {
        for (; ok && v <= 12500; v += v % 250 == 0 || v % 250 == 249 ? 1 : 31)
            ok = spelled(m, v, in(&p, v));
        for (v = -200000; ok && v <= 200000; v += 500)
            ok = spelled(m, v, in(&p, v));
        tap_ok(ok, "%ld %ld %ld %ld %ld %ld: up to %ld thousandths", p.min, p.above, p.max,
            p.below, p.multiple, p.other, v);
    }
    moe_matcher_free(m);
    moe_grammar_free(g);
}

static void
large(void)
{
    static const char max[] = "123456789012345678901234567890.5";
    struct moe_numberset s = { .n_bounds = 0 };
    struct moe_decimal d;
    struct moe_grammar *g;
    struct moe_matcher *m;
    struct moe_err e;

    (void)moe_numberset_decimal(max, strlen(max), &d, &e);
    (void)moe_numberset_bound(&s, MOE_BOUND_MAX, &d, &e);
    m = matcher(&s, &g);
    tap_ok(takes(m, max) && takes(m, "123456789012345678901234567890.49999999999"),
        "up to a bound");
    tap_ok(!takes(m, "123456789012345678901234567890.50000000001")
        && !takes(m, "123456789012345678901234567891"), "of many digits");
    moe_matcher_free(m);
    moe_grammar_free(g);
    tap_is_int(moe_numberset_decimal("1e400", 5, &d, &e), MOE_ELIMIT, "1e400");
    tap_is_int(moe_numberset_decimal("x", 1, &d, &e), MOE_EFORMAT, "x");
    tap_is_int(moe_numberset_decimal("1x", 2, &d, &e), MOE_EFORMAT, "1x");
    s = (struct moe_numberset){ .n_bounds = 0 };
    m = matcher(&s, &g);
    tap_ok(takes(m, "-12.50e-7") && takes(m, "0") && takes(m, "-0.0E+12"), "all numbers");
    tap_ok(!takes(m, "-") && !takes(m, "01") && !takes(m, "1.") && !takes(m, ".5")
        && !takes(m, "+1") && !takes(m, "1e") && !takes(m, "1e100"), "no others");
    moe_matcher_free(m);
    moe_grammar_free(g);
}

int
main(void)
{
    check((struct spec){ 0, NONE, 150000, NONE, 1000, NONE });
    check((struct spec){ NONE, -5000, NONE, 5000, 1000, NONE });
    check((struct spec){ 127000, NONE, 131072000, NONE, 1000, NONE });
    check((struct spec){ -1500, NONE, 2250, NONE, NONE, NONE });
    check((struct spec){ NONE, -1500, NONE, 2250, NONE, NONE });
    check((struct spec){ -12000, NONE, -250, NONE, NONE, NONE });
    check((struct spec){ NONE, 0, NONE, NONE, NONE, NONE });
    check((struct spec){ NONE, NONE, NONE, 0, NONE, NONE });
    check((struct spec){ 3000, NONE, 3000, NONE, NONE, NONE });
    check((struct spec){ -125, NONE, -125, NONE, NONE, NONE });
    check((struct spec){ 0, NONE, 0, NONE, NONE, NONE });
    check((struct spec){ NONE, NONE, NONE, NONE, 5000, NONE });
    check((struct spec){ NONE, NONE, NONE, NONE, 250, NONE });
    check((struct spec){ NONE, NONE, 100000, NONE, 1500, NONE });
    check((struct spec){ NONE, NONE, NONE, NONE, 1000, 3000 });
    check((struct spec){ 7500, NONE, NONE, NONE, 125, 250 });
    large();
    return tap_done();
}
