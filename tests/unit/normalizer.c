/* SPDX-License-Identifier: Apache-2.0 */
/* Normal forms and replacements as the reference library makes them. */
#include <stdlib.h>
#include <string.h>

#include "common/engine/normalizer.h"
#include "tests/golden.h"
#include "tests/tap.h"

static void
check(const json_t *node, const json_t *texts, const json_t *want)
{
    struct moe_normalizer *nz = NULL;
    struct moe_err e = { 0 };
    char *name = json_dumps(node, JSON_COMPACT | JSON_ENSURE_ASCII);
    int rc = moe_normalizer_parse(node, "node", &nz, &e);

    tap_ok(rc == 0, "%s is read %s", name, e.text);
    for (size_t i = 0; rc == 0 && i < json_array_size(texts); i++) {
        const json_t *text = json_array_get(texts, i), *out = json_array_get(want, i);
        struct moe_buf got = MOE_BUF_INIT, tmp = MOE_BUF_INIT;

        rc = moe_normalizer_run(nz, json_string_value(text), json_string_length(text), &got, &tmp,
            &e);
        tap_ok(rc == 0 && got.len == json_string_length(out) &&
            (got.len == 0 || memcmp(got.p, json_string_value(out), got.len) == 0),
            "%s: text %zu %s", name, i, e.text);
        moe_buf_fini(&got);
        moe_buf_fini(&tmp);
    }
    free(name);
    moe_normalizer_free(nz);
}

static void
refused(const char *json, int want)
{
    json_t *o = json_loads(json, 0, NULL);
    struct moe_normalizer *nz;

    tap_is_int(moe_normalizer_parse(o, "node", &nz, NULL), want, "%s", json);
    json_decref(o);
}

int
main(void)
{
    const json_t *all = golden_json("text/parts.json");
    const json_t *list = json_object_get(all, "normalizers");

    tap_ok(json_array_size(list) > 0, "there are nodes");
    for (size_t i = 0; i < json_array_size(list); i++)
        check(json_object_get(json_array_get(list, i), "node"),
            json_object_get(all, "normalizer_texts"),
            json_object_get(json_array_get(list, i), "out"));
    refused("{\"type\": \"Lowercase\"}", MOE_EUNSUP);
    refused("{\"type\": \"Prepend\"}", MOE_EFORMAT);
    refused("{\"type\": \"Replace\", \"content\": \"\", \"pattern\": 1}", MOE_EFORMAT);
    refused("{}", MOE_EFORMAT);
    return tap_done();
}
