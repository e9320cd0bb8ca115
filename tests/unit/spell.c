/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How characters are written: each of many code points, in and around sets with
 * odd borders, in UTF-8 and in every form that JSON has.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/engine/matcher.h"
#include "common/engine/spell.h"
#include "tests/tap.h"

static const struct moe_codeset_range borders[] = { { 0x41, 0x41 }, { 0x7F, 0x80 },
    { 0x7FE, 0x801 }, { 0xABC, 0x1FED }, { 0xD7FF, 0xE000 }, { 0xFFFE, 0x10001 },
    { 0x103FF, 0x10400 }, { 0x1F3A7, 0x2ABCD }, { 0x10FFFE, 0x10FFFF }, { 0x5C, 0x5C },
    { 0x22, 0x22 }, { 0x08, 0x0D }, { 0x00, 0x1F } };

typedef void spell_fn(struct moe_grammar *, uint32_t, const struct moe_codeset *, uint32_t);

static struct moe_matcher *
spelled(spell_fn *fn, const struct moe_codeset *s, struct moe_grammar **g)
{
    struct moe_matcher *m = NULL;
    uint32_t rule;

    (void)moe_grammar_new(g, NULL);
    rule = moe_grammar_rule(*g);
    fn(*g, (*g)->rule[rule].start, s, (*g)->rule[rule].end);
    if (moe_grammar_finish(*g, rule, NULL) == 0)
        (void)moe_matcher_new(*g, NULL, &m, NULL);
    return m;
}

static bool
takes(struct moe_matcher *m, const char *p, size_t n)
{
    bool ok = false;

    return moe_matcher_restart(m, NULL) == 0 && moe_matcher_bytes(m, p, n, &ok, NULL) == 0
        && ok && moe_matcher_complete(m);
}

/* The escape of c; upper: digits in capitals. */
static int
escape(char *out, size_t n, uint32_t c, bool upper)
{
    int len;

    if (c <= 0xFFFF)
        len = snprintf(out, n, "\\u%04x", c);
    else
        len = snprintf(out, n, "\\u%04x\\u%04x", 0xD800 + ((c - 0x10000) >> 10),
            0xDC00 + (c & 0x3FF));
    for (char *p = out; upper && *p != '\0'; p++)
        *p = *p >= 'a' && *p <= 'f' ? (char)(*p - 'a' + 'A') : *p;
    return len;
}

/* Every form of c is taken just when c is in the set. */
static bool
right(struct moe_matcher *utf8, struct moe_matcher *json, const struct moe_codeset *s, uint32_t c)
{
    static const char letters[] = "\"\"\\\\//\bb\ff\nn\rr\tt";
    bool in = moe_codeset_has(s, c), plain = c >= 0x20 && c != '"' && c != '\\', ok;
    char text[32];
    size_t n = moe_utf8_put(text, c);

    if (n == 0)     /* a surrogate */
        return !takes(json, text, (size_t)escape(text, sizeof(text), c, false));
    ok = takes(utf8, text, n) == in && takes(json, text, n) == (in && plain);
    ok = ok && takes(json, text, (size_t)escape(text, sizeof(text), c, false)) == in;
    ok = ok && takes(json, text, (size_t)escape(text, sizeof(text), c, true)) == in;
    for (const char *p = letters; *p != '\0'; p += 2) {
        text[0] = '\\';
        text[1] = p[1];
        if ((uint32_t)*p == c)
            ok = ok && takes(json, text, 2) == in;
    }
    return ok;
}

static void
check(const struct moe_codeset *s, const char *what)
{
    struct moe_grammar *g1, *g2;
    struct moe_matcher *utf8 = spelled(moe_spell_utf8, s, &g1);
    struct moe_matcher *json = spelled(moe_spell_json, s, &g2);
    uint32_t c = 0;
    bool ok = utf8 != NULL && json != NULL;

    /* All small ones, then steps, then around each border. */
    for (; ok && c <= 0x10FFFF; c += c < 0x300 ? 1 : 211)
        ok = right(utf8, json, s, c);
    for (size_t i = 0; ok && i < sizeof(borders) / sizeof(*borders); i++) {
        for (uint32_t d = 0; ok && d < 5; d++) {
            c = (borders[i].lo < 2 ? 2 : borders[i].lo) - 2 + d;
            ok = c > 0x10FFFF || right(utf8, json, s, c);
            if (ok && borders[i].hi + d >= 2 && (c = borders[i].hi - 2 + d) <= 0x10FFFF)
                ok = right(utf8, json, s, c);
        }
    }
    tap_ok(ok, "%s: as far as U+%04X", what, c);
    moe_matcher_free(utf8);
    moe_matcher_free(json);
    moe_grammar_free(g1);
    moe_grammar_free(g2);
}

int
main(void)
{
    struct moe_codeset all = MOE_CODESET_INIT, odd = MOE_CODESET_INIT;
    static const char word[] = "\"a\\u00E9\\n\"", other[] = "\"a\303\251n\"";
    struct moe_grammar *g = NULL;
    struct moe_matcher *m = NULL;
    uint32_t rule, to;

    (void)moe_codeset_add(&all, 0, MOE_CODESET_LAST, NULL);
    check(&all, "all characters");
    for (size_t i = 0; i < sizeof(borders) / sizeof(*borders); i++) {
        struct moe_codeset one = MOE_CODESET_INIT;

        (void)moe_codeset_add(&odd, borders[i].lo, borders[i].hi, NULL);
        (void)moe_codeset_add(&one, borders[i].lo, borders[i].hi, NULL);
        check(&one, "one range");
        moe_codeset_fini(&one);
    }
    check(&odd, "many ranges");
    (void)moe_codeset_invert(&odd, NULL);
    check(&odd, "the others");
    moe_codeset_fini(&all);
    moe_codeset_fini(&odd);

    (void)moe_grammar_new(&g, NULL);
    rule = moe_grammar_rule(g);
    to = moe_spell_string(g, g->rule[rule].start, "a\303\251\n", 4);
    moe_grammar_jump(g, to, g->rule[rule].end);
    (void)moe_grammar_finish(g, rule, NULL);
    (void)moe_matcher_new(g, NULL, &m, NULL);
    tap_ok(takes(m, word, strlen(word)), "a string: %s", word);
    tap_ok(!takes(m, other, strlen(other)), "is not another");
    moe_matcher_free(m);
    moe_grammar_free(g);
    return tap_done();
}
