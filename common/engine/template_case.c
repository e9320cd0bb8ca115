/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns changes of case: utf8proc's single mappings, the longer ones of a table,
 * the final sigma.
 */
#include <string.h>
#include <utf8proc.h>

#include "common/base/utf8.h"
#include "common/engine/template_case.h"
#include "common/engine/unicode.h"

enum { SIGMA = 0x3a3, FINAL_SIGMA = 0x3c2, CAPITAL_I_DOT = 0x130 };

static utf8proc_category_t
category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

static bool
cased(uint32_t c)
{
    utf8proc_category_t k = category(c);

    return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT;
}

/* Characters that the rule of the final sigma looks through. */
static bool
ignorable(uint32_t c)
{
    utf8proc_category_t k = category(c);

    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_ME || k == UTF8PROC_CATEGORY_CF ||
        k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_SK || c == '\'' || c == '.' ||
        c == ':' || c == 0xb7 || c == 0x387 || c == 0x2018 || c == 0x2019 || c == 0x2024 ||
        c == 0x2027;
}

/* Whether the sigma at `at`, k bytes long, ends a word: a letter before and none after. */
static bool
final_sigma(const struct moe_tstr *s, size_t at, size_t k)
{
    uint32_t c = 0;
    bool letter = false;
    size_t i, n;

    for (i = at; i > 0 && !letter;) {
        while (i > 0 && ((unsigned char)s->p[--i] & 0xc0) == 0x80)
            ;
        (void)moe_utf8_get(s->p + i, at - i, &c);
        letter = cased(c);
        if (!letter && !ignorable(c))
            break;
    }
    if (!letter)
        return false;
    for (i = at + k; (n = moe_utf8_get(s->p + i, s->n - i, &c)) > 0; i += n)
        if (!ignorable(c))
            return !cased(c);
    return true;
}

static int
add_char(struct moe_tbuf *b, uint32_t c, bool outside)
{
    char p[4];

    return moe_template_value_add(b, p, moe_utf8_put(p, c), outside);
}

static int
add_upper(struct moe_tbuf *b, uint32_t c, bool title, bool outside)
{
    size_t lo = 0, hi = moe_unicode_upper_n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (moe_unicode_upper[mid].c < c)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < moe_unicode_upper_n && moe_unicode_upper[lo].c == c) {
        const char *p = title ? moe_unicode_upper[lo].title : moe_unicode_upper[lo].upper;

        return moe_template_value_add(b, p, strlen(p), outside);
    }
    return add_char(b, (uint32_t)(title ? utf8proc_totitle((utf8proc_int32_t)c)
        : utf8proc_toupper((utf8proc_int32_t)c)), outside);
}

static int
add_lower(struct moe_tbuf *b, const struct moe_tstr *s, size_t at, size_t k, uint32_t c,
    bool outside)
{
    if (c == CAPITAL_I_DOT)
        return moe_template_value_add(b, "i\xcc\x87", 3, outside);
    if (c == SIGMA && final_sigma(s, at, k))
        return add_char(b, FINAL_SIGMA, outside);
    return add_char(b, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c), outside);
}

static int
add_folded(struct moe_tbuf *b, uint32_t c, bool outside)
{
    utf8proc_int32_t to[8];
    int bounds = UTF8PROC_BOUNDCLASS_START, rc = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)c, to, 8, UTF8PROC_CASEFOLD,
        &bounds);

    if (n < 1 || n > 8)
        return add_char(b, c, outside);
    for (utf8proc_ssize_t i = 0; rc == 0 && i < n; i++)
        rc = add_char(b, (uint32_t)to[i], outside);
    return rc;
}

int
moe_template_case(struct moe_tbuf *b, const struct moe_tstr *s, enum moe_tcase how)
{
    size_t k, span = 0;
    bool in_word = false;
    int rc = moe_template_value_step(b->r, s->n / 16);

    for (size_t at = 0; rc == 0 && at < s->n; at += k) {
        bool outside, upper = how == MOE_CASE_UPPER, title = false;
        uint32_t c = 0;

        k = moe_utf8_get(s->p + at, s->n - at, &c);
        while (span < s->n_span && s->span[span].to <= at)
            span++;
        outside = span < s->n_span && s->span[span].from <= at;
        if (how == MOE_CASE_CAPITAL || how == MOE_CASE_TITLE)
            title = how == MOE_CASE_TITLE ? !in_word : at == 0;
        if (how == MOE_CASE_SWAP)
            upper = category(c) == UTF8PROC_CATEGORY_LL;
        in_word = cased(c);
        if (how == MOE_CASE_FOLD)
            rc = add_folded(b, c, outside);
        else if (upper || title)
            rc = add_upper(b, c, title, outside);
        else
            rc = add_lower(b, s, at, k, c, outside);
    }
    return rc;
}

int
moe_template_case_ignore(struct moe_trun *r, struct moe_tval v, struct moe_tval *out)
{
    struct moe_tbuf b;
    int rc;

    if (v.kind != MOE_T_STR) {
        *out = v;
        return 0;
    }
    moe_template_value_begin(r, &b);
    rc = moe_template_case(&b, v.u.s, MOE_CASE_LOWER);
    return rc != 0 ? rc : moe_template_value_done(&b, out);
}

bool
moe_template_case_is(const struct moe_tstr *s, bool upper)
{
    bool any = false;
    size_t k;

    for (size_t at = 0; at < s->n; at += k) {
        uint32_t c = 0;

        k = moe_utf8_get(s->p + at, s->n - at, &c);
        if (!cased(c))
            continue;
        if (category(c) != (upper ? UTF8PROC_CATEGORY_LU : UTF8PROC_CATEGORY_LL))
            return false;
        any = true;
    }
    return any;
}
