/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as an index, compared with a header made of the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "common/formats/shards.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},"
        "\"b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[1,2]}}";
    struct moe_err e = { 0, "" };
    struct moe_shards *s;
    struct moe_safet *h;

    if (moe_shards_parse((const char *)p, n, "fuzz", &s, &e) != 0) {
        if (s != NULL || e.text[0] == '\0')
            abort();
        return 0;
    }
    if (moe_shards_files(s) == 0 ||
        moe_safet_parse(header, strlen(header), 2, "header", &h, &e) != 0)
        abort();
    for (size_t f = 0; f < moe_shards_files(s); f++) {
        const char *name = moe_shards_file(s, f);

        if (!moe_shards_name_ok(name, strlen(name)) || name[0] == '/' ||
            strncmp(name, "../", 3) == 0 || strstr(name, "/../") != NULL ||
            (f > 0 && strcmp(moe_shards_file(s, f - 1), name) >= 0))
            abort();
        (void)moe_shards_check(s, f, h, &e);
    }
    moe_safet_free(h);
    moe_shards_free(s);
    return 0;
}
