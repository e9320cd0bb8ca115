/* SPDX-License-Identifier: Apache-2.0 */
/* Words as the reference library cuts them, for every kind, behaviour and many patterns. */
#include <string.h>

#include "common/engine/pretokenizer.h"
#include "tests/golden.h"
#include "tests/tap.h"

struct words { const json_t *want; size_t n; bool same; };

static int
word(void *ctx, const char *p, size_t n, struct moe_err *e)
{
    struct words *w = ctx;
    const json_t *want = json_array_get(w->want, w->n++);

    (void)e;
    w->same = w->same && want != NULL && json_string_length(want) == n &&
        memcmp(json_string_value(want), p, n) == 0;
    return 0;
}

static void
check(const json_t *o, const json_t *texts, size_t i)
{
    const json_t *node = json_object_get(o, "node"), *words = json_object_get(o, "words");
    struct moe_pretokenizer_run *run = NULL;
    struct moe_pretokenizer *pt = NULL;
    struct moe_err e = { 0 };
    bool same = true;
    int rc = moe_pretokenizer_parse(node, "node", &pt, &e);

    if (words == NULL) {
        tap_ok(rc == MOE_EUNSUP || rc == MOE_EFORMAT, "node %zu is refused: %s", i, e.text);
        moe_pretokenizer_free(pt);
        return;
    }
    if (rc == 0)
        rc = moe_pretokenizer_run_new(pt, &run, &e);
    for (size_t t = 0; rc == 0 && t < json_array_size(texts); t++) {
        const json_t *text = json_array_get(texts, t);
        struct words w = { json_array_get(words, t), 0, true };

        rc = moe_pretokenizer_split(run, json_string_value(text), json_string_length(text), true,
            word, &w, &e);
        same = same && w.same && w.n == json_array_size(w.want);
    }
    if (!tap_ok(rc == 0 && same, "node %zu %s", i, e.text)) {
        char *s = json_dumps(node, JSON_COMPACT);

        tap_diag("%s", s);
        free(s);
    }
    moe_pretokenizer_run_free(run);
    moe_pretokenizer_free(pt);
}

/* Many steps are refused, and so is nesting without end. */
static void
test_limits(void)
{
    json_t *o = json_pack("{s:s, s:[]}", "type", "Sequence", "pretokenizers"), *list;
    struct moe_pretokenizer *pt;

    list = json_object_get(o, "pretokenizers");
    for (int i = 0; i <= MOE_PRETOKENIZER_MAX_STEPS; i++)
        (void)json_array_append_new(list,
            json_pack("{s:s, s:b}", "type", "Digits", "individual_digits", 1));
    tap_is_int(moe_pretokenizer_parse(o, "node", &pt, NULL), MOE_ELIMIT, "too many steps");
    json_decref(o);
    o = json_pack("{s:s}", "type", "Digits");
    for (int i = 0; i < 2 * MOE_PRETOKENIZER_MAX_STEPS; i++)
        o = json_pack("{s:s, s:[o]}", "type", "Sequence", "pretokenizers", o);
    tap_is_int(moe_pretokenizer_parse(o, "node", &pt, NULL), MOE_ELIMIT, "sequences too deep");
    json_decref(o);
}

int
main(void)
{
    const json_t *all = golden_json("text/parts.json");
    const json_t *list = json_object_get(all, "pre_tokenizers");

    tap_ok(json_array_size(list) > 150, "there are nodes");
    for (size_t i = 0; i < json_array_size(list); i++)
        check(json_array_get(list, i), json_object_get(all, "texts"), i);
    test_limits();
    return tap_done();
}
