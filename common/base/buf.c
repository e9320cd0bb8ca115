/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns growing byte buffers. Does no input or output.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/utf8.h"

void
moe_buf_fini(struct moe_buf *b)
{
    free(b->p);
    *b = (struct moe_buf)MOE_BUF_INIT;
}

void
moe_buf_clear(struct moe_buf *b)
{
    b->len = 0;
    b->bad = false;
    if (b->p != NULL)
        b->p[0] = '\0';
}

char *
moe_buf_room(struct moe_buf *b, size_t n)
{
    if (b->bad)
        return NULL;
    if (b->p == NULL || n >= b->cap - b->len) {
        size_t need, cap;
        char *p;

        if (n > SIZE_MAX / 2 - b->len - 1) {
            b->bad = true;
            return NULL;
        }
        need = b->len + n + 1;
        cap = b->cap < 64 ? 64 : b->cap;
        while (cap < need)
            cap *= 2;
        if ((p = realloc(b->p, cap)) == NULL) {
            b->bad = true;
            return NULL;
        }
        b->p = p;
        b->cap = cap;
    }
    return b->p + b->len;
}

void
moe_buf_add(struct moe_buf *b, const void *p, size_t n)
{
    char *to = moe_buf_room(b, n);

    if (to == NULL)
        return;
    if (n > 0)
        memcpy(to, p, n);
    b->len += n;
    b->p[b->len] = '\0';
}

void
moe_buf_str(struct moe_buf *b, const char *s)
{
    moe_buf_add(b, s, strlen(s));
}

void
moe_buf_byte(struct moe_buf *b, char c)
{
    moe_buf_add(b, &c, 1);
}

void
moe_buf_show(struct moe_buf *b, const char *p, size_t n)
{
    char piece[4];
    size_t used;

    for (; n > 0; p += used, n -= used) {
        size_t k = moe_utf8_show(piece, p, n, &used);
        moe_buf_add(b, piece, k);
    }
}

void
moe_buf_fmt(struct moe_buf *b, const char *fmt, ...)
{
    va_list ap;
    char *to;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) {
        b->bad = true;
        return;
    }
    if ((to = moe_buf_room(b, (size_t)n)) == NULL)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(to, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
}

char *
moe_buf_take(struct moe_buf *b)
{
    char *p;

    moe_buf_add(b, "", 0);
    p = b->bad ? NULL : b->p;
    if (p == NULL)
        free(b->p);
    *b = (struct moe_buf)MOE_BUF_INIT;
    return p;
}
