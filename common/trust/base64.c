/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns base64. OpenSSL's decoder passes over blanks and keeps the bits that
 * padding cuts, which would let two texts stand for the same bytes.
 */
#include <stdint.h>

#include "common/trust/base64.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int
value(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    return c == '/' || c == '_' ? 63 : -1;
}

bool
moe_base64_get(struct moe_buf *b, const char *p, size_t n)
{
    if (n % 4 != 0)
        return false;
    for (size_t i = 0; i < n; i += 4) {
        int pad = i + 4 < n || p[i + 3] != '=' ? 0 : p[i + 2] == '=' ? 2 : 1;
        uint32_t v = 0;
        for (int k = 0; k < 4; k++) {
            int x = k >= 4 - pad ? 0 : value((unsigned char)p[i + (size_t)k]);
            if (x < 0)
                return false;
            v = v << 6 | (uint32_t)x;
        }
        if ((pad == 1 && (v & 0xff) != 0) || (pad == 2 && (v & 0xffff) != 0))
            return false;
        for (int k = 0; k < 3 - pad; k++)
            moe_buf_byte(b, (char)(v >> (16 - 8 * k)));
    }
    return !b->bad;
}

void
moe_base64_put(struct moe_buf *b, const void *p, size_t n)
{
    const unsigned char *s = p;

    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i < 3 ? n - i : 3;
        uint32_t v = (uint32_t)s[i] << 16 | (left > 1 ? (uint32_t)s[i + 1] << 8 : 0) |
            (left > 2 ? s[i + 2] : 0u);
        for (size_t k = 0; k < 4; k++)
            moe_buf_byte(b, k <= left ? letters[v >> (18 - 6 * k) & 63] : '=');
    }
}
