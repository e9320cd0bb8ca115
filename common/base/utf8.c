/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns decoding and encoding of UTF-8 characters.
 */
#include <string.h>

#include "common/base/utf8.h"

/*
 * Table 3-7 of Unicode 16: the length a first byte announces and the range of
 * the second byte. Later bytes are 80..BF.
 */
static size_t
lead(unsigned char c, unsigned char *lo, unsigned char *hi)
{
    *lo = 0x80;
    *hi = 0xbf;
    if (c < 0x80)
        return 1;
    if (c < 0xc2 || c > 0xf4)
        return 0;
    if (c < 0xe0)
        return 2;
    if (c < 0xf0) {
        if (c == 0xe0)
            *lo = 0xa0;
        if (c == 0xed)
            *hi = 0x9f;
        return 3;
    }
    if (c == 0xf0)
        *lo = 0x90;
    if (c == 0xf4)
        *hi = 0x8f;
    return 4;
}

/* How many bytes at p fit one character, and how many it needs (0: none). */
static size_t
scan(const char *p, size_t n, size_t *need)
{
    unsigned char lo, hi;
    size_t i = 1;

    *need = n == 0 ? 0 : lead((unsigned char)*p, &lo, &hi);
    if (*need == 0)
        return 0;
    while (i < *need && i < n) {
        unsigned char c = (unsigned char)p[i];

        if (c < lo || c > hi)
            break;
        lo = 0x80;
        hi = 0xbf;
        i++;
    }
    return i;
}

size_t
moe_utf8_len(const char *p, size_t n)
{
    size_t need, got = scan(p, n, &need);

    return got == need ? got : 0;
}

size_t
moe_utf8_get(const char *p, size_t n, uint32_t *c)
{
    static const unsigned char mask[5] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    size_t k = moe_utf8_len(p, n);

    if (k == 0)
        return 0;
    *c = (unsigned char)p[0] & mask[k];
    for (size_t i = 1; i < k; i++)
        *c = *c << 6 | ((unsigned char)p[i] & 0x3f);
    return k;
}

size_t
moe_utf8_put(char *p, uint32_t c)
{
    if (c < 0x80) {
        p[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        p[0] = (char)(0xc0 | c >> 6);
        p[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        if (c >= 0xd800 && c < 0xe000)
            return 0;
        p[0] = (char)(0xe0 | c >> 12);
        p[1] = (char)(0x80 | (c >> 6 & 0x3f));
        p[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    if (c > 0x10ffff)
        return 0;
    p[0] = (char)(0xf0 | c >> 18);
    p[1] = (char)(0x80 | (c >> 12 & 0x3f));
    p[2] = (char)(0x80 | (c >> 6 & 0x3f));
    p[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

bool
moe_utf8_valid(const char *p, size_t n)
{
    while (n > 0) {
        size_t k = moe_utf8_len(p, n);

        if (k == 0)
            return false;
        p += k;
        n -= k;
    }
    return true;
}

size_t
moe_utf8_bad(const char *p, size_t n, bool *cut)
{
    size_t need, got = scan(p, n, &need);

    *cut = need > 0 && got == n && got < need;
    return need == 0 ? (n > 0) : got;
}

static bool
unseemly(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
        (c >= 0x2066 && c <= 0x2069);
}

size_t
moe_utf8_show(char dst[static 4], const char *p, size_t n, size_t *used)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char byte = (unsigned char)*p;
    uint32_t c;
    size_t k = moe_utf8_get(p, n, &c);

    if (k > 0 && !unseemly(c)) {
        memcpy(dst, p, k);
        *used = k;
        return k;
    }
    dst[0] = '\\';
    dst[1] = 'x';
    dst[2] = hex[byte >> 4];
    dst[3] = hex[byte & 15];
    *used = 1;
    return 4;
}
