/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees from any text; what is accepted is written by jansson and accepted
 * again, and the typed getters stand whatever they meet.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
get(const json_t *tree, const char *key)
{
    static const char *const only[] = { "a", "b", NULL };
    struct moe_json_at at = { tree, "fuzz" };
    const json_t *v;
    const char *s;
    int64_t i;
    double r;
    bool b;

    (void)moe_json_int(at, key, true, 0, -9, 9, &i, NULL);
    (void)moe_json_real(at, key, true, 0, &r, NULL);
    (void)moe_json_bool(at, key, false, false, &b, NULL);
    (void)moe_json_str(at, key, false, "", &s, NULL);
    (void)moe_json_obj(at, key, true, &v, NULL);
    (void)moe_json_arr(at, key, false, &v, NULL);
    (void)moe_json_only(at, only, NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct moe_err e = { 0, "" };
    json_t *tree, *again;
    char *text;

    if (moe_json_parse((const char *)p, n, "fuzz", &tree, &e) != 0) {
        if (tree != NULL || e.code == 0 || e.text[0] == '\0')
            abort();
        return 0;
    }
    get(tree, "a");
    get(tree, "b");
    if ((text = json_dumps(tree, JSON_ENCODE_ANY | JSON_COMPACT)) != NULL) {
        if (moe_json_parse(text, strlen(text), "again", &again, &e) != 0 ||
            !json_equal(tree, again))
            abort();
        json_decref(again);
    }
    free(text);
    json_decref(tree);
    return 0;
}
