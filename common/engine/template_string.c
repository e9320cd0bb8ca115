/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns searching, cutting, replacing and padding of strings.
 */
#include <string.h>

#include "common/base/utf8.h"
#include "common/engine/chat.h"
#include "common/engine/template_space.h"
#include "common/engine/template_string.h"

/* ---- Search ---------------------------------------------------------------------- */

size_t
moe_template_string_find(const struct moe_tstr *s, const struct moe_tstr *what, size_t from,
    size_t to, bool last)
{
    if (from > to || what->n > to - from)
        return SIZE_MAX;
    if (what->n == 0)
        return last ? to : from;
    if (!last) {
        const char *p = memmem(s->p + from, to - from, what->p, what->n);

        return p == NULL ? SIZE_MAX : (size_t)(p - s->p);
    }
    for (size_t at = to - what->n + 1; at-- > from;)
        if (memcmp(s->p + at, what->p, what->n) == 0)
            return at;
    return SIZE_MAX;
}

size_t
moe_template_string_count(const struct moe_tstr *s, const struct moe_tstr *what)
{
    size_t n = 0, at = 0;

    if (what->n == 0)
        return moe_template_value_chars((struct moe_tstr *)(uintptr_t)s) + 1;
    while ((at = moe_template_string_find(s, what, at, s->n, false)) != SIZE_MAX) {
        n++;
        at += what->n;
    }
    return n;
}

/* ---- Strip ----------------------------------------------------------------------- */

static bool
among(const struct moe_tstr *chars, const char *p, size_t k)
{
    size_t n;

    for (size_t at = 0; at < chars->n; at += n) {
        n = moe_utf8_len(chars->p + at, chars->n - at);
        if (n == k && memcmp(chars->p + at, p, k) == 0)
            return true;
    }
    return false;
}

/* The character that ends at p + to begins at the result. */
static size_t
char_before(const char *p, size_t to)
{
    do
        to--;
    while (to > 0 && ((unsigned char)p[to] & 0xc0) == 0x80);
    return to;
}

int
moe_template_string_strip(struct moe_trun *r, const struct moe_tstr *s,
    const struct moe_tstr *chars, int ends, struct moe_tval *out)
{
    size_t from = 0, to = s->n;

    if (chars == NULL) {
        if (ends & MOE_STRIP_LEFT)
            from = (size_t)(moe_template_space_skip(s->p, s->p + s->n) - s->p);
        if (ends & MOE_STRIP_RIGHT)
            to = (size_t)(moe_template_space_rstrip(s->p + from, s->p + s->n) - s->p);
        return moe_template_value_sub(r, s, from, to, out);
    }
    while ((ends & MOE_STRIP_LEFT) && from < to) {
        size_t k = moe_utf8_len(s->p + from, to - from);

        if (!among(chars, s->p + from, k))
            break;
        from += k;
    }
    while ((ends & MOE_STRIP_RIGHT) && from < to) {
        size_t at = char_before(s->p, to);

        if (!among(chars, s->p + at, to - at))
            break;
        to = at;
    }
    return moe_template_value_sub(r, s, from, to, out);
}

/* ---- Replace --------------------------------------------------------------------- */

/* Bytes [from, to) of s with their marks. */
static int
add_part(struct moe_tbuf *b, const struct moe_tstr *s, size_t from, size_t to)
{
    struct moe_tval v;
    int rc;

    if (s->n_span == 0)
        return moe_template_value_add(b, s->p + from, to - from, false);
    rc = moe_template_value_sub(b->r, s, from, to, &v);
    return rc != 0 ? rc : moe_template_value_add_str(b, v.u.s);
}

int
moe_template_string_replace(struct moe_trun *r, const struct moe_tstr *s,
    const struct moe_tstr *old, const struct moe_tstr *to, int64_t count, struct moe_tval *out)
{
    struct moe_tbuf b;
    size_t at = 0, found = 0;
    int rc = 0;

    moe_template_value_begin(r, &b);
    for (; rc == 0 && count != 0; count--) {
        found = moe_template_string_find(s, old, found, s->n, false);
        if (found == SIZE_MAX)
            break;
        if ((rc = moe_template_value_step(r, 1)) != 0 ||
            (rc = add_part(&b, s, at, found)) != 0)
            break;
        rc = moe_template_value_add_str(&b, to);
        at = found + old->n;
        found = at;
        if (old->n == 0) {      /* between all characters */
            if (at == s->n)
                break;
            found += moe_utf8_len(s->p + at, s->n - at);
        }
    }
    if (rc == 0)
        rc = add_part(&b, s, at, s->n);
    return rc != 0 ? rc : moe_template_value_done(&b, out);
}

/* ---- Split ----------------------------------------------------------------------- */

static int
push_part(struct moe_trun *r, const struct moe_tstr *s, size_t from, size_t to,
    struct moe_tlist *l)
{
    struct moe_tval v;
    int rc = moe_template_value_sub(r, s, from, to, &v);

    return rc != 0 ? rc : moe_template_value_push(r, l, v);
}

static int
split_at(struct moe_trun *r, const struct moe_tstr *s, const struct moe_tstr *sep, int64_t max,
    bool right, struct moe_tlist *l)
{
    size_t from = 0, to = s->n, at;
    int rc = 0;

    while (rc == 0 && max-- != 0) {
        at = moe_template_string_find(s, sep, from, to, right);
        if (at == SIZE_MAX)
            break;
        if (right) {
            rc = push_part(r, s, at + sep->n, to, l);
            to = at;
        } else {
            rc = push_part(r, s, from, at, l);
            from = at + sep->n;
        }
    }
    return rc != 0 ? rc : push_part(r, s, from, to, l);
}

