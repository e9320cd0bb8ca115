/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grammars: texts that meet them or do not, as xgrammar has it; what is refused
 * and how fast; what following costs.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/engine/gbnf.h"
#include "common/engine/matcher.h"
#include "tests/golden.h"
#include "tests/tap.h"

/* 1: the text meets the grammar; 0: not; negative: a failure. */
static int
meets(struct moe_matcher *m, const char *p, size_t n)
{
    struct moe_err e;
    bool ok = false;
    int rc = moe_matcher_restart(m, &e);

    if (rc == 0)
        rc = moe_matcher_bytes(m, p, n, &ok, &e);
    return rc != 0 ? rc : ok && moe_matcher_complete(m);
}

static void
golden(void)
{
    const json_t *cases = json_object_get(golden_json("text/gbnf.json"), "cases"), *c, *t;
    size_t i, k;

    tap_ok(json_array_size(cases) > 20, "many grammars");
    json_array_foreach (cases, i, c) {
        const char *text = json_string_value(json_object_get(c, "grammar"));
        struct moe_grammar *g = NULL;
        struct moe_matcher *m = NULL;
        struct moe_err e = { 0 };

        if (!tap_ok(moe_gbnf_parse(text, strlen(text), "g", &g, &e) == 0
            && moe_matcher_new(g, NULL, &m, &e) == 0, "grammar %zu %s", i, e.text))
            continue;
        for (int valid = 0; valid < 2; valid++) {
            json_array_foreach (json_object_get(c, valid ? "valid" : "invalid"), k, t)
                tap_is_int(meets(m, json_string_value(t), json_string_length(t)), valid,
                    "grammar %zu: %s", i, json_string_value(t));
        }
        moe_matcher_free(m);
        moe_grammar_free(g);
    }
}

static void
refused(const char *text, int code, const char *words)
{
    struct moe_grammar *g = NULL;
    struct moe_err e = { 0 };
    uint64_t ns = moe_clock_cpu_ns();
    int rc = moe_gbnf_parse(text, strlen(text), "g", &g, &e);

    ns = moe_clock_cpu_ns() - ns;
    tap_ok(rc == code && g == NULL && strstr(e.text, words) != NULL, "refused: %s", e.text);
    /* Ten times what is promised: the machine may be busy, the build a checked one. */
    tap_ok(ns < 500000000, "in %lu us", (unsigned long)(ns / 1000));
    moe_grammar_free(g);
}

static void
refusals(void)
{
    refused("root ::= root", MOE_EFORMAT, "no text");
    refused("root ::= root \"a\" | \"a\"", MOE_EFORMAT, "begin with itself");
    refused("root ::= a\na ::= b? root \"x\" | \"y\"\nb ::= \"z\"", MOE_EFORMAT,
        "begin with itself");
    refused("root ::= \"a\" root", MOE_EFORMAT, "no text");
    refused("a ::= \"a\"", MOE_EFORMAT, "no rule root");
    refused("root ::= a", MOE_EFORMAT, "g:1: rule a is not there");
    refused("root ::= \"a\"\nroot ::= \"b\"", MOE_EFORMAT, "g:2: the rule is there already");
    refused("root = \"a\"", MOE_EFORMAT, "::= was expected");
    refused("root ::= \"a", MOE_EFORMAT, "\" was expected");
    refused("root ::= [a", MOE_EFORMAT, "] was expected");
    refused("root ::= (\"a\"", MOE_EFORMAT, ") was expected");
    refused("root ::= \"a\")", MOE_EFORMAT, "end of a line");
    refused("root ::= [z-a]", MOE_EFORMAT, "backwards");
    refused("root ::= \"\\q\"", MOE_EFORMAT, "escape");
    refused("root ::= \"\\ud800\"", MOE_EFORMAT, "no character");
    refused("root ::= \"\\x4\"", MOE_EFORMAT, "hexadecimal");
    refused("root ::= \"a\"{3,2}", MOE_EFORMAT, "at most");
    refused("root ::= \"a\"{x}", MOE_EFORMAT, "number");
    refused("root ::= \"a\"{2", MOE_EFORMAT, "} was expected");
    refused("root ::= *", MOE_EFORMAT, "name was expected");
    refused("root ::= \"\377\"", MOE_EFORMAT, "UTF-8");
    refused("", MOE_EFORMAT, "no rule root");
    refused("root ::= \"a\"{1000000}", MOE_ELIMIT, "too often");
    refused("root ::= ((\"abc\"{1000}){1000}){1000}", MOE_ELIMIT, "grammar: more than");
    refused("root ::= ((((\"a\"{0,99}){0,99}){0,99}){0,99}){0,99}", MOE_ELIMIT,
        "grammar: more than");
    refused("root ::= (((\"\"{99}){99}){99}){99}", MOE_ELIMIT, "");
    refused("root ::= ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((\"a\""
        "))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))", MOE_ELIMIT,
        "too many brackets");
}

/* Texts that a bad automaton would take for ever over, or all memory. */
static void
costs(const char *text, const char *unit, size_t times, int want)
{
    struct moe_grammar *g = NULL;
    struct moe_matcher *m = NULL;
    struct moe_err e = { 0 };
    bool ok = true;
    int rc;

    if (!tap_ok(moe_gbnf_parse(text, strlen(text), "g", &g, &e) == 0
        && moe_matcher_new(g, NULL, &m, &e) == 0, "%s %s", text, e.text))
        return;
    rc = moe_matcher_restart(m, &e);
    for (size_t i = 0; rc == 0 && ok && i < times; i++)
        rc = moe_matcher_bytes(m, unit, strlen(unit), &ok, &e);
    tap_is_int(rc == 0 ? ok : rc, want, "%s: %zu times %s", text, times, unit);
    moe_matcher_free(m);
    moe_grammar_free(g);
}

int
main(void)
{
    golden();
    refusals();
    costs("root ::= (\"a\" | \"a\")* (\"a\" | \"aa\")* \"b\"", "a", 100000, 1);
    costs("root ::= \"a\" root | \"b\"", "a", 100000, 1);
    costs("root ::= \"(\" root \")\" | \"\"", "(", 200, 1);
    costs("root ::= \"(\" root \")\" | \"\"", "(", 300, 0);
    costs("root ::= [^x]{0,9000}", "\303\251", 8999, 1);
    costs("root ::= [^x]{0,9000}", "\303\251", 9001, 0);
    costs("root ::= (\"(\" root \")\")*", "(()())", 20000, 1);
    return tap_done();
}
