/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the list of added tokens and their search in text. At each place whose
 * first byte begins a token, the sorted list is narrowed byte by byte.
 */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "common/base/utf8.h"
#include "common/engine/added.h"
#include "common/engine/unicode.h"

int
moe_added_add(struct moe_added_set *s, struct moe_added_token *tok, struct moe_err *e)
{
    if (s->n == MOE_ADDED_MAX)
        return moe_err_set(e, MOE_ELIMIT, "more than %d added tokens", MOE_ADDED_MAX);
    if (tok->text.len > MOE_ADDED_MAX_TEXT)
        return moe_err_set(e, MOE_ELIMIT, "an added token of more than %d bytes",
            MOE_ADDED_MAX_TEXT);
    if (s->n == s->cap) {
        size_t cap = s->cap == 0 ? 64 : 2 * s->cap;
        struct moe_added_token *p = realloc(s->tok, cap * sizeof(*p));

        if (p == NULL)
            return moe_err_set(e, MOE_ENOMEM, "out of memory");
        s->tok = p;
        s->cap = cap;
    }
    s->tok[s->n++] = *tok;
    tok->text = (struct moe_buf)MOE_BUF_INIT;
    return 0;
}

static int
by_text(const void *a, const void *b, void *ctx)
{
    const struct moe_added_set *s = ctx;
    const struct moe_buf *x = &s->tok[*(const size_t *)a].text;
    const struct moe_buf *y = &s->tok[*(const size_t *)b].text;
    int d = memcmp(x->p, y->p, x->len < y->len ? x->len : y->len);

    if (d != 0)
        return d;
    return x->len < y->len ? -1 : x->len > y->len;
}

int
moe_added_done(struct moe_added_set *s, struct moe_err *e)
{
    s->raw = malloc((s->n + 1) * sizeof(*s->raw));
    s->normal = malloc((s->n + 1) * sizeof(*s->normal));
    if (s->raw == NULL || s->normal == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < s->n; i++) {
        const struct moe_added_token *t = &s->tok[i];

        if (t->text.len == 0)
            continue;
        if (t->normalized) {
            s->normal[s->n_normal++] = i;
            s->first_normal[(unsigned char)t->text.p[0]] = true;
        } else {
            s->raw[s->n_raw++] = i;
            s->first_raw[(unsigned char)t->text.p[0]] = true;
        }
    }
    qsort_r(s->raw, s->n_raw, sizeof(*s->raw), by_text, s);
    qsort_r(s->normal, s->n_normal, sizeof(*s->normal), by_text, s);
    return 0;
}

void
moe_added_fini(struct moe_added_set *s)
{
    for (size_t i = 0; i < s->n; i++)
        moe_buf_fini(&s->tok[i].text);
    free(s->tok);
    free(s->raw);
    free(s->normal);
    *s = (struct moe_added_set)MOE_ADDED_SET_INIT;
}

/* ---- Characters ----------------------------------------------------------------- */

/* White space as Unicode has it. */
static bool
is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
        (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
        c == 0x205f || c == 0x3000;
}

/* \w of Unicode's regular expressions: letters, marks, digits, connectors, joiners. */
static bool
is_word(uint32_t c)
{
    const char *cat = utf8proc_category_string((utf8proc_int32_t)c);

    for (size_t i = 0; i < moe_unicode_newer_n; i++)
        if (c >= moe_unicode_newer[i].from && c <= moe_unicode_newer[i].to)
            cat = moe_unicode_newer[i].category;
    return cat[0] == 'L' || cat[0] == 'M' || strcmp(cat, "Nd") == 0 || strcmp(cat, "Nl") == 0 ||
        strcmp(cat, "Pc") == 0 || c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9) ||
        (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
        (c >= 0x1f170 && c <= 0x1f189);
}

/* The character that ends before p + at; its length is *k. at > 0. */
static uint32_t
before(const char *p, size_t at, size_t *k)
{
    size_t from = at - 1;
    uint32_t c = 0;

    while (from > 0 && ((unsigned char)p[from] & 0xc0) == 0x80)
        from--;
    *k = at - from;
    (void)moe_utf8_get(p + from, *k, &c);
    return c;
}

static bool
in_word(const char *p, size_t n, size_t from, size_t to)
{
    uint32_t c = 0;
    size_t k;

    if (from > 0 && is_word(before(p, from, &k)))
        return true;
    return to < n && moe_utf8_get(p + to, n - to, &c) > 0 && is_word(c);
}

/* ---- Search --------------------------------------------------------------------- */

/*
 * The longest token that text p begins with, or NULL. Tokens of the list in
 * [lo, hi) agree with the text in their first `len` bytes.
 */
static const struct moe_added_token *
longest(const struct moe_added_set *s, const size_t *list, size_t n_list, const char *p, size_t n)
{
    const struct moe_added_token *best = NULL;
    size_t lo = 0, hi = n_list;

    for (size_t len = 0; lo < hi; len++) {
        size_t a, b;

        if (s->tok[list[lo]].text.len == len) {
            best = &s->tok[list[lo]];
            if (++lo == hi)
                break;
        }
        if (len == n)
            break;
        /* Narrow to those whose next byte is the text's: first the lower end. */
        for (a = lo, b = hi; a < b;) {
            size_t mid = a + (b - a) / 2;

            if ((unsigned char)s->tok[list[mid]].text.p[len] < (unsigned char)p[len])
                a = mid + 1;
            else
                b = mid;
        }
        lo = a;
        for (b = hi; a < b;) {
            size_t mid = a + (b - a) / 2;

            if ((unsigned char)s->tok[list[mid]].text.p[len] <= (unsigned char)p[len])
                a = mid + 1;
            else
                b = mid;
        }
        hi = a;
    }
    return best;
}

bool
moe_added_next(const struct moe_added_set *s, bool normalized, enum moe_added which,
    const struct moe_spans *outside, const char *p, size_t n, size_t *at, size_t *done,
    struct moe_added_hit *hit)
{
    const size_t *list = normalized ? s->normal : s->raw;
    const bool *first = normalized ? s->first_normal : s->first_raw;
    size_t n_list = normalized ? s->n_normal : s->n_raw;

    if (which == MOE_ADDED_NONE || n_list == 0)
        return false;
    for (; *at < n; ++*at) {
        const struct moe_added_token *t;
        size_t from = *at, to, k;
        uint32_t c;

        if (!first[(unsigned char)p[from]])
            continue;
        if ((t = longest(s, list, n_list, p + from, n - from)) == NULL)
            continue;
        /* What a refused token covers is passed over, as in the reference. */
        to = from + t->text.len;
        *at = to;
        if ((which == MOE_ADDED_NOT_SPECIAL && t->special) ||
            (t->single_word && in_word(p, n, from, to)) ||
            (outside != NULL && moe_span_overlaps(outside, from, to))) {
            --*at;
            continue;
        }
        while (t->lstrip && from > *done && is_space(before(p, from, &k)))
            from -= k;
        while (t->rstrip && (k = moe_utf8_get(p + to, n - to, &c)) > 0 && is_space(c))
            to += k;
        *hit = (struct moe_added_hit){ from, to, t->id };
        *done = to;
        return true;
    }
    return false;
}
