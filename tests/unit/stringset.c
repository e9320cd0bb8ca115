/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of strings: all short strings over some letters against pattern, length
 * and words by themselves; the ways in which they are told apart.
 */
#include <stdlib.h>
#include <string.h>

#include "common/engine/matcher.h"
#include "common/engine/spell.h"
#include "common/engine/stringset.h"
#include "tests/tap.h"

static const char *const letters[] = { "a", "b", "z", "\303\251", "\\n", "\\u0061",
    "\\ud83d\\ude00" };
static const char *const means[] = { "a", "b", "z", "\303\251", "\n", "a", "\360\237\230\200" };

struct places { struct moe_grammar *g; uint32_t end; uint32_t told[64]; };

static uint32_t
lead(void *ctx, uint32_t told)
{
    struct places *p = ctx;
    uint32_t from = moe_grammar_state(p->g);

    /* What is told apart is a letter behind the string. */
    moe_grammar_bytes(p->g, from, (uint8_t)('A' + told), (uint8_t)('A' + told), p->end);
    return from;
}

static struct moe_pattern *
pattern(const char *p)
{
    struct moe_pattern *t = NULL;

    if (p != NULL && moe_pattern_compile(p, strlen(p), &t, NULL) != 0)
        abort();
    return t;
}

static bool
takes(struct moe_matcher *m, const char *p, size_t n)
{
    bool ok = false;

    return moe_matcher_restart(m, NULL) == 0 && moe_matcher_bytes(m, p, n, &ok, NULL) == 0 && ok
        && moe_matcher_complete(m);
}

/* Every string of up to four letters. */
static bool
all_right(struct moe_matcher *m, const struct moe_stringset *s, int *count)
{
    bool ok = true;

    for (int code = 0; ok && code < 8 * 8 * 8 * 8; code++) {
        struct moe_buf text = MOE_BUF_INIT, meant = MOE_BUF_INIT;
        bool want, tell = false;
        uint32_t told = 0;

        moe_buf_byte(&text, '"');
        for (int k = 0, c = code; k < 4; k++, c /= 8) {
            if (c % 8 == 7)
                continue;
            moe_buf_str(&text, letters[c % 8]);
            moe_buf_str(&meant, means[c % 8]);
        }
        (void)moe_stringset_has(s, meant.len == 0 ? "" : meant.p, meant.len, &want, NULL);
        for (size_t k = 0; k < s->n_tell; k++) {
            (void)moe_pattern_test(s->tell[k], meant.len == 0 ? "" : meant.p, meant.len, &tell,
                NULL);
            told |= (uint32_t)tell << k;
        }
        moe_buf_byte(&text, '"');
        for (uint32_t k = 0; ok && k < 4; k++) {
            moe_buf_byte(&text, (char)('A' + k));
            ok = takes(m, text.p, text.len) == (want && k == told);
            text.len--;
        }
        *count += want;
        moe_buf_fini(&text);
        moe_buf_fini(&meant);
    }
    return ok;
}

static void
check(const char *need, const char *tell1, const char *tell2, size_t min, size_t max,
    const char *without)
{
    struct moe_codeset any = MOE_CODESET_INIT;
    struct moe_pattern *p[3] = { pattern(need), pattern(tell1), pattern(tell2) };
    struct moe_stringset_word w = { without, without == NULL ? 0 : strlen(without) };
    struct moe_stringset s = { .min = min, .max = max, .without = &w,
        .n_without = without != NULL };
    struct places places = { NULL, 0, { 0 } };
    struct moe_matcher *m = NULL;
    struct moe_err e = { 0 };
    uint32_t rule;
    int count = 0;

    s.need[0] = p[0];
    s.n_need = need != NULL;
    s.tell[0] = p[1];
    s.tell[1] = p[2];
    s.n_tell = (size_t)(tell1 != NULL) + (tell2 != NULL);
    (void)moe_grammar_new(&places.g, NULL);
    (void)moe_codeset_add(&any, 0, MOE_CODESET_LAST, NULL);
    s.any = moe_grammar_rule(places.g);
    moe_spell_json(places.g, places.g->rule[s.any].start, &any, places.g->rule[s.any].end);
    rule = moe_grammar_rule(places.g);
    places.end = places.g->rule[rule].end;
    if (tap_ok(moe_stringset_add(places.g, places.g->rule[rule].start, &s, lead, &places, &e) == 0
        && moe_grammar_finish(places.g, rule, &e) == 0
        && moe_matcher_new(places.g, NULL, &m, &e) == 0, "a set %s", e.text))
        tap_ok(all_right(m, &s, &count) && count > 0, "%s %s %zu: %d strings",
            need == NULL ? "" : need, without == NULL ? "" : without, min, count);
    moe_matcher_free(m);
    moe_grammar_free(places.g);
    moe_codeset_fini(&any);
    for (int i = 0; i < 3; i++)
        moe_pattern_free(p[i]);
}

int
main(void)
{
    check(NULL, NULL, NULL, 0, SIZE_MAX, NULL);
    check(NULL, NULL, NULL, 2, 3, NULL);
    check(NULL, NULL, NULL, 1, SIZE_MAX, "ab");
    check(NULL, NULL, NULL, 0, 2, "");
    check("^[ab]*$", NULL, NULL, 1, SIZE_MAX, "aba");
    check("b", NULL, NULL, 0, 3, "\303\251b");
    check("^.z", NULL, NULL, 0, SIZE_MAX, NULL);
    check(NULL, "^a", "b$", 0, SIZE_MAX, "ab");
    check("z", "^a", "^$|z.$", 2, 3, NULL);
    check("^(a|b){2}\\s?$", "a", NULL, 0, SIZE_MAX, NULL);
    check("^[^a]*$", "\303\251", NULL, 0, SIZE_MAX, NULL);
    return tap_done();
}