/* The end of the word that begins at p, or with right the begin of the one that ends at end. */
static const char *
word(const char *p, const char *end, bool right)
{
    if (!right) {
        while (p < end && moe_template_space_skip(p, end) == p)
            p += moe_utf8_len(p, (size_t)(end - p));
        return p;
    }
    while (end > p && moe_template_space_rstrip(p, end) == end)
        end = p + char_before(p, (size_t)(end - p));
    return end;
}

static int
split_space(struct moe_trun *r, const struct moe_tstr *s, int64_t max, bool right,
    struct moe_tlist *l)
{
    const char *p = s->p, *end = s->p + s->n;
    int rc = 0;

    for (; rc == 0; max--) {
        const char *from, *to;

        if (right)
            end = moe_template_space_rstrip(p, end);
        else
            p = moe_template_space_skip(p, end);
        if (p == end)
            break;
        from = p;
        to = end;
        if (right)
            end = from = max == 0 ? p : word(p, end, true);
        else
            p = to = max == 0 ? end : word(p, end, false);
        rc = push_part(r, s, (size_t)(from - s->p), (size_t)(to - s->p), l);
    }
    return rc;
}

static void
turn(struct moe_tlist *l)
{
    for (size_t i = 0; i < l->n / 2; i++) {
        struct moe_tval v = l->v[i];

        l->v[i] = l->v[l->n - 1 - i];
        l->v[l->n - 1 - i] = v;
    }
}

int
moe_template_string_split(struct moe_trun *r, const struct moe_tstr *s,
    const struct moe_tstr *sep, int64_t max, bool from_right, struct moe_tval *out)
{
    int rc = moe_template_value_list(r, MOE_T_LIST, 0, out);

    if (rc != 0)
        return rc;
    if (sep != NULL && sep->n == 0)
        return moe_template_value_fail(r, "empty separator");
    rc = sep != NULL ? split_at(r, s, sep, max, from_right, out->u.l)
        : split_space(r, s, max, from_right, out->u.l);
    if (from_right)
        turn(out->u.l);
    return rc;
}

/* Length of the line break at p, or 0. */
static size_t
line_break(const char *p, size_t n)
{
    uint32_t c = 0;
    size_t k = moe_utf8_get(p, n, &c);

    if (c == '\r')
        return n > 1 && p[1] == '\n' ? 2 : 1;
    if (c == '\n' || c == '\v' || c == '\f' || (c >= 0x1c && c <= 0x1e) || c == 0x85 ||
        c == 0x2028 || c == 0x2029)
        return k;
    return 0;
}

int
moe_template_string_lines(struct moe_trun *r, const struct moe_tstr *s, bool keep,
    struct moe_tval *out)
{
    size_t from = 0, k;
    int rc = moe_template_value_list(r, MOE_T_LIST, 0, out);

    for (size_t at = 0; rc == 0 && at < s->n; at += k) {
        size_t n = line_break(s->p + at, s->n - at);

        k = n > 0 ? n : moe_utf8_len(s->p + at, s->n - at);
        if (n > 0) {
            rc = push_part(r, s, from, keep ? at + n : at, out->u.l);
            from = at + n;
        }
    }
    if (rc == 0 && from < s->n)
        rc = push_part(r, s, from, s->n, out->u.l);
    return rc;
}

/* ---- Pad and join ------------------------------------------------------------------- */

int
moe_template_string_pad(struct moe_trun *r, struct moe_tstr *s, int64_t width,
    const struct moe_tstr *fill, char where, struct moe_tval *out)
{
    size_t have = moe_template_value_chars(s), pad, before;
    struct moe_tbuf b;
    int rc = 0;

    pad = width > 0 && (uint64_t)width > have ? (size_t)width - have : 0;
    if (pad > MOE_CHAT_MAX_OUTPUT)
        return moe_template_value_limit(r, "a text grows too long");
    before = where == '>' ? pad : where == '<' ? 0
        : pad / 2 + (pad & (size_t)width & 1);
    moe_template_value_begin(r, &b);
    for (size_t i = 0; rc == 0 && i <= pad; i++) {
        if (i == before)
            rc = moe_template_value_add_str(&b, s);
        if (rc == 0 && i < pad)
            rc = moe_template_value_add_str(&b, fill);
    }
    return rc != 0 ? rc : moe_template_value_done(&b, out);
}

int
moe_template_string_join(struct moe_trun *r, const struct moe_tstr *sep,
    const struct moe_tlist *l, struct moe_tval *out)
{
    struct moe_tbuf b;
    int rc = 0;

    moe_template_value_begin(r, &b);
    for (size_t i = 0; rc == 0 && i < l->n; i++) {
        if (l->v[i].kind != MOE_T_STR)
            return moe_template_value_fail(r,
                "sequence item %zu: expected str instance, %s found", i,
                moe_template_value_type(&l->v[i]));
        if (i > 0)
            rc = moe_template_value_add_str(&b, sep);
        if (rc == 0)
            rc = moe_template_value_add_str(&b, l->v[i].u.s);
    }
    return rc != 0 ? rc : moe_template_value_done(&b, out);
}
