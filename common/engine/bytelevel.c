/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the mapping between bytes and the characters of byte-level tokens.
 */
#include "common/base/utf8.h"
#include "common/engine/bytelevel.h"

/* The bytes without a printable character of their own: 0-32, 127-160, 173. */
enum { LOW_END = 33, MID = 127, MID_END = 161, SOFT_HYPHEN = 173 };
enum { LOW_AT = 0x100, MID_AT = LOW_AT + LOW_END, HYPHEN_AT = MID_AT + MID_END - MID };

static uint32_t
to_char(unsigned char b)
{
    if (b < LOW_END)
        return LOW_AT + b;
    if (b >= MID && b < MID_END)
        return MID_AT + b - MID;
    return b == SOFT_HYPHEN ? (uint32_t)HYPHEN_AT : b;
}

/* The byte of character c, or -1. */
static int
to_byte(uint32_t c)
{
    if (c > HYPHEN_AT)
        return -1;
    if (c == HYPHEN_AT)
        return SOFT_HYPHEN;
    if (c >= MID_AT)
        return (int)(c - MID_AT + MID);
    if (c >= LOW_AT)
        return (int)(c - LOW_AT);
    return to_char((unsigned char)c) == c ? (int)c : -1;
}

void
moe_bytelevel_map(const char *p, size_t n, struct moe_buf *out)
{
    char *to = moe_buf_room(out, 2 * n);
    size_t at = 0;

    if (to == NULL)
        return;
    for (size_t i = 0; i < n; i++)
        at += moe_utf8_put(to + at, to_char((unsigned char)p[i]));
    out->len += at;
    out->p[out->len] = '\0';
}

void
moe_bytelevel_unmap(const char *p, size_t n, struct moe_buf *out)
{
    size_t was = out->len;

    for (size_t i = 0; i < n;) {
        uint32_t c = 0;
        size_t k = moe_utf8_get(p + i, n - i, &c);
        int b = k == 0 ? -1 : to_byte(c);

        if (b < 0) {
            if (!out->bad)
                out->len = was;
            moe_buf_add(out, p, n);
            return;
        }
        moe_buf_byte(out, (char)b);
        i += k;
    }
}
