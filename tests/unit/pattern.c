/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns: texts that match or not, as Python has it; what is refused. */
#include <string.h>

#include "common/engine/pattern.h"
#include "tests/golden.h"
#include "tests/tap.h"

static void
refused(const char *text, int code)
{
    struct moe_pattern *t = NULL;
    struct moe_err e = { 0 };
    int rc = moe_pattern_compile(text, strlen(text), &t, &e);

    tap_ok(rc == code && t == NULL && e.text[0] != '\0', "refused: %s: %s", text, e.text);
    moe_pattern_free(t);
}

int
main(void)
{
    const json_t *cases = json_object_get(golden_json("text/pattern.json"), "cases"), *c, *v;
    static char big[MOE_PATTERN_MAX_BYTES + 2];
    size_t i, k;

    tap_ok(json_array_size(cases) > 40, "many patterns");
    json_array_foreach (cases, i, c) {
        const json_t *p = json_object_get(c, "pattern");
        struct moe_pattern *t = NULL;
        struct moe_err e = { 0 };

        if (!tap_ok(moe_pattern_compile(json_string_value(p), json_string_length(p), &t, &e) == 0,
            "%s %s", json_string_value(p), e.text))
            continue;
        for (int want = 0; want < 2; want++) {
            json_array_foreach (json_object_get(c, want ? "yes" : "no"), k, v) {
                bool yes = !want;

                (void)moe_pattern_test(t, json_string_value(v), json_string_length(v), &yes, &e);
                tap_is_int(yes, want, "pattern %zu %s: text %zu", i, json_string_value(p), k);
            }
        }
        moe_pattern_free(t);
    }
    refused("(", MOE_EFORMAT);
    refused(")", MOE_EFORMAT);
    refused("a)", MOE_EFORMAT);
    refused("[a", MOE_EFORMAT);
    refused("[z-a]", MOE_EFORMAT);
    refused("[a-\\d]", MOE_EFORMAT);
    refused("a{2,1}", MOE_EFORMAT);
    refused("a{", MOE_EFORMAT);
    refused("*", MOE_EFORMAT);
    refused("a**", MOE_EFORMAT);
    refused("\\", MOE_EFORMAT);
    refused("\\q", MOE_EFORMAT);
    refused("\\u12", MOE_EFORMAT);
    refused("\\u{110000}", MOE_EFORMAT);
    refused("\377", MOE_EFORMAT);
    refused("(?=a)b", MOE_EUNSUP);
    refused("(?<!a)b", MOE_EUNSUP);
    refused("(a+)\\1", MOE_EUNSUP);
    refused("\\bword", MOE_EUNSUP);
    refused("\\p{L}", MOE_EUNSUP);
    refused("\\ud83d", MOE_EUNSUP);
    refused("a{5000}", MOE_ELIMIT);
    refused("((a{1,100}){1,100}){1,100}", MOE_ELIMIT);
    refused("(((((((((a{0}){9999}){9}){9}){9}){9}){9}){9}){9}){9}", MOE_ELIMIT);
    memset(big, 'a', sizeof(big) - 1);
    refused(big, MOE_ELIMIT);
    return tap_done();
}
