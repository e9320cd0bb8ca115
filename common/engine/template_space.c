/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns what white space is in templates.
 */
#include <stddef.h>

#include "common/base/utf8.h"
#include "common/engine/template_space.h"

bool
moe_template_space_is(uint32_t c)
{
    if (c < 0x80)
        return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20);
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
        c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

const char *
moe_template_space_skip(const char *p, const char *end)
{
    uint32_t c = 0;
    size_t k;

    while ((k = moe_utf8_get(p, (size_t)(end - p), &c)) > 0 && moe_template_space_is(c))
        p += k;
    return p;
}

const char *
moe_template_space_rstrip(const char *p, const char *end)
{
    while (p < end) {
        const char *q = end - 1;
        uint32_t c = 0;

        while (q > p && ((unsigned char)*q & 0xc0) == 0x80)
            q--;
        if (moe_utf8_get(q, (size_t)(end - q), &c) == 0 || !moe_template_space_is(c))
            break;
        end = q;
    }
    return end;
}
