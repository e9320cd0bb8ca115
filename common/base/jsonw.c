/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the text form of JSON values. Does not check that brackets match and
 * builds no tree.
 */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/jsonw.h"
#include "common/base/utf8.h"

static void
before_value(struct moe_jsonw *w)
{
    if (w->comma)
        moe_buf_byte(w->b, ',');
    w->comma = true;
}

void
moe_jsonw_open(struct moe_jsonw *w, char bracket)
{
    before_value(w);
    moe_buf_byte(w->b, bracket);
    w->comma = false;
}

void
moe_jsonw_close(struct moe_jsonw *w, char bracket)
{
    moe_buf_byte(w->b, bracket);
    w->comma = true;
}

/* The escape of character c, or of the bad byte c. */
static void
escape(struct moe_buf *b, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *at = c == '\0' ? NULL : strchr(from, c);

    if (at != NULL && c < 0x80)
        moe_buf_fmt(b, "\\%c", to[at - from]);
    else
        moe_buf_fmt(b, "\\u%s%02x", c < 0x80 ? "00" : "dc", (unsigned)c);
}

static void
quoted(struct moe_buf *b, const char *s, size_t n)
{
    size_t run = 0;

    moe_buf_byte(b, '"');
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)s[i];
        size_t k = moe_utf8_len(s + i, n - i);

        if (k > 1 || (k == 1 && c >= 0x20 && c != '"' && c != '\\' && c != 0x7f)) {
            i += k;
            continue;
        }
        moe_buf_add(b, s + run, i - run);
        escape(b, c);
        run = ++i;
    }
    moe_buf_add(b, s + run, n - run);
    moe_buf_byte(b, '"');
}

void
moe_jsonw_key(struct moe_jsonw *w, const char *key)
{
    moe_jsonw_str(w, key, strlen(key));
    moe_buf_byte(w->b, ':');
    w->comma = false;
}

void
moe_jsonw_str(struct moe_jsonw *w, const char *s, size_t n)
{
    before_value(w);
    quoted(w->b, n > 0 ? s : "", n);
}

void
moe_jsonw_int(struct moe_jsonw *w, int64_t v)
{
    before_value(w);
    moe_buf_fmt(w->b, "%lld", (long long)v);
}

void
moe_jsonw_uint(struct moe_jsonw *w, uint64_t v)
{
    before_value(w);
    moe_buf_fmt(w->b, "%llu", (unsigned long long)v);
}

void
moe_jsonw_real(struct moe_jsonw *w, double v)
{
    locale_t c, old;
    char text[40];
    /* 15 digits survive a double, so more are tried only after; not so for subnormals. */
    int digits = fabs(v) < DBL_MIN ? 1 : DBL_DIG;

    before_value(w);
    if (!isfinite(v)) {
        moe_buf_str(w->b, "null");
        return;
    }
    /* A point whatever the program's locale; "C" needs no memory. */
    if ((c = newlocale(LC_ALL_MASK, "C", (locale_t)0)) == (locale_t)0) {
        w->b->bad = true;
        return;
    }
    old = uselocale(c);
    do
        (void)snprintf(text, sizeof(text), "%.*g", digits++, v);
    while (digits <= DBL_DECIMAL_DIG && strtod(text, NULL) != v);
    (void)uselocale(old);
    freelocale(c);
    moe_buf_str(w->b, text);
    if (v == 0 && signbit(v))
        moe_buf_str(w->b, ".0");
}

void
moe_jsonw_bool(struct moe_jsonw *w, bool v)
{
    before_value(w);
    moe_buf_str(w->b, v ? "true" : "false");
}

void
moe_jsonw_null(struct moe_jsonw *w)
{
    before_value(w);
    moe_buf_str(w->b, "null");
}
