/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees from any YAML, of which every value knows its place.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Depth is limited by the parser. */
static void
walk(const struct moe_yaml *y, const json_t *v)
{
    static const char *const only[] = { "a", "b", NULL };
    struct moe_err e = { 0, "" };
    const char *key;
    json_t *at;
    size_t i;

    if (moe_yaml_fail(y, v, &e, "%s", "here") != MOE_EFORMAT || strncmp(e.text, "f:", 2) != 0 ||
        e.text[2] < '1' || e.text[2] > '9')
        abort();
    (void)moe_yaml_only(y, v, only, &e);
    json_array_foreach((json_t *)v, i, at)
        walk(y, at);
    json_object_foreach((json_t *)v, key, at)
        walk(y, at);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct moe_err e = { 0, "" };
    struct moe_yaml *y;

    if (moe_yaml_parse((const char *)p, n, "f", &y, &e) != 0) {
        if (y != NULL || e.code == 0 || e.text[0] == '\0')
            abort();
        return 0;
    }
    walk(y, moe_yaml_root(y));
    moe_yaml_free(y);
    return 0;
}
